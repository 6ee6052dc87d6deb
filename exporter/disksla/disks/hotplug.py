"""Noticing within a second that the disks of the machine have changed.

Three things tell: uevents of the kernel and of udevd, the mount table, which can be polled, and
the sampler, the first to see a name in /proc/diskstats that nobody knows. Whatever tells, the
answer is the same: look at all disks again and hand them on if they differ. So an event that is
lost, repeated or forbidden costs time and never the truth, and a look taken now and then
although nothing happened makes up for everything that failed to tell.
"""

import contextlib
import errno
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, NamedTuple

import pyudev

from disksla.disks.disk import Disk
from disksla.disks.inventory import BlockDevices
from disksla.errors import DiskslaError
from disksla.system.log import fields
from disksla.system.roots import Roots

PERIOD_S = 30.0
"""Longest time between two looks."""
SHORTEST_REST_S = 0.1
"""Time between the first news and the look: events come in bursts."""
LONGEST_REST_S = 0.5
RESTS_PER_LOOK = 20
"""Rest this many times as long as the last look took, so that storms of events stay cheap."""
RETRY_S = 1.0
"""Time between a failure that nobody foresaw and the next attempt."""

_MOST_EVENTS = 1000  # taken from a socket at once; the rest makes it ready again
_log = logging.getLogger("disksla.disks")


class Health(NamedTuple):
    """How the watching goes."""

    success: bool
    """Whether the thread runs and its last look saw the disks."""
    errors: int
    """Problems so far; one that lasts counts once."""
    problems: tuple[str, ...]
    """What is wrong at present, one sentence each."""


class DiskWatcher:
    """A thread that hands over all disks: once at the start, then whenever they have changed."""

    def __init__(
        self,
        roots: Roots,
        on_change: Callable[[tuple[Disk, ...]], None],
        period_s: float = PERIOD_S,
    ) -> None:
        """Prepare to call `on_change`, from the watching thread, one call at a time.

        `stop` must be called in the end, even if `start` was not.
        """
        self._roots = roots
        self._on_change = on_change
        self._period_s = period_s
        self._delivered: tuple[Disk, ...] | None = None
        self._health = Health(success=False, errors=0, problems=())
        self._stopping = threading.Event()
        self._wake = os.fdopen(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK), "wb", buffering=0)
        self._thread = threading.Thread(target=self._run, name="disks", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def rescan(self) -> None:
        """Ask for a look soon. Never waits; may be called from any thread, also after `stop`."""
        with contextlib.suppress(ValueError):  # closed: nobody looks any more
            os.eventfd_write(self._wake.fileno(), 1)

    def stop(self) -> None:
        """End the watching and wait for that: not longer than one look takes."""
        self._stopping.set()
        self.rescan()
        if self._thread.ident is not None:
            self._thread.join()
        self._wake.close()

    @property
    def health(self) -> Health:
        """How the watching goes, for metrics."""
        return self._health._replace(success=self._health.success and self._thread.is_alive())

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._watch()
            except Exception as error:  # noqa: BLE001 -- without this thread, no disk is ever new
                problem = f"watching the disks failed: {type(error).__name__}: {error}"
                self._note(problem, success=False, cause=error)
                self._stopping.wait(RETRY_S)

    def _watch(self) -> None:
        """Look, wait for news, let it settle, look again."""
        devices = BlockDevices(self._roots)
        with _mount_table(self._roots) as table:
            monitors, problems = _monitors(devices.udev)
            poller = select.poll()
            poller.register(self._wake, select.POLLIN)
            for monitor in monitors:
                poller.register(monitor, select.POLLIN)
            if table is not None:
                poller.register(table, select.POLLPRI)
            while not self._stopping.is_set():
                started = time.monotonic()
                self._look(devices, problems)
                rest_s = RESTS_PER_LOOK * (time.monotonic() - started)
                poller.poll(self._period_s * 1e3)
                self._stopping.wait(min(max(rest_s, SHORTEST_REST_S), LONGEST_REST_S))
                self._forget_news(monitors)

    def _look(self, devices: BlockDevices, standing_problems: tuple[str, ...]) -> None:
        try:
            inventory = devices.read()
        except (DiskslaError, OSError) as error:
            self._note(*standing_problems, str(error), success=False)
            return
        if inventory.disks != self._delivered:
            self._on_change(inventory.disks)
            self._delivered = inventory.disks
        self._note(*standing_problems, *inventory.problems, success=True)

    def _note(self, *problems: str, success: bool, cause: Exception | None = None) -> None:
        known = self._health.problems
        new = [problem for problem in problems if problem not in known]
        for problem in new:
            _log.warning("disk discovery problem", extra=fields(err=problem), exc_info=cause)
        if known and not problems:
            _log.info("disk discovery recovered")
        self._health = Health(success, self._health.errors + len(new), problems)

    def _forget_news(self, monitors: Iterable[Any]) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake.fileno())
        for monitor in monitors:
            _drain(monitor)


@contextlib.contextmanager
def _mount_table(roots: Roots) -> Iterator[IO[bytes] | None]:
    """Open the mount table for polling: it is ready with POLLPRI when a mount comes or goes."""
    try:
        table = roots.mountinfo.open("rb")
    except OSError:  # reading it fails as well, and is reported there
        yield None
        return
    with table:
        yield table


def _monitors(udev: Any) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Listen to uevents; give the monitors, and what is wrong.

    The kernel tells of every device; udevd tells, later, that it has found out more about one.
    Listening to a udevd that does not run is no error, and it is heard once it does.
    """
    if udev is None:
        return (), ()
    try:
        monitors = tuple(pyudev.Monitor.from_netlink(udev, source=s) for s in ("kernel", "udev"))
        for monitor in monitors:
            monitor.filter_by("block")
            monitor.start()
    except OSError as error:
        problem = (
            f"cannot listen to uevents ({error.strerror or error}): new disks are noticed by"
            " their I/O, other changes late; a sandbox must allow AF_NETLINK"
        )
        return (), (problem,)
    return monitors, ()


def _drain(monitor: Any) -> None:
    for _ in range(_MOST_EVENTS):
        try:
            if monitor.poll(timeout=0) is None:
                return
        except OSError as error:
            if error.errno != errno.ENOBUFS:  # events were lost, and a look is coming anyway
                raise
