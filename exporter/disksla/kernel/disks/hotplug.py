"""Hotplug: detect within a second that block devices or mounts have changed.

There are three triggers: uevents of the kernel and of udevd; the mount table, which can be polled;
and the sampler, when it finds an unknown name in /proc/diskstats. Each of them only starts a scan
of all disks, which are passed on if they differ from the previous scan. So a lost, repeated or
forbidden event delays a change but never corrupts the result, and a periodic scan finds changes
without an event.
"""

import contextlib
import errno
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import pyudev

from disksla.base.errors import DiskslaError
from disksla.base.operating_system import SourceHealth
from disksla.base.operating_system.log import fields
from disksla.base.operating_system.machine import Roots
from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.inventory import BlockDevices

PERIOD_S = 30.0  # longest time between two scans
MIN_DELAY_S = 0.1
"""Shortest delay between the first event and the scan, because events come in bursts."""
MAX_DELAY_S = 0.5
DELAY_PER_SCAN = 20
"""The delay is this many times the duration of the last scan, to bound the cost of many events."""
RETRY_S = 1.0  # time between an unexpected error and the next attempt

_MAX_EVENTS = 1000  # read from a socket at once; if there are more, it polls as ready again
_log = logging.getLogger("disksla.disks")


class DiskWatcher:
    """Thread that reports all disks: at the start, and whenever they have changed."""

    def __init__(
        self,
        roots: Roots,
        on_change: Callable[[tuple[Disk, ...]], None],
        period_s: float = PERIOD_S,
    ) -> None:
        """Prepare the thread, which will call `on_change` with all disks, one call at a time.

        `stop` must be called in the end, even without `start`.
        """
        self._roots = roots
        self._on_change = on_change
        self._period_s = period_s
        self._delivered: tuple[Disk, ...] | None = None
        self._works = False
        self._errors = 0
        self._problems: tuple[str, ...] = ()
        self._stopping = threading.Event()
        self._wake = os.fdopen(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK), "wb", buffering=0)
        self._thread = threading.Thread(target=self._run, name="disks", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def rescan(self) -> None:
        """Request a scan. Does not block; may be called from any thread, also after `stop`."""
        with contextlib.suppress(ValueError):  # closed: the thread has stopped
            os.eventfd_write(self._wake.fileno(), 1)

    def stop(self) -> None:
        """Stop the thread and wait for it, at most for the duration of one scan."""
        self._stopping.set()
        self.rescan()
        if self._thread.ident is not None:
            self._thread.join()
        self._wake.close()

    @property
    def health(self) -> SourceHealth:
        """Whether the thread runs and its last scan succeeded; a lasting problem counts once."""
        works = self._works and self._thread.is_alive()
        return SourceHealth("disks", self._errors, works, "; ".join(self._problems) or None)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._watch()
            except Exception as error:  # noqa: BLE001 -- without this thread no change is detected
                problem = f"disk discovery failed: {type(error).__name__}: {error}"
                self._report(problem, success=False, cause=error)
                self._stopping.wait(RETRY_S)

    def _watch(self) -> None:
        """Scan, wait for an event or the period, delay, and scan again."""
        devices = BlockDevices(self._roots)
        with _mount_table(self._roots) as table:
            monitors, problems = uevent_monitors(devices.udev)
            poller = select.poll()
            poller.register(self._wake, select.POLLIN)
            for monitor in monitors:
                poller.register(monitor, select.POLLIN)
            if table is not None:
                poller.register(table, select.POLLPRI)
            while not self._stopping.is_set():
                started = time.monotonic()
                self._scan(devices, problems)
                delay_s = DELAY_PER_SCAN * (time.monotonic() - started)
                poller.poll(self._period_s * 1e3)
                self._stopping.wait(min(max(delay_s, MIN_DELAY_S), MAX_DELAY_S))
                self._drain_events(monitors)

    def _scan(self, devices: BlockDevices, permanent_problems: tuple[str, ...]) -> None:
        try:
            inventory = devices.read()
        except (DiskslaError, OSError) as error:
            self._report(*permanent_problems, str(error), success=False)
            return
        if inventory.disks != self._delivered:
            self._on_change(inventory.disks)
            self._delivered = inventory.disks
        self._report(*permanent_problems, *inventory.problems, success=True)

    def _report(self, *problems: str, success: bool, cause: Exception | None = None) -> None:
        before = self._problems
        new = [problem for problem in problems if problem not in before]
        for problem in new:
            _log.warning("disk discovery problem", extra=fields(err=problem), exc_info=cause)
        if before and not problems:
            _log.info("disk discovery recovered")
        self._works, self._problems = success, problems
        self._errors += len(new)

    def _drain_events(self, monitors: Iterable[Any]) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake.fileno())
        for monitor in monitors:
            _drain(monitor)


@contextlib.contextmanager
def _mount_table(roots: Roots) -> Iterator[IO[bytes] | None]:
    """Open the mount table for polling: POLLPRI signals that it has changed."""
    try:
        table = roots.mountinfo.open("rb")
    except OSError:  # the scan reports that it cannot be read
        yield None
        return
    with table:
        yield table


def uevent_monitors(udev: Any) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Listen to uevents; return the monitors, and problems.

    The kernel sends an event for every device; udevd sends one later, when it has read the
    properties. udevd need not run: its events arrive once it does.
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
            f"cannot listen to uevents: {error.strerror or error}; new disks are detected by"
            " their I/O, other changes with a delay; a sandbox must allow AF_NETLINK"
        )
        return (), (problem,)
    return monitors, ()


def _drain(monitor: Any) -> None:
    for _ in range(_MAX_EVENTS):
        try:
            if monitor.poll(timeout=0) is None:
                return
        except OSError as error:
            if error.errno != errno.ENOBUFS:  # events were lost, but a scan follows anyway
                raise
