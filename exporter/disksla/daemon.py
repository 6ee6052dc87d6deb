"""The daemon: joins the parts; nothing else knows them all."""

import gc
import logging
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from disksla.catalog import load_catalog
from disksla.core.look import look
from disksla.core.memory import Memory
from disksla.core.pipeline import State, Tick, to_save
from disksla.core.refusal import Refusal
from disksla.core.saved import decode, disk_key, encode
from disksla.core.timetable import is_alive
from disksla.core.view import View
from disksla.exposition.statusline import status_line
from disksla.runtime.about import read_about
from disksla.runtime.access import Access
from disksla.runtime.configuration import read_settings
from disksla.runtime.hotplug import DiskWatcher
from disksla.runtime.identity import UNKNOWN_MACHINE, read_boot, read_machine
from disksla.runtime.notify import ServiceManager
from disksla.runtime.paths import Paths
from disksla.runtime.prober import Prober
from disksla.runtime.sampler import Sampler, read_clocks
from disksla.runtime.schedule import Schedule
from disksla.runtime.site import Site
from disksla.runtime.statefile import StateFile
from disksla.runtime.verificationfiles import VerificationFiles
from disksla.runtime.web import USUAL_SCRAPES, Listen, ListenAddress, ScrapeLimit, WebServer

log = logging.getLogger("disksla.daemon")

SAVE_EVERY_S = 60.0
VERIFICATIONS_EVERY_S = 15.0
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
        paths: Paths,
        config_file: Path | None,
        listen: Sequence[Listen],
        telemetry_path: str,
        manager: ServiceManager,
        access: Access | None = None,
        most_scrapes: int = USUAL_SCRAPES.most,
    ) -> None:
        """Read the configuration; raises Refusal if anything in it is wrong."""
        self._config_file = config_file
        self._catalog = load_catalog()
        settings = read_settings(config_file, self._catalog)
        self._about = read_about()
        self._machine, self._boot = read_machine(), read_boot(paths)
        self._state_file = StateFile(Path(settings.state.directory))
        self._schedule = Schedule()
        self._schedule.every(SAVE_EVERY_S, self.save, "saving the state")
        self._verifications = VerificationFiles(Path(settings.state.directory))
        self._verifications.read()
        self._schedule.every(
            VERIFICATIONS_EVERY_S, self.read_verifications, "reading verifications"
        )
        self._manager = manager
        if manager.is_there:
            self._schedule.every(STATUS_EVERY_S, self.tell_status, "telling systemd")
        self._begun_s = time.monotonic()
        self._knows_disks = False
        self._reloading = threading.Lock()
        state = State(settings, self._catalog, self._remember())
        self._sampler = Sampler(paths, state)
        self._watcher = DiskWatcher(paths, self._sampler.post)
        self._sampler.on_doubt = self._watcher.rescan
        self._sampler.on_through = self._on_through
        self._sampler.on_clock_set = self._schedule.clock_was_set
        self._prober = Prober(
            paths,
            self._boot if self._machine == UNKNOWN_MACHINE else self._machine,
            self._schedule,
            lambda: self._sampler.state,
            self._sampler.post,
        )
        site = Site(
            self.view,
            lambda: self._about,
            healthy=self.is_healthy,
            ready=self.is_ready,
            reload=self.reload,
            telemetry_path=telemetry_path,
            share_s=SHARE_S,
        )
        self._access = access or Access()
        scrapes = ScrapeLimit(telemetry_path, most_scrapes)
        self._server = WebServer(site, listen, access=self._access, scrapes=scrapes)

    def start(self) -> tuple[ListenAddress, ...]:
        """Begin to serve and to watch; give the addresses that are served.

        Raises Refusal if one of them cannot be had; nothing runs then.
        """
        sys.setswitchinterval(SWITCH_S)
        addresses = self._server.start()
        self._watcher.start()
        self._sampler.start()
        self._schedule.start()
        self._prober.configure(self._sampler.state.settings)
        gc.freeze()  # what is loaded by now stays: the collector need not look at it again
        return addresses

    def stop(self) -> None:
        """End everything that was started, a probe that runs among it."""
        self._manager.stopping()
        self._prober.stop()
        self._server.stop()
        self._watcher.stop()
        self._sampler.stop()
        self._schedule.stop()
        self.save()

    def save(self) -> None:
        """Save what a later daemon can use."""
        state = to_save(self._sampler.state, self._machine, self._boot)
        if state is not None:
            self._state_file.write(encode(state))

    def read_verifications(self) -> None:
        """Look for what `disksla verify` left in the state directory."""
        self._verifications.read()

    def tell_status(self) -> None:
        """Tell systemd in a line how it goes."""
        if self._manager.is_there:
            self._manager.status(status_line(self.view(), self._about))

    def _on_through(self, tick: Tick) -> None:
        """Let systemd know, from the sampler's own thread, that it ticks."""
        self._knows_disks = self._knows_disks or tick.disks is not None
        is_late = tick.clocks.monotonic_s - self._begun_s > READY_WITHIN_S
        if not self._manager.was_ready and (is_late or self.is_ready()):
            self._manager.ready()
            self.tell_status()
        self._manager.beat(tick.clocks.monotonic_s)

    def _remember(self) -> Memory | None:
        saved = self._state_file.read(lambda text: decode(text, self._machine, read_clocks()))
        return Memory(saved, self._boot) if saved is not None else None

    def view(self) -> View:
        """Give everything known."""
        view = look(self._sampler.state)
        health = self._watcher.health
        verified = self._verifications
        sampler = msgspec.structs.replace(
            view.sampler,
            errors={
                **view.sampler.errors,
                "disks": health.errors,
                "state": self._state_file.errors,
                **({"probes": self._prober.errors} if self._prober.is_wanted else {}),
                "verification": verified.errors,
                **({"systemd": self._manager.errors} if self._manager.is_there else {}),
                **({"web": self._access.errors} if self._access.is_wanted else {}),
            },
            collectors={
                **view.sampler.collectors,
                "disks": health.success,
                "state": self._state_file.trouble is None,
                **({"probes": self._prober.trouble is None} if self._prober.is_wanted else {}),
                "verification": verified.success,
                **({"web": self._access.trouble is None} if self._access.is_wanted else {}),
            },
            troubles={**view.sampler.troubles, **self._troubles()},
        )
        disks = tuple(
            msgspec.structs.replace(
                each, verification=verified.by_key.get(disk_key(each.disk) or "")
            )
            for each in view.disks
        )
        return msgspec.structs.replace(view, disks=disks, sampler=sampler)

    def _troubles(self) -> dict[str, str]:
        """Give what is wrong besides sampling, in words."""
        told = {
            "disks": "; ".join(self._watcher.health.problems),
            "state": self._state_file.trouble,
            "probes": self._prober.trouble if self._prober.is_wanted else None,
        }
        return {source: words for source, words in told.items() if words}

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
                settings = read_settings(self._config_file, self._catalog)
            except Refusal as refusal:
                log.error("the configuration stays as it was: %s", refusal)  # noqa: TRY400
                self._about = msgspec.structs.replace(self._about, reload_successful=False)
                raise
            self._sampler.post(settings)
            directory = Path(settings.state.directory)
            if directory != self._state_file.path.parent:
                self._state_file = StateFile(directory)
                self._verifications = VerificationFiles(directory)
            self._prober.configure(settings)
            self._about = msgspec.structs.replace(
                self._about, reload_successful=True, reload_success_timestamp_s=time.time()
            )
            log.info("the configuration was read again")
