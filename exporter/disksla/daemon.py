"""The daemon: joins the parts; nothing else knows them all."""

import gc
import logging
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from disksla.config.settings_file import read_configuration
from disksla.disks.hotplug import DiskWatcher
from disksla.errors import DiskslaError
from disksla.metrics import status_line
from disksla.metrics.build_info import read_build_info
from disksla.pipeline import PreviousRun, Snapshot, State, Tick, take_snapshot, to_saved_state
from disksla.pipeline.deadlines import is_alive
from disksla.pipeline.sampler import Sampler, read_clocks
from disksla.pipeline.saved_state import decode, encode
from disksla.probes.scheduler import ProbeScheduler
from disksla.system import SourceHealth
from disksla.system.log import fields
from disksla.system.machine_id import UNKNOWN_MACHINE, read_boot_id, read_machine_id
from disksla.system.roots import Roots
from disksla.system.scheduler import Scheduler
from disksla.system.state_file import StateFile
from disksla.system.systemd import ServiceManager
from disksla.verification import VerificationReport
from disksla.verification.store import ReportStore
from disksla.web.access import AccessControl
from disksla.web.app import App
from disksla.web.listen import Listen, ListenAddress
from disksla.web.server import DEFAULT_SCRAPE_LIMIT, ScrapeLimit, WebServer

log = logging.getLogger("disksla.daemon")

SAVE_EVERY_S = 60.0
REPORTS_EVERY_S = 15.0
STATUS_EVERY_S = 5.0
READY_WITHIN_S = 5.0
"""Where the disks cannot be looked at, whoever started us is not kept waiting for longer."""
SHARE_S = 0.1
"""Scrapes that come within so short a time get the same page: it would differ in nothing."""
SWITCH_S = 0.0005
"""Threads that reckon let go of the interpreter after so long, where another waits for it.

A tick lets go of it a dozen times to read files, and has to get it back each time. Beside three
busy threads and with Python's 5 ms, 5 % of ticks took longer than 170 ms; with this, 16 ms.
"""


