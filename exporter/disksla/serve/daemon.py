"""The daemon of `disksla serve`: creates the parts, connects them, starts and stops them.

Ticks flow in one direction: DiskWatcher, EbsClient and ProbeScheduler post what they find to the
Sampler, the Sampler advances the State, and the WebServer takes snapshots of it.
"""

import gc
import logging
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.operating_system import SourceHealth
from disksla.base.operating_system.log import fields
from disksla.base.operating_system.machine import (
    UNKNOWN_MACHINE,
    Roots,
    read_boot_id,
    read_machine_id,
)
from disksla.base.operating_system.scheduler import Scheduler
from disksla.base.operating_system.state_file import StateFile
from disksla.base.operating_system.systemd import ServiceManager
from disksla.base.operating_system.unix_socket import UnixSocket
from disksla.clouds.ebs_statistics.client import EbsClient
from disksla.kernel.disks.hotplug import DiskWatcher
from disksla.measure.probes.probe_scheduler import ProbeScheduler
from disksla.measure.verification import VerificationReport
from disksla.measure.verification.store import ReportStore
from disksla.promise.configuration import Configuration
from disksla.promise.configuration.settings_file import (
    read_configuration,
    terms_directories,
    with_terms_files,
)
from disksla.promise.configuration.terms_directory import TermsDirectories, TermsTrouble
from disksla.serve.http_server.access import AccessControl
from disksla.serve.http_server.connection import Listen, ListenAddress
from disksla.serve.http_server.server import WebServer
from disksla.serve.http_server.turns import MOST_SCRAPES
from disksla.serve.metrics import status_line
from disksla.serve.metrics.render import read_build_info
from disksla.serve.pages.app import App, Controls, Sharing
from disksla.state.history import History
from disksla.state.pipeline import (
    PreviousRun,
    Snapshot,
    State,
    Tick,
    to_read_often,
    to_saved_state,
)
from disksla.state.pipeline.sampler import Sampler, read_clocks
from disksla.state.pipeline.saved_state import decode, encode
from disksla.state.pipeline.tick import is_alive
from disksla.tell.explanation.machine_limit import machine_limit
from disksla.tell.explanation.past import HistoryView, new_events

log = logging.getLogger("disksla.daemon")

SAVE_EVERY_S = 60.0
REPORTS_EVERY_S = 15.0
TERMS_EVERY_S = 0.75
TERMS_SETTLED_S = 0.2
"""A file that has changed is read if it is the same after this time: then it is complete."""
STATUS_EVERY_S = 5.0
READY_WITHIN_S = 5.0
"""systemd is notified READY=1 after this time even if the disks cannot be discovered."""
SHARE_S = 0.1
"""A page is shared for this time after it was rendered: about one tick."""
OWN_DESCRIPTORS = 128
"""What the daemon needs besides those of clients, with some tens of active disks."""
SWITCH_S = 0.0005
"""Switch interval of the interpreter: how long a busy thread keeps the GIL while others wait.

A tick releases the GIL a dozen times to read files and has to acquire it again each time. With
three busy threads, 5 % of ticks took longer than 170 ms at Python's default of 5 ms, and longer
than 16 ms at this value.
"""


class WebOptions(NamedTuple):
    """What the command line says of the web server."""

    listen: Sequence[Listen]
    telemetry_path: str = "/metrics"
    access: AccessControl | None = None
    max_scrapes: int = MOST_SCRAPES
    unix_socket: Path | None = None
    may_reload: bool = True
    """Whether clients may reload the configuration."""


