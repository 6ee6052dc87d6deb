"""Where the disks come from: the daemon, which is asked, or our own sampler."""

import threading
import time
from collections.abc import Callable

from disksla.base.operating_system.machine import Roots
from disksla.kernel.disks.hotplug import DiskWatcher
from disksla.state.history import History
from disksla.state.pipeline import Snapshot, Tick
from disksla.state.pipeline.sampler import Sampler
from disksla.tell.api import DisksDocument, disks_document
from disksla.tell.api.daemon_client import Access, ask_disks
from disksla.tell.explanation import HistoryView
from disksla.tell.explanation.machine_limit import machine_limit

_LATE_S = 3.0
"""A daemon that does not answer for longer is named."""


class AskedDaemon:
    """The daemon of this machine or another one, which has answered once."""

    def __init__(self, url: str | None, access: Access) -> None:
        """Remember where to ask; None for the usual places."""
        self.title = "asks the daemon" + (f" at {url}" if url is not None else "")
        self._url, self._access = url, access
        self._answered_s = time.monotonic()
        self.reason = ""
        """Why it did not answer the last time."""

    def read(self) -> DisksDocument | None:
        """Return its disks; None if it does not answer."""
        reasons: list[str] = []
        document = ask_disks(self._url, reasons.append, access=self._access)
        self.reason = "".join(reasons)
        if document is not None:
            self._answered_s = time.monotonic()
        return document

    @property
    def problem(self) -> str:
        """Why what it said is old; empty while it answers."""
        silent_s = time.monotonic() - self._answered_s
        return f"NO ANSWER for {silent_s:.0f} s: {self.reason}" if silent_s > _LATE_S else ""

    def close(self) -> None:
        """Do nothing: it goes on."""


class OwnSampler:
    """Our own sampler, with the history that the daemon keeps."""

    def __init__(self, sampler: Sampler, roots: Roots, host: str, version: str) -> None:
        """Start to sample; `close` stops it."""
        self.title = "samples by itself"
        self._host, self._version = host, version
        self._history = History()
        self._sampler = sampler
        self._watcher = DiskWatcher(roots, sampler.post)
        sampler.on_unknown_device = self._watcher.rescan
        sampler.on_tick_done = self._keep
        self._watcher.start()
        sampler.start()

    def read(self) -> DisksDocument | None:
        """Return the disks; None before the first sample."""
        state = self._sampler.state
        if state.clocks is None:
            return None
        past = HistoryView(self._history, lambda device, name: machine_limit(state, device, name))
        return disks_document(Snapshot(state), past, self._host, self._version)

    @property
    def problem(self) -> str:
        """What cannot be read; empty without a problem."""
        stats = self._sampler.state.sampler_stats
        return "; ".join(filter(None, (self._watcher.health.problem, *stats.problems.values())))

    def close(self) -> None:
        """Stop sampling."""
        self._watcher.stop()
        self._sampler.stop()

    def _keep(self, _tick: Tick) -> None:
        self._history = self._history.after(self._sampler.state)


DiskSource = AskedDaemon | OwnSampler


class Poller:
    """A thread that reads a source repeatedly, so that keys need not wait for a slow answer."""

    def __init__(
        self, source: DiskSource, interval_s: float, on_answer: Callable[[], None]
    ) -> None:
        """Start to read; `on_answer` is called in the thread after each answer."""
        self._source = source
        self._interval_s = interval_s
        self._on_answer = on_answer
        self._document: DisksDocument | None = None
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        threading.Thread(target=self._run, name="top", daemon=True).start()

    def latest(self) -> tuple[DisksDocument | None, str]:
        """Return the last answer, None before the first, and the problem of the source.

        Raise what the thread failed with.
        """
        if self._failure is not None:
            raise self._failure
        return self._document, self._source.problem

    def stop(self) -> None:
        """Stop reading; an answer may still be waited for, in the thread."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            due_s = time.monotonic() + self._interval_s
            try:
                self._document = self._source.read() or self._document
            except Exception as error:  # noqa: BLE001 -- raised by `latest`, in the main thread
                self._failure = error
            if not self._stopping.is_set():
                self._on_answer()
            self._stopping.wait(max(0.0, due_s - time.monotonic()))