class Daemon:
    """Watches the disks and serves what is seen until it is told to end."""

    def __init__(
        self,
        roots: Roots,
        config_file: Path | None,
        listen: Sequence[Listen],
        telemetry_path: str,
        manager: ServiceManager,
        access: AccessControl | None = None,
        most_scrapes: int = DEFAULT_SCRAPE_LIMIT.most,
    ) -> None:
        """Read the configuration; raises Refusal if anything in it is wrong."""
        self._config_file = config_file
        configuration = read_configuration(config_file)
        settings = configuration.settings
        self._build_info = read_build_info()
        self._machine, self._boot = read_machine_id(), read_boot_id(roots)
        self._state_file = StateFile(Path(settings.state.directory))
        self._scheduler = Scheduler()
        self._scheduler.every(SAVE_EVERY_S, self.save, "saving the state")
        self._reports = ReportStore(Path(settings.state.directory))
        self._reports.read()
        self._scheduler.every(REPORTS_EVERY_S, self.read_reports, "reading verifications")
        self._manager = manager
        if manager.is_there:
            self._scheduler.every(STATUS_EVERY_S, self.notify_status, "telling systemd")
        self._begun_s = time.monotonic()
        self._knows_disks = False
        self._reloading = threading.Lock()
        state = State(settings, configuration.catalog, self._previous_run())
        self._sampler = Sampler(roots, state)
        self._watcher = DiskWatcher(roots, self._sampler.post)
        self._sampler.on_unknown_device = self._watcher.rescan
        self._sampler.on_tick_done = self._on_tick_done
        self._sampler.on_clock_set = self._scheduler.clock_was_set
        self._probe_scheduler = ProbeScheduler(
            roots,
            self._boot if self._machine == UNKNOWN_MACHINE else self._machine,
            self._scheduler,
            lambda: self._sampler.state,
            self._sampler.post,
        )
        app = App(
            self.snapshot,
            lambda: self._build_info,
            self.reports,
            healthy=self.is_healthy,
            ready=self.is_ready,
            reload=self.reload,
            telemetry_path=telemetry_path,
            share_s=SHARE_S,
        )
        self._access = access or AccessControl()
        scrapes = ScrapeLimit(telemetry_path, most_scrapes)
        self._server = WebServer(app, listen, access=self._access, scrapes=scrapes)

    def start(self) -> tuple[ListenAddress, ...]:
        """Begin to serve and to watch; give the addresses that are served.

        Raises Refusal if one of them cannot be had; nothing runs then.
        """
        sys.setswitchinterval(SWITCH_S)
        addresses = self._server.start()
        self._watcher.start()
        self._sampler.start()
        self._scheduler.start()
        self._probe_scheduler.configure(self._sampler.state.settings)
        gc.freeze()  # what is loaded by now stays: the collector need not look at it again
        return addresses

    def stop(self) -> None:
        """End everything that was started, a probe that runs among it."""
        self._manager.stopping()
        self._probe_scheduler.stop()
        self._server.stop()
        self._watcher.stop()
        self._sampler.stop()
        self._scheduler.stop()
        self.save()

    def save(self) -> None:
        """Save what a later daemon can use."""
        state = to_saved_state(self._sampler.state, self._machine, self._boot)
        if state is not None:
            self._state_file.write(encode(state))

    def read_reports(self) -> None:
        """Look for what `disksla verify` left in the state directory."""
        self._reports.read()

    def notify_status(self) -> None:
        """Tell systemd in a line how it goes."""
        if self._manager.is_there:
            self._manager.status(status_line(self.snapshot(), self._build_info))

    def _on_tick_done(self, tick: Tick) -> None:
        """Let systemd know, from the sampler's own thread, that it ticks."""
        self._knows_disks = self._knows_disks or tick.disks is not None
        is_late = tick.clocks.monotonic_s - self._begun_s > READY_WITHIN_S
        if not self._manager.was_ready and (is_late or self.is_ready()):
            self._manager.ready()
            self.notify_status()
        self._manager.beat(tick.clocks.monotonic_s)

    def _previous_run(self) -> PreviousRun | None:
        saved = self._state_file.read(lambda text: decode(text, self._machine, read_clocks()))
        return PreviousRun(saved, self._boot) if saved is not None else None

    def snapshot(self) -> Snapshot:
        """Return everything known now, with the health of every part of the daemon."""
        return take_snapshot(self._sampler.state).with_health(self._health())

    def reports(self) -> Mapping[str, VerificationReport]:
        """Return the last verification report of each disk, by `disk_key`."""
        return self._reports.by_key

    def _health(self) -> Iterator[SourceHealth]:
        watcher = self._watcher.health
        yield SourceHealth(
            "disks", watcher.errors, watcher.success, "; ".join(watcher.problems) or None
        )
        state = self._state_file
        yield SourceHealth("state", state.errors, state.problem is None, state.problem)
        probes = self._probe_scheduler
        if probes.is_wanted:
            yield SourceHealth("probes", probes.errors, probes.problem is None, probes.problem)
        yield SourceHealth("verification", self._reports.errors, self._reports.success)
        if self._manager.is_there:
            yield SourceHealth("systemd", self._manager.errors, works=None)
        if self._access.is_wanted:  # what is wrong is in the log only: it names files
            yield SourceHealth("web", self._access.errors, self._access.problem is None)

    def is_healthy(self) -> bool:
        """Tell whether the sampler ticks."""
        interval_s = self._sampler.state.settings.sampling.interval_s
        return is_alive(self._sampler.ticked_at_s, time.monotonic(), interval_s)

    def is_ready(self) -> bool:
        """Tell whether there is something to scrape: the disks, if any, were found and sampled."""
        return self._knows_disks and self._sampler.state.clocks is not None

    def reload(self) -> None:
        """Read the configuration again; raises Refusal, and changes nothing, if it is wrong."""
        with self._reloading, self._manager.reloading():
            try:
                configuration = read_configuration(self._config_file)
            except DiskslaError as error:
                log.error("configuration not reloaded", extra=fields(err=error))  # noqa: TRY400
                self._build_info = msgspec.structs.replace(
                    self._build_info, reload_successful=False
                )
                raise
            self._sampler.post(configuration)
            settings = configuration.settings
            directory = Path(settings.state.directory)
            if directory != self._state_file.path.parent:
                self._state_file = StateFile(directory)
                self._reports = ReportStore(directory)
            self._probe_scheduler.configure(settings)
            self._build_info = msgspec.structs.replace(
                self._build_info, reload_successful=True, reload_success_timestamp_s=time.time()
            )
            log.info("configuration reloaded")
