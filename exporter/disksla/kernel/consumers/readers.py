"""The thread that reads who uses disks: by `io.stat`, and by samples of requests.

Samples say more: requests, and the program. So requests are those of samples where there are some,
and bytes are those of `io.stat` where it can be read.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from disksla.base.operating_system import SourceHealth
from disksla.base.operating_system.machine import Roots
from disksla.kernel.consumers.attribution import NONE_OPEN, Open, attributed, total_consumption
from disksla.kernel.consumers.consumption import (
    UNATTRIBUTED,
    ConsumerReading,
    Consumption,
    WatchedDisk,
)
from disksla.kernel.consumers.io_stat import IoStatReader
from disksla.kernel.consumers.names import program_of
from disksla.kernel.performance_events import MOST_DISKS
from disksla.kernel.performance_events.request_sampler import RequestSampler
from disksla.kernel.performance_events.source import EventSource, OpenEvents

SAMPLE_EVERY_S, POST_EVERY_S = 0.25, 1.0
BUSY_FOR_S = 60.0  # requests are sampled for this time after a disk was throttled or busy
SAMPLED_LATELY_S = 3.0
_STOP_TIMEOUT_S = 2.0


class ConsumerReaders:
    """Posts who uses the disks, from `start` until `stop`."""

    def __init__(
        self,
        roots: Roots,
        open_events: OpenEvents,
        post: Callable[[ConsumerReading], None],
        watched: Callable[[], Iterable[WatchedDisk]],
    ) -> None:
        """Prepare to read; `watched` returns the monitored disks that have I/O now."""
        self._post = post
        self._watched = watched
        self._io_stat = IoStatReader(roots, self.post_by_group, watched)
        self.sampler = RequestSampler(EventSource(open_events, "requests", roots.sysfs))
        self._open = NONE_OPEN
        self._parts: list[tuple[Consumption, ...]] = []
        self._counted = (0, 0)
        self._since_s: float | None = None
        """When what is sampled and not posted yet begins; None while nothing is sampled."""
        self._busy_s: dict[str, float] = {}  # when each disk was busy last, by name
        self._numbers = roots.sysfs / "dev" / "block"
        self._sampled: dict[str, tuple[int, int]] = {}
        """The disks that had I/O, and are still there."""
        self._sampled_s: float | None = None  # when requests were attributed by samples last
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def healths(self) -> Iterator[SourceHealth]:
        """How both work, as far as there is something to read."""
        for health in (self._io_stat.health, self.sampler.health):
            if health is not None:
                yield health

    def start(self) -> None:
        """Start the thread, anew after `stop`."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="consumers", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop reading, and close all files and events."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT_S)

    def _run(self) -> None:
        """Read samples four times a second where there are some, and all else once a second."""
        due_s = 0.0
        while not self._stopping.wait(SAMPLE_EVERY_S if self.is_sampling else POST_EVERY_S):
            self.read_requests()
            now_s = time.monotonic()
            if now_s >= due_s:
                self._io_stat.read()
                due_s = now_s + POST_EVERY_S - SAMPLE_EVERY_S / 2
        self._io_stat.close()
        self.sampler.close()

    @property
    def is_sampling(self) -> bool:
        """Whether there are samples to be read before the buffers are full."""
        return self._since_s is not None

    def read_requests(self) -> None:
        """Read samples, and post them once a second; the sampler counts and logs a failure."""
        try:
            self._read_requests([*self._watched()], time.monotonic())
        except Exception as error:  # noqa: BLE001 -- by a bug: the thread must go on
            self._since_s = None
            self.sampler.fail(error)

    def _read_requests(self, disks: list[WatchedDisk], now_s: float) -> None:
        self._busy_s |= {disk.device: now_s for disk in disks if disk.is_busy}
        self._busy_s = {
            device: at_s for device, at_s in self._busy_s.items() if now_s - at_s < BUSY_FOR_S
        }
        if not self._busy_s:
            self.sampler.pause()
            self._since_s = None
            return
        numbers = self.to_sample(disks)
        with_bytes = not self._io_stat.is_reading  # else they are known by io.stat
        taken = self.sampler.take()
        self.sampler.watch(numbers, with_bytes=with_bytes)
        if taken is None or self._since_s is None:  # what was sampled before is of another time
            self._begin(None if taken is None else now_s, NONE_OPEN)
            return
        self._open, used = attributed(
            self._open, taken, numbers, self.names, with_bytes=with_bytes
        )
        self._parts.append(used)
        requests, sizes = self._counted
        self._counted = requests + taken.counted[0], sizes + taken.counted[1]
        seconds = now_s - self._since_s
        if seconds >= POST_EVERY_S:
            self.sampler.adapt(self._counted, seconds)
            shown = self._busy_s.keys() - self._io_stat.limited()
            found = (each for each in total_consumption(self._parts) if each.device in shown)
            self.post_requests(tuple(found), seconds)
            self._begin(now_s, self._open)

    def _begin(self, now_s: float | None, before: Open) -> None:
        self._since_s, self._open = now_s, before
        self._parts, self._counted = [], (0, 0)

    def post_by_group(self, reading: ConsumerReading) -> None:
        """Post a reading of `io.stat`, without requests where samples have them.

        They have none of a disk at which a group has a limit of its own.
        """
        sampled_s = self._sampled_s
        if sampled_s is not None and time.monotonic() - sampled_s < SAMPLED_LATELY_S:
            limited = self._io_stat.limited()
            without = (
                each if each.device in limited else msgspec.structs.replace(each, requests=None)
                for each in reading.consumers
            )
            reading = msgspec.structs.replace(reading, consumers=tuple(without))
        self._post(reading)

    def post_requests(self, consumers: tuple[Consumption, ...], seconds: float) -> None:
        """Post what was attributed by samples in the last seconds."""
        self._sampled_s = now_s = time.monotonic()
        self._io_stat.are_names_wanted = True
        devices = {each.device for each in consumers}
        self._post(ConsumerReading(dict.fromkeys(devices, (now_s - seconds, now_s)), consumers))

    def to_sample(self, disks: Iterable[WatchedDisk]) -> dict[str, tuple[int, int]]:
        """Return the disks to be sampled: also those that are idle now, if they had I/O before.

        For each other set of disks, events are opened anew, and that starts a process.
        """
        now = {disk.device: _number(disk) for disk in disks}
        before = {
            device: number
            for device, number in self._sampled.items()
            if number not in now.values() and self._exists(number)
        }
        known = before | now if len(before) + len(now) <= MOST_DISKS else now
        self._sampled = dict(sorted(known.items()))
        return self._sampled

    def _exists(self, number: tuple[int, int]) -> bool:
        return (self._numbers / "{}:{}".format(*number)).exists()

    def names(self, group: int, comm: str) -> tuple[str, str]:
        """Return the consumer and the program of a sample.

        Of a group that has no name, the program stands for the consumer.
        """
        program = program_of(comm)
        name = self._io_stat.name_of(group)
        if name is None:
            self._io_stat.scan_soon()
        return name or (f"program {program}" if program else UNATTRIBUTED), program


def _number(disk: WatchedDisk) -> tuple[int, int]:
    major, _, minor = disk.number.partition(":")
    return int(major), int(minor)
