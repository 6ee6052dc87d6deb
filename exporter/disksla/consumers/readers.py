"""The threads that read who uses disks: by `io.stat`, and by samples of requests.

Samples say more: requests, and the program. So requests are those of samples where there are some,
and bytes are those of `io.stat` where it can be read.
"""

import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from disksla.consumers.consumption import UNATTRIBUTED, ConsumerReading, Consumption, WatchedDisk
from disksla.consumers.io_stat import IoStatReader
from disksla.consumers.names import program_of
from disksla.consumers.request_reader import RequestReader, Wanted
from disksla.events import MOST_DISKS
from disksla.events.request_sampler import RequestSampler
from disksla.events.source import EventSource, OpenEvents
from disksla.system import SourceHealth
from disksla.system.roots import Roots

SAMPLED_LATELY_S = 3.0


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
        sampler = RequestSampler(EventSource(open_events, "requests"), roots.sysfs)
        self._requests = RequestReader(sampler, self.wanted, self.names, self.post_requests)
        self._numbers = roots.sysfs / "dev" / "block"
        self._sampled: dict[str, tuple[int, int]] = {}
        """The disks that had I/O, and are still there."""
        self._sampled_s: float | None = None
        """When requests were attributed by samples last."""

    @property
    def healths(self) -> Iterator[SourceHealth]:
        """How both work, as far as there is something to read."""
        for health in (self._io_stat.health, self._requests.sampler.health):
            if health is not None:
                yield health

    def start(self) -> None:
        """Start the threads, anew after `stop`."""
        self._io_stat.start()
        self._requests.start()

    def stop(self) -> None:
        """Stop reading, and close all files and events."""
        self._requests.stop()
        self._io_stat.stop()

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
        """Return what is to be sampled: also disks that are idle now, if they had I/O before.

        For each other set of disks, events are opened anew, and that starts a process.
        """
        disks = [*self._watched()]
        is_busy = any(disk.is_busy for disk in disks)
        now = {disk.device: _number(disk) for disk in disks}
        before = {
            device: number
            for device, number in self._sampled.items()
            if number not in now.values() and self._exists(number)
        }
        known = before | now if len(before) + len(now) <= MOST_DISKS else now
        self._sampled = dict(sorted(known.items()))
        return Wanted(self._sampled, is_busy, with_bytes=not self._io_stat.is_reading)

    def _exists(self, number: tuple[int, int]) -> bool:
        return (self._numbers / "{}:{}".format(*number)).exists()

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
