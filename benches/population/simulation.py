"""One simulated disk: loads, perhaps a limiter, a medium, and the counters of the kernel."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import msgspec

from disksla.base.units import GIB
from disksla.kernel.disks.disk import Disk as DiskRecord
from disksla.kernel.procfs.diskstats import SECTOR_BYTES
from population.events import FLUSH, Events, Level, Request
from population.limiter import Limit, Limiter, WaitingRequests
from population.loads import Span
from population.medium import Medium, MediumSpec

DEVICE = "vdx"
DISK = DiskRecord(DEVICE, 254, 16, size_bytes=100 * GIB, serial="simulated")


@dataclass(frozen=True)
class Noise:
    """How busy the machine is that the samples are taken on."""

    late_ratio: float = 0.0
    """Share of the requests whose completion is seen late."""
    late_s: float = 0.002
    """Mean of that time; exponential."""
    preempted_per_second: float = 0.0
    """How often the sampler does not run for 5 to 20 ms."""
    whole_ratio: float = 0.5
    """Share of these times in which the machine does not run at all, and sees no completion."""
    late_sample_ratio: float = 0.002
    """Share of other samples that are late by 1 to 6 ms."""
    usual_lateness_s: float = 0.00015
    """Median lateness of the others."""


@dataclass(frozen=True)
class Spec:
    """Parameters of a simulation."""

    seed: str
    spans: tuple[Span, ...]
    medium: MediumSpec
    limit: Limit | None = None
    noise: Noise = Noise()
    write_back: bool | None = True
    """False: flushes end in the kernel, which does not count them. None: it is not known."""
    counts_data_writes: bool = False
    """Ticks have exact counts of data writes."""
    reads_inflight: bool = False
    """Ticks have the requests in flight of sysfs, while the disk is active."""
    phase_s: float = 0.037
    """Time of the first tick."""
    seconds: float = 60.0

    @property
    def disk(self) -> DiskRecord:
        """Return the block device."""
        return msgspec.structs.replace(DISK, write_back=self.write_back)


class SimulatedDisk:
    """Sends requests through limiter and medium, and counts as the kernel does."""

    def __init__(self, spec: Spec, limiter: Limiter | None) -> None:
        self.chance = Random(spec.seed)
        self.events = Events()
        self.at = self.events.at
        self.preemption = Preemption(spec, self.chance)
        self.limiter: WaitingRequests | None = None
        self._medium = Medium(spec.medium, self.events, self.chance, self._complete_at)
        self._noise = spec.noise
        self._write_back = spec.write_back
        self._admit = self._serve
        if limiter is not None:
            self.limiter = WaitingRequests(limiter, self.events, self.chance, self._serve)
            self._admit = self.limiter.send
        self.level = Level()
        """Requests in flight."""
        self.inflight_by_kind = [0, 0, 0]
        self.admitted = 0
        """Reads and writes that did not wait for the limiter, or no longer."""
        self.admitted_bytes = 0
        self.completed = [0, 0, 0]
        """Reads, writes as the kernel counts, and flushes."""
        self.sectors = [0, 0]
        self.spent_s = [0.0, 0.0, 0.0]
        self.data_requests = 0
        """Reads and data writes completed."""
        self.data_bytes = 0
        for span in spec.spans:
            self.at(span.start_s, self._start, span)

    def _start(self, span: Span) -> None:
        span.load.start(self, span.end_s)

    @property
    def now_s(self) -> float:
        """Return the simulated time."""
        return self.events.now_s

    @property
    def inflight(self) -> int:
        """Return how many requests are in flight."""
        return self.level.count

    def send(self, kind: int, size_bytes: int, done: Callable[[], None]) -> None:
        """Send a request; flushes are not charged by the limiter."""
        if kind == FLUSH and not self._write_back:
            self.at(self.now_s, lambda _: done())
            return
        self.level.change(1, self.now_s)
        self.inflight_by_kind[kind] += 1
        request = Request(kind, size_bytes, self.now_s, done)
        if kind == FLUSH:
            self._medium.flush(request)
        else:
            self._admit(request)

    def _serve(self, request: Request) -> None:
        self.admitted += 1
        self.admitted_bytes += request.bytes
        self._medium.serve(request)

    def _complete_at(self, end_s: float, requests: list[Request]) -> None:
        noise = self._noise
        if noise.late_ratio and self.chance.random() < noise.late_ratio:
            end_s += self.chance.expovariate(1 / noise.late_s)
        self.at(self.preemption.seen_s(end_s), self._complete, requests)

    def _complete(self, requests: list[Request]) -> None:
        """Count requests, and let the programs go on. Merged flushes are one flush."""
        now_s = self.events.now_s
        if requests[0].kind == FLUSH:
            self.completed[2] += 1
            self.spent_s[2] += now_s - requests[0].sent_s
        self.level.change(-len(requests), now_s)
        self.inflight_by_kind[requests[0].kind] -= len(requests)
        for request in requests:
            index = 1 if request.kind else 0
            self.completed[index] += 1
            self.spent_s[index] += now_s - request.sent_s
            if request.kind != FLUSH:
                self.sectors[index] += request.bytes // SECTOR_BYTES
                self.data_requests += 1
                self.data_bytes += request.bytes
        for request in requests:
            request.done()


class Preemption:
    """Times in which the sampler, or the whole machine, does not run."""

    def __init__(self, spec: Spec, chance: Random) -> None:
        self._starts_s: list[float] = []
        self._times: list[tuple[float, bool]] = []
        at_s, per_second = 0.0, spec.noise.preempted_per_second
        while per_second and (at_s := at_s + chance.expovariate(per_second)) < spec.seconds:
            self._starts_s.append(at_s)
            at_s += chance.uniform(0.005, 0.02)
            self._times.append((at_s, chance.random() < spec.noise.whole_ratio))

    def seen_s(self, at_s: float, *, by_sampler: bool = False) -> float:
        """Return when the machine sees what happens at a time, or the sampler runs."""
        index = bisect_right(self._starts_s, at_s) - 1
        if index < 0:
            return at_s
        end_s, is_whole = self._times[index]
        return end_s if at_s < end_s and (is_whole or by_sampler) else at_s
