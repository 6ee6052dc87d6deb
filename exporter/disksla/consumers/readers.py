"""The thread that reads who uses disks: by `io.stat`, and by samples of requests.

Samples say more: requests, and the program. So requests are those of samples where there are some,
and bytes are those of `io.stat` where it can be read.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from disksla.consumers.attribution import NONE_OPEN, Names, Open, added, attributed
from disksla.consumers.consumption import UNATTRIBUTED, ConsumerReading, Consumption, WatchedDisk
from disksla.consumers.io_stat import IoStatReader
from disksla.consumers.names import program_of
from disksla.events import Taken
from disksla.events.request_sampler import RequestSampler
from disksla.events.source import EventSource, OpenEvents
from disksla.system import SourceHealth
from disksla.system.roots import Roots

SAMPLE_EVERY_S, POST_EVERY_S = 0.25, 1.0
BUSY_FOR_S = 60.0
"""Requests are sampled for this time after a disk was throttled or busy."""
SAMPLED_LATELY_S = 3.0
_STOP_TIMEOUT_S = 2.0


class Wanted(NamedTuple):
    """What is to be sampled."""

    disks: Mapping[str, tuple[int, int]]
    """The monitored disks, by their numbers."""
    is_busy: bool
    """One of them is throttled or busy now."""
    with_bytes: bool
    """Their bytes are not known otherwise, by io.stat."""


class RequestReader:
    """Posts what consumers used of disks, by samples of requests, while one is busy."""

    def __init__(
        self,
        sampler: RequestSampler,
        wanted: Callable[[], Wanted],
        names: Names,
        post: Callable[[tuple[Consumption, ...], float], None],
    ) -> None:
        """Prepare to read; `post` gets what was used, and in how many seconds."""
        self.sampler = sampler
        self._wanted = wanted
        self._names = names
        self._post = post
        self._before = NONE_OPEN
        self._parts: list[tuple[Consumption, ...]] = []
        self._counted = (0, 0)
        self._since_s: float | None = None
        """When what is not posted yet begins; None while nothing is sampled."""
        self._busy_s = -BUSY_FOR_S

    @property
    def is_sampling(self) -> bool:
        """Whether there are samples to be read before the buffers are full."""
        return self._since_s is not None

    def read(self) -> None:
        """Read once, and post once a second; the sampler counts and logs a failure."""
        try:
            self._read(self._wanted(), time.monotonic())
        except Exception as error:  # noqa: BLE001 -- by a bug: the thread must go on
            self._since_s = None
            self.sampler.fail(error)

    def _read(self, wanted: Wanted, now_s: float) -> None:
        if wanted.is_busy:
            self._busy_s = now_s
        if now_s - self._busy_s >= BUSY_FOR_S:
            self.sampler.pause()
            self._since_s = None
            return
        taken = self.sampler.take()
        self.sampler.watch(wanted.disks, with_bytes=wanted.with_bytes)
        if taken is None or self._since_s is None:  # what was sampled before is of another time
            self._begin(None if taken is None else now_s)
        else:
            self._add(taken, wanted)
            if now_s - self._since_s >= POST_EVERY_S:
                self.sampler.adapt(self._counted, now_s - self._since_s)
                self._post(added(self._parts), now_s - self._since_s)
                self._begin(now_s, self._before)

    def _begin(self, now_s: float | None, before: Open = NONE_OPEN) -> None:
        self._since_s, self._before = now_s, before
        self._parts, self._counted = [], (0, 0)

    def _add(self, taken: Taken, wanted: Wanted) -> None:
        self._before, used = attributed(
            self._before, taken, wanted.disks, self._names, with_bytes=wanted.with_bytes
        )
        self._parts.append(used)
        requests, sizes = self._counted
        self._counted = requests + taken.counted[0], sizes + taken.counted[1]


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
        sampler = RequestSampler(EventSource(open_events, "requests", roots.sysfs))
        self._requests = RequestReader(sampler, self.wanted, self.names, self.post_requests)
        self._sampled_s: float | None = None
        """When requests were attributed by samples last."""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def healths(self) -> Iterator[SourceHealth]:
        """How both work, as far as there is something to read."""
        for health in (self._io_stat.health, self._requests.sampler.health):
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
        while not self._stopping.wait(
            SAMPLE_EVERY_S if self._requests.is_sampling else POST_EVERY_S
        ):
            self._requests.read()
            now_s = time.monotonic()
            if now_s >= due_s:
                self._io_stat.read()
                due_s = now_s + POST_EVERY_S - SAMPLE_EVERY_S / 2
        self._io_stat.close()
        self._requests.sampler.close()

    def post_by_group(self, reading: ConsumerReading) -> None:
        """Post a reading of `io.stat`, without requests where samples have them."""
        sampled_s = self._sampled_s
        if sampled_s is not None and time.monotonic() - sampled_s < SAMPLED_LATELY_S:
            without = (msgspec.structs.replace(each, requests=None) for each in reading.consumers)
            reading = msgspec.structs.replace(reading, consumers=tuple(without))
        self._post(reading)

    def post_requests(self, consumers: tuple[Consumption, ...], seconds: float) -> None:
        """Post what was attributed by samples in the last seconds."""
        self._sampled_s = now_s = time.monotonic()
        self._io_stat.are_names_wanted = True
        devices = {each.device for each in consumers}
        self._post(ConsumerReading(dict.fromkeys(devices, (now_s - seconds, now_s)), consumers))

    def wanted(self) -> Wanted:
        """Return what is to be sampled."""
        disks = [*self._watched()]
        numbers = {disk.device: _number(disk) for disk in disks}
        is_busy = any(disk.is_busy for disk in disks)
        return Wanted(numbers, is_busy, with_bytes=not self._io_stat.is_reading)

    def names(self, group: int, comm: str) -> tuple[str, str]:
        """Return the consumer and the program of a sample.

        Of a group that is not known, as on cgroup v1, the program stands for the consumer.
        """
        program = program_of(comm)
        name = self._io_stat.groups.name_of(group)
        if name is None:
            self._io_stat.scan_soon()
            name = f"program {program}" if program else UNATTRIBUTED
        return name, program


def _number(disk: WatchedDisk) -> tuple[int, int]:
    major, _, minor = disk.number.partition(":")
    return int(major), int(minor)
