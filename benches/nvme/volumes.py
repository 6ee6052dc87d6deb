"""Throttled volumes of one machine. Time is an argument.

A request waits for the limiter of its volume, then for that of the machine, and is then served by
the medium. The time in which a volume has requests that wait for a limit is the truth about it,
and what its page of statistics counts.
"""

from collections.abc import Sequence

from lab.limiter import Limiter, Request
from lab.medium import Medium
from lab.model import Meter, Service
from nvme.page import Limit, Usage

_OF_VOLUME: dict[str, Limit] = {"iops": "iops", "bandwidth": "bandwidth"}
_OF_MACHINE: dict[str, Limit] = {"iops": "machine_iops", "bandwidth": "machine_bandwidth"}


class _Volume:
    def __init__(self, service: Service) -> None:
        self.limiter = Limiter((), 0.0)
        self.medium = Medium(service)
        self.usage = Usage()


class Volumes:
    """Volumes by number, from 0; without limits at first."""

    def __init__(self, count: int, service: Service) -> None:
        self._volumes = [_Volume(service) for _ in range(count)]
        self._machine = Limiter((), 0.0, count)
        self._counted_until_s = 0.0
        self._arrived_s: dict[int, float] = {}

    def limit(self, number: int, meters: Sequence[Meter], now_s: float) -> None:
        """Change the limits of a volume."""
        self._count_waiting(now_s)
        volume = self._volumes[number]
        volume.limiter = volume.limiter.move_waiting_to(Limiter(meters, now_s))
        self._admit(now_s)

    def limit_machine(self, meters: Sequence[Meter], now_s: float) -> None:
        """Change the limits that all volumes share."""
        self._count_waiting(now_s)
        limiter = Limiter(meters, now_s, len(self._volumes))
        self._machine = self._machine.move_waiting_to(limiter)
        self._admit(now_s)

    def usage(self, number: int, now_s: float) -> Usage:
        """Return what a volume has counted up to a time."""
        self._count_waiting(now_s)
        return self._volumes[number].usage

    def clear(self, number: int, now_s: float) -> None:
        """Count from 0, as a volume that is attached again does."""
        self._count_waiting(now_s)
        self._volumes[number].usage = Usage()

    def queue_length(self, number: int) -> int:
        """Return the number of requests of a volume that have not completed."""
        volume = self._volumes[number]
        waiting = volume.limiter.waiting + self._machine.waiting_of(number)
        return waiting + volume.medium.inflight

    def submit(self, request: Request, now_s: float) -> None:
        """Queue a request, whose `disk` is the number of its volume."""
        self._count_waiting(now_s)
        self._arrived_s[request.unique] = now_s
        self._volumes[request.disk].limiter.enqueue(request._replace(disk=0))
        self._admit(now_s)

    def complete(self, now_s: float) -> list[Request]:
        """Admit the requests that need not wait, and return those that completed."""
        self._count_waiting(now_s)
        self._admit(now_s)
        completed = []
        for volume in self._volumes:
            for request in volume.medium.complete(now_s):
                latency_s = now_s - self._arrived_s.pop(request.unique)
                volume.usage.add(
                    is_write=request.is_write, size_bytes=request.size_bytes, latency_s=latency_s
                )
                completed.append(request)
        return completed

    def next_s(self) -> float | None:
        """Return the time at which `complete` is due next; None if nothing is pending."""
        times = [self._machine.next_s()]
        for volume in self._volumes:
            times += [volume.limiter.next_s(), volume.medium.next_s()]
        return min((due_s for due_s in times if due_s is not None), default=None)

    def _admit(self, now_s: float) -> None:
        """Pass on the requests that need not wait: those that remain wait for a limit."""
        for number, volume in enumerate(self._volumes):
            for request in volume.limiter.admit(now_s):
                self._machine.enqueue(request._replace(disk=number))
        for request in self._machine.admit(now_s):
            self._volumes[request.disk].medium.submit(request, now_s)

    def _count_waiting(self, now_s: float) -> None:
        """Count time in which nothing changed."""
        passed_s = now_s - self._counted_until_s
        self._counted_until_s = now_s
        machine = self._machine.binding()
        for number, volume in enumerate(self._volumes):
            own = volume.limiter.binding()
            if own is not None:
                volume.usage.exceeded_s[_OF_VOLUME[own.limit]] += passed_s
            if machine is not None and self._machine.waiting_of(number):
                volume.usage.exceeded_s[_OF_MACHINE[machine.limit]] += passed_s
