"""Schedule the configured probes of all monitored disks, and log how they go."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.operating_system import SourceHealth
from disksla.base.operating_system.log import fields
from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.scheduler import JobTimes, Scheduler
from disksla.kernel.disks import Disk, disk_key
from disksla.measure.fio.runner import Fio, find_fio
from disksla.measure.probes.probe_plan import failed_result, offset_s, plan_probe, skipped_result
from disksla.measure.probes.probe_runner import (
    ProbeContext,
    is_suspended,
    remove_scratch_leftovers,
    run_probe,
)
from disksla.measure.probes.skip import OBSERVATION_S, SnapshotPair, observation_s, skip_reasons
from disksla.promise.configuration import ProbeEntry, Settings
from disksla.state.pipeline import (
    DiskSnapshot,
    ProbeFailure,
    ProbeResult,
    SkipReason,
    State,
    disk_snapshot,
)

log = logging.getLogger("disksla.probe")

UPDATE_EVERY_S = 5.0
"""Interval at which the jobs are compared with the monitored disks."""
MAX_JITTER_S = 10.0
JITTER_SHARE = 0.05
"""Random delay of each attempt, as a share of the time over which the machines are spread."""

ProbedDisk = tuple[ProbeEntry, str]
"""A configured probe, and the disk that it probes."""


class ProbeScheduler:
    """Keeps one job in the scheduler for each probe of each monitored disk.

    Without fio there are no jobs: this is logged once, and fio is looked up again at the next
    reload of the configuration.
    """

    def __init__(
        self,
        roots: Roots,
        machine: str,
        scheduler: Scheduler,
        state: Callable[[], State],
        post: Callable[[ProbeResult], None],
        *,
        search_path: str | None = None,
        min_observation_s: float = OBSERVATION_S,
    ) -> None:
        """Set where the state is read and results are posted; jobs are added by `configure`.

        fio is looked up in `search_path`, written like $PATH, or in $PATH.
        """
        self.problem: str | None = None
        """Why no probe can run; None if probes can run."""
        self.errors = 0
        """How often fio was missing or unusable."""
        self._roots = roots
        self._machine = machine
        self._scheduler = scheduler
        self._state = state
        self._post = post
        self._search_path = search_path
        self._min_observation_s = min_observation_s
        self._settings = Settings()
        self._fio: Fio | None = None
        self._jobs: dict[ProbedDisk, Callable[[], None]] = {}
        """Removes the job of each target from the scheduler."""
        self._last_logged: dict[ProbedDisk, SkipReason | ProbeFailure | None] = {}
        self._to_clean: dict[str, Disk] = {}
        """Disks on which a killed daemon may have left scratch files."""
        self._is_cleaning = False
        self._update_lock = threading.Lock()
        self._stopping = threading.Event()
        scheduler.every(UPDATE_EVERY_S, self._update_jobs, "update probe jobs")

    def health(self) -> SourceHealth | None:
        """Return whether probes can run; None if none are configured."""
        if not self._settings.probes:
            return None
        return SourceHealth("probes", self.errors, self.problem is None, self.problem)

    def configure(self, settings: Settings) -> None:
        """Apply settings, and look up fio if they contain probes."""
        self._settings = settings
        self._fio = self._find_fio() if settings.probes else None
        self._update_jobs()

    def _update_jobs(self) -> None:
        """Add jobs for new targets, and remove those of targets that no longer exist."""
        with self._update_lock:
            targets = {}
            if self._fio is not None:
                monitored = self._state().monitored
                targets = {
                    (entry, device): disk_state.disk
                    for entry in self._settings.probes
                    for device, disk_state in monitored.items()
                    if entry.covers(device)
                }
            for target in self._jobs.keys() - targets.keys():
                self._jobs.pop(target)()
                self._last_logged.pop(target, None)
            for target in targets.keys() - self._jobs.keys():
                entry, device = target
                key = disk_key(targets[target]) or device
                times = times_of(entry, offset_s(self._machine, key, entry))
                name = f"{entry.kind} of {device}"
                self._jobs[target] = self._scheduler.at(
                    times, partial(self._attempt, target), name
                )
                if entry.uses_file:
                    self._to_clean[device] = targets[target]
            if self._to_clean and not self._is_cleaning:
                times = JobTimes(every_s=UPDATE_EVERY_S)
                self._scheduler.at(times, self._clean, "removing scratch files")
                self._is_cleaning = True

    def stop(self) -> None:
        """Start no other probe, and end one that is running, without waiting for its end."""
        self._stopping.set()

    def _find_fio(self) -> Fio | None:
        try:
            fio = find_fio(self._search_path)
        except DiskslaError as error:
            self.errors += 1
            if str(error) != self.problem:
                log.warning("probes disabled until the next reload", extra=fields(err=error))
            self.problem = str(error)
            return None
        self.problem = None
        return fio

    def _clean(self) -> None:
        """Remove what a killed daemon left on disks that this one has not probed before."""
        while self._to_clean and not self._stopping.is_set():
            _, disk = self._to_clean.popitem()
            remove_scratch_leftovers(self._context(disk))

    def _attempt(self, target: ProbedDisk) -> None:
        """Observe a disk, and probe it unless there is a reason to skip the probe."""
        fio, (entry, device) = self._fio, target
        before = self._snapshot(device)
        started_s = time.monotonic()
        seconds = observation_s(self._settings.sampling.interval_s, self._min_observation_s)
        if fio is None or self._stopping.wait(seconds) or target not in self._jobs:
            return
        now = self._snapshot(device)
        elapsed_s = time.monotonic() - started_s
        if now is None:
            return  # the disk is gone, with its series; the next update removes this job
        observation = SnapshotPair(before, now, elapsed_s, is_suspended(self._roots, device))
        plan = plan_probe(entry, device, now.assignment.limits)
        skips = skip_reasons(plan, observation, time.time())
        if skips:
            result = skipped_result(plan, skips[0], time.time())
        else:
            try:
                result = run_probe(fio, plan, self._context(now.disk), self._stopping)
            except DiskslaError as error:
                result = failed_result(plan, "error", str(error), time.time(), 0.0)
        if result.failure != "stopped":
            self._log(target, result)
            self._post(result)

    def _context(self, disk: Disk) -> ProbeContext:
        directory = Path(self._settings.state.directory)
        return ProbeContext(disk, self._state().inventory, directory, self._roots)

    def _snapshot(self, device: str) -> DiskSnapshot | None:
        return disk_snapshot(self._state(), device)

    def _log(self, target: ProbedDisk, result: ProbeResult) -> None:
        """Log a success, failure or skip when it differs from the previous one of this target."""
        reason = result.failure or result.skipped
        if reason == self._last_logged.get(target):
            return
        self._last_logged[target] = reason
        extra = fields(
            device=result.device, kind=result.kind, reason=reason, err=result.message or None
        )
        if result.failure is not None:
            log.warning("probe failed", extra=extra)
        elif result.skipped is not None:
            log.info("probe skipped", extra=extra)
        else:
            log.info("probe succeeded", extra=extra)


def times_of(entry: ProbeEntry, offset: float) -> JobTimes:
    """Return when a probe is due on a machine with this offset."""
    return JobTimes(
        every_s=0.0 if entry.cron is not None else entry.period_s,
        cron=entry.cron,
        offset_s=offset,
        jitter_s=min(MAX_JITTER_S, JITTER_SHARE * entry.spread_s),
    )