class Daemon:
    """The parts of the exporter, from `start` until `stop`."""

    def __init__(
        self, roots: Roots, config_file: Path | None, manager: ServiceManager, web: WebOptions
    ) -> None:
        """Create all parts; raise DiskslaError if the configuration is invalid."""
        self._roots = roots
        # Configuration: the settings and the catalogue of disk types, which `reload` reads again.
        self._config_file = config_file
        configuration = read_configuration(config_file)
        settings = configuration.settings
        self._terms = TermsDirectories(terms_directories(config_file, settings))
        self._terms.read(at_once=True)
        self._log_terms_problems(())
        configuration = with_terms_files(configuration, self._terms.files())
        self._configuration = configuration
        self._build_info = read_build_info()
        self._reload_lock = threading.Lock()

        # State directory: what the previous daemon saved, and reports of `disksla verify`.
        self._machine, self._boot = read_machine_id(), read_boot_id(roots)
        self._open_state_directory(Path(settings.state.directory))
        self._reports.read()

        # Sampling: a thread takes a tick every 100 ms and advances the state.
        saved = self._previous_run()
        state = State(configuration, saved)
        self._sampler = Sampler(roots, state)
        self._history = History(saved_events={} if saved is None else saved.saved.events)
        self._state_before = state
        """After the tick before. The history is that of then: verdicts are decided at the first
        tick of a second, which has enough to do with hundreds of disks."""
        self._started_s = time.monotonic()
        self._has_disks = False
        """Whether a tick had the list of disks, which may be empty."""

        # Hotplug: a thread posts the list of disks whenever it changes.
        self._watcher = DiskWatcher(roots, self._sampler.post)
        self._sampler.on_unknown_device = self._watcher.rescan

        # What AWS counts of its disks: a thread posts the readings of a helper, if one runs.
        self._ebs = EbsClient(
            Path(settings.ebs.socket),
            self._sampler.post,
            lambda: to_read_often(self._sampler.state),
        )

        # What is repeated, besides sampling.
        self._jobs = Scheduler()
        self._sampler.on_clock_set = self._jobs.clock_was_set
        self._jobs.every(SAVE_EVERY_S, self.save, "save state")
        self._jobs.every(TERMS_EVERY_S, self.read_terms, "read terms files")
        self._jobs.every(REPORTS_EVERY_S, self.read_reports, "read verification reports")

        # systemd: status messages as a job, and the watchdog, which each tick feeds.
        self._manager = manager
        if manager.is_present:
            self._jobs.every(STATUS_EVERY_S, self.notify_status, "notify systemd")
        self._sampler.on_tick_done = self._on_tick_done

        # Probes, if some are configured: they read the state and post results to the sampler.
        self._probes = ProbeScheduler(
            roots,
            self._boot if self._machine == UNKNOWN_MACHINE else self._machine,
            self._jobs,
            lambda: self._sampler.state,
            self._sampler.post,
        )

        # Web server: metrics and status page from snapshots, health, and reload by POST.
        app = App(
            self.snapshot,
            lambda: self._build_info,
            self.reports,
            controls=Controls(
                self.is_healthy,
                self.is_ready,
                self.reload if web.may_reload else None,
                lambda: self._sampler.state.settings.pages.dashboard,
            ),
            telemetry_path=web.telemetry_path,
            sharing=Sharing(SHARE_S),
            past=self.past,
            host=os.uname().nodename,
        )
        self._access = web.access or AccessControl()
        self._server = WebServer(
            app,
            web.listen,
            access=self._access,
            unix_socket=None if web.unix_socket is None else UnixSocket(web.unix_socket),
            class_of=app.class_of,
            most_scrapes=web.max_scrapes,
        )

    def start(self) -> tuple[ListenAddress, ...]:
        """Start all parts and return the addresses that are served.

        Raises DiskslaError, and starts nothing, if an address cannot be bound.
        """
        sys.setswitchinterval(SWITCH_S)
        self._warn_of_few_descriptors()
        addresses = self._server.start()
        self._watcher.start()
        self._sampler.start()
        self._ebs.start()
        self._jobs.start()
        self._probes.configure(self._sampler.state.settings)
        gc.freeze()  # what is loaded by now stays: the garbage collector need not visit it
        return addresses

    def _warn_of_few_descriptors(self) -> None:
        """Log if clients and disks may need more descriptors than the process may have."""
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = self._server.most_connections + OWN_DESCRIPTORS
        if resource.RLIM_INFINITY != limit < needed:
            log.warning(
                "the limit of descriptors is low; clients may be disconnected, and disks not read",
                extra=fields(limit=limit, needed=needed, hint="LimitNOFILE=, ulimit -n"),
            )

    def stop(self) -> None:
        """Stop all parts, a running probe included, and save the state."""
        self._manager.stopping()
        self._probes.stop()
        self._server.stop()
        self._watcher.stop()
        self._ebs.stop()
        self._sampler.stop()
        self._jobs.stop(last=self.save)

    def reload(self) -> None:
        """Read the configuration again; raise DiskslaError, and keep the old one, if invalid."""
        with self._reload_lock, self._manager.reloading():
            try:
                configuration = read_configuration(self._config_file)
            except DiskslaError as error:
                log.error("configuration not reloaded", extra=fields(err=error))  # noqa: TRY400
                self._build_info = msgspec.structs.replace(
                    self._build_info, reload_successful=False
                )
                raise
            settings = configuration.settings
            self._terms.directories = terms_directories(self._config_file, settings)
            self._terms.read(at_once=True)
            self._post(configuration)
            directory = Path(settings.state.directory)
            if directory != self._state_file.path.parent:
                self._open_state_directory(directory)
            self._probes.configure(settings)
            self._ebs.path = Path(settings.ebs.socket)
            self._build_info = msgspec.structs.replace(
                self._build_info, reload_successful=True, reload_success_timestamp_s=time.time()
            )
            log.info("configuration reloaded")

    # What the web server shows.

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the present state, with the health of every part."""
        return Snapshot(self._sampler.state, self._health(), self._terms.failures)

    def past(self) -> HistoryView:
        """Return what each disk did lately, and the limits of the machine over a disk."""
        return HistoryView(
            self._history, lambda device, name: machine_limit(self._sampler.state, device, name)
        )

    def reports(self) -> Mapping[str, VerificationReport]:
        """Return the last verification report of each disk, by `disk_key`."""
        return self._reports.by_key

    def is_healthy(self) -> bool:
        """Return whether the sampler ticks."""
        interval_s = self._sampler.state.settings.sampling.interval_s
        return is_alive(self._sampler.ticked_at_s, time.monotonic(), interval_s)

    def is_ready(self) -> bool:
        """Return whether there is something to scrape: the disks were discovered and sampled."""
        return self._has_disks and self._sampler.state.clocks is not None

    def _health(self) -> Iterator[SourceHealth]:
        yield self._watcher.health
        problems = self._terms.problems
        yield SourceHealth(
            "terms", self._terms.failures.total(), not problems, "; ".join(problems) or None
        )
        state = self._state_file
        yield SourceHealth("state", state.errors, state.problem is None, state.problem)
        if (probes := self._probes.health()) is not None:
            yield probes
        yield self._jobs.health()
        if (ebs := self._ebs.health) is not None:
            yield ebs
        yield from self._sampler.consumers.healths
        if (events := self._sampler.events_health) is not None:
            yield events
        yield SourceHealth("verification", self._reports.errors, self._reports.success)
        yield self._server.health
        if self._manager.is_present:
            yield SourceHealth("systemd", self._manager.errors, works=None)
        if self._access.is_configured:  # the problem is only in the log, because it names files
            yield SourceHealth("web", self._access.errors, self._access.problem is None)

    # Jobs.

    def save(self) -> None:
        """Save what the next daemon can use."""
        events = self._history.events_by_key()
        state = to_saved_state(self._sampler.state, self._machine, self._boot, events)
        if state is not None:
            self._state_file.write(encode(state))

    def read_terms(self) -> None:
        """Read the terms files that changed, and post what they say to the sampler."""
        with self._reload_lock:
            before = self._terms.troubles
            is_changed = self._terms.read()
            if self._terms.has_unread():
                time.sleep(TERMS_SETTLED_S)
                is_changed = self._terms.read() or is_changed
            if is_changed:
                self._post(self._configuration)
                count = len(self._configuration.terms_files)
                log.info("terms files read", extra=fields(files=count))
            self._log_terms_problems(before)

    def _log_terms_problems(self, before: tuple[TermsTrouble, ...]) -> None:
        for trouble in self._terms.troubles:
            if trouble not in before:
                is_file = trouble.reason == "invalid"
                message = "terms file ignored" if is_file else "terms entries ignored"
                log.warning(message, extra=fields(err=trouble.text))
        if before and not self._terms.troubles:
            log.info("terms files valid again")

    def _post(self, configuration: Configuration) -> None:
        """Post a configuration, with what the terms files say, to the sampler."""
        files = self._terms.files()
        self._configuration = with_terms_files(configuration, files)
        self._sampler.post(self._configuration)

    def read_reports(self) -> None:
        """Read the reports that `disksla verify` saved in the state directory."""
        self._reports.read()

    def notify_status(self) -> None:
        """Send the status line to systemd."""
        if self._manager.is_present:
            self._manager.status(status_line(self.snapshot(), self._build_info))

    def _on_tick_done(self, tick: Tick) -> None:
        """Keep the history, and notify systemd that the sampler ticks; in the sampler's thread."""
        before, self._history = self._history, self._history.after(self._state_before)
        for event in new_events(before, self._history):
            level = logging.WARNING if event.is_problem else logging.INFO
            log.log(level, event.message, extra=fields(**event.values))
        self._state_before = self._sampler.state
        self._has_disks = self._has_disks or tick.disks is not None
        is_late = tick.clocks.monotonic_s - self._started_s > READY_WITHIN_S
        if not self._manager.was_ready and (is_late or self.is_ready()):
            self._manager.ready()
            self.notify_status()
        self._manager.feed_watchdog(tick.clocks.monotonic_s)

    def _open_state_directory(self, directory: Path) -> None:
        self._state_file = StateFile(directory)
        self._reports = ReportStore(directory)

    def _previous_run(self) -> PreviousRun | None:
        saved = self._state_file.read(lambda text: decode(text, self._machine, read_clocks()))
        return PreviousRun(saved, self._boot) if saved is not None else None
