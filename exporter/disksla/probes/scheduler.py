"""Probes that are repeated: which disks are due when, and that they are left alone otherwise."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from disksla.config import ProbeEntry, Settings
from disksla.disks import Disk, disk_key
from disksla.errors import DiskslaError
from disksla.fio.runner import Fio, find_fio
from disksla.pipeline import (
    DiskSnapshot,
    ProbeFailure,
    ProbeResult,
    SkipReason,
    State,
    disk_snapshot,
)
from disksla.probes.plan import failed_result, offset_s, plan_probe, skipped_result
from disksla.probes.runner import ProbeContext, is_suspended, remove_scratch_leftovers, run_probe
from disksla.probes.skip import OBSERVATION_S, Observation, observation_s, skip_reasons
from disksla.system.log import fields
from disksla.system.roots import Roots
from disksla.system.scheduler import JobTimes, Scheduler

log = logging.getLogger("disksla.probe")

ARRANGE_EVERY_S = 5.0
"""Between two looks at which disks there are."""
MOST_JITTER_S = 10.0
JITTER_SHARE = 0.05
"""Of the time over which machines are spread, by which each turn is later by chance."""

ProbeTarget = tuple[ProbeEntry, str]
"""What is probed, and the disk."""


class ProbeScheduler:
    """Keeps one job in the schedule for each probe of each disk that is watched.

    Without fio there are none: that is said once, and tried again when the configuration is read
    again. `stop` ends a probe that runs.
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
        least_look_s: float = OBSERVATION_S,
    ) -> None:
        """Take what gives the present state, and what takes outcomes; nothing is probed yet.

        fio is looked for in `search_path`, written like $PATH, or in $PATH itself.
        """
        self.problem: str | None = None
        """Why nothing can be probed; None if it can."""
        self.errors = 0
        """How often something was wrong with fio itself, or with what is needed to run it."""
        self._roots = roots
        self._machine = machine
        self._scheduler = scheduler
        self._state = state
        self._post = post
        self._search_path = search_path
        self._least_look_s = least_look_s
        self._settings = Settings()
        self._fio: Fio | None = None
        self._turns: dict[ProbeTarget, Callable[[], None]] = {}
        self._said: dict[ProbeTarget, SkipReason | ProbeFailure | None] = {}
        self._untidy: dict[str, Disk] = {}
        self._tidies = False
        self._follows = False
        self._arranging = threading.Lock()
        self._stopping = threading.Event()

    @property
    def is_wanted(self) -> bool:
        """Whether the configuration has probes."""
        return bool(self._settings.probes)

    def configure(self, settings: Settings) -> None:
        """Take settings, and look for fio if they have probes."""
        self._settings = settings
        self._fio = self._find() if settings.probes else None
        if settings.probes and not self._follows:
            self._scheduler.every(ARRANGE_EVERY_S, self._arrange, "arranging probes")
            self._follows = True
        self._arrange()

    def _arrange(self) -> None:
        """Let there be a job for each probe of each watched disk, and no other."""
        with self._arranging:
            wanted = {}
            if self._fio is not None:
                watched = self._state().monitored
                wanted = {
                    (entry, device): seen.disk
                    for entry in self._settings.probes
                    for device, seen in watched.items()
                    if entry.covers(device)
                }
            for turn in self._turns.keys() - wanted.keys():
                self._turns.pop(turn)()
                self._said.pop(turn, None)
            for turn in wanted.keys() - self._turns.keys():
                entry, device = turn
                key = disk_key(wanted[turn]) or device
                times = times_of(entry, offset_s(self._machine, key, entry))
                name = f"{entry.kind} of {device}"
                self._turns[turn] = self._scheduler.at(times, self._job(turn), name)
                if entry.uses_file:
                    self._untidy[device] = wanted[turn]
            if self._untidy and not self._tidies:
                self._scheduler.at(JobTimes(every_s=ARRANGE_EVERY_S), self._tidy, "tidying up")
                self._tidies = True

    def stop(self) -> None:
        """Begin no other probe, and end one that runs."""
        self._stopping.set()

    def _find(self) -> Fio | None:
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

    def _job(self, turn: ProbeTarget) -> Callable[[], None]:
        return lambda: self._take(turn)

    def _tidy(self) -> None:
        """Remove what a daemon that was killed left on disks that are new to this one."""
        while self._untidy and not self._stopping.is_set():
            _, disk = self._untidy.popitem()
            remove_scratch_leftovers(self._around(disk))

    def _take(self, turn: ProbeTarget) -> None:
        """Look at a disk for a while, and probe it if nothing speaks against it."""
        fio, (entry, device) = self._fio, turn
        before = self._see(device)
        begun_s = time.monotonic()
        look_s = observation_s(self._settings.sampling.interval_s, self._least_look_s)
        if fio is None or self._stopping.wait(look_s) or turn not in self._turns:
            return
        now = self._see(device)
        elapsed_s = time.monotonic() - begun_s
        if now is None:
            return  # its series went with it, and the job is about to
        sight = Observation(before, now, elapsed_s, is_suspended(self._roots, device))
        plan = plan_probe(entry, device, now.assignment.limits)
        skips = skip_reasons(plan, sight, time.time())
        if skips:
            outcome = skipped_result(plan, skips[0], time.time())
        else:
            try:
                outcome = run_probe(fio, plan, self._around(now.disk), self._stopping)
            except DiskslaError as error:
                outcome = failed_result(plan, "error", str(error), time.time(), 0.0)
        if outcome.failure != "stopped":
            self._say(turn, outcome)
            self._post(outcome)

    def _around(self, disk: Disk) -> ProbeContext:
        directory = Path(self._settings.state.directory)
        return ProbeContext(disk, self._state().inventory, directory, self._roots)

    def _see(self, device: str) -> DiskSnapshot | None:
        return disk_snapshot(self._state(), device)

    def _say(self, turn: ProbeTarget, outcome: ProbeResult) -> None:
        """Log failures and skips, each once until it is another."""
        told = outcome.failure or outcome.skipped
        if told == self._said.get(turn):
            return
        self._said[turn] = told
        extra = fields(
            device=outcome.device,
            kind=outcome.kind,
            reason=told,
            err=outcome.message or None,
        )
        if outcome.failure is not None:
            log.warning("probe failed", extra=extra)
        elif outcome.skipped is not None:
            log.info("probe skipped", extra=extra)
        else:
            log.info("probe succeeded", extra=extra)


def times_of(entry: ProbeEntry, offset: float) -> JobTimes:
    """Give when a probe is due on a machine whose turns are so much later than the grid's."""
    return JobTimes(
        every_s=0.0 if entry.cron is not None else entry.period_s,
        cron=entry.cron,
        offset_s=offset,
        jitter_s=min(MOST_JITTER_S, JITTER_SHARE * entry.spread_s),
    )
