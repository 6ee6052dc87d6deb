"""A simulated disk behind a limiter, under a load: the samples of it, and the truth.

Time is simulated, so ten seconds of a disk take milliseconds. `run` returns the ticks that the
pipeline would have received, and for each window of the limiter the truth that its verdict is
compared with. The simulation is that of the population (benches/population), which draws its disks
at random; these here are known cases.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import msgspec

from disksla.promise.configuration.custom_terms import CustomTerms
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.tick import Tick
from population import loads as programs
from population.limiter import WINDOW_S, Bucket, Limiter, LimitName, ThrottledAt
from population.loads import Span
from population.medium import MediumSpec, ServiceTime
from population.sampler import ORIGIN_S, Sampler
from population.simulation import DEVICE, DISK, Noise, SimulatedDisk, Spec

__all__ = [
    "DEVICE",
    "DISK",
    "ORIGIN_S",
    "WINDOW_S",
    "Bucket",
    "Closed",
    "Limiter",
    "Load",
    "Medium",
    "Open",
    "Run",
    "Scenario",
    "Window",
    "additive",
    "run",
    "separate",
    "summed",
    "time_shared",
]

_JUST_AFTER_S = 5e-10
"""What happens at the end of a window belongs to it; buckets are filled a nanosecond later."""
FOREVER = ((0.53, math.inf),)
"""A load that starts half a second after the sampler, and within a window of the limiter."""


def summed(
    iops: float | None = None, bandwidth: float | None = None, **burst: float
) -> tuple[Bucket, ...]:
    """Return the buckets of limits that reads and writes share; `burst` is for the first."""
    buckets = []
    if iops is not None:
        buckets.append(Bucket(per_second=iops, read=1, write=1))
    if bandwidth is not None:
        buckets.append(Bucket(per_second=bandwidth, read_byte=1, written_byte=1))
    if burst:
        buckets[0] = replace(buckets[0], **burst)
    return tuple(buckets)


def separate(
    read_iops: float,
    write_iops: float,
    read_bandwidth: float = math.inf,
    write_bandwidth: float = math.inf,
) -> tuple[Bucket, ...]:
    """Return the buckets of separate limits of reads and writes."""
    buckets = (
        Bucket(per_second=read_iops, read=1),
        Bucket(per_second=write_iops, write=1),
        Bucket(per_second=read_bandwidth, read_byte=1),
        Bucket(per_second=write_bandwidth, written_byte=1),
    )
    return tuple(bucket for bucket in buckets if bucket.per_second < math.inf)


def time_shared(
    read_iops: float,
    write_iops: float,
    read_bandwidth: float = math.inf,
    write_bandwidth: float = math.inf,
) -> tuple[Bucket, ...]:
    """Return the buckets of r/R + w/W <= 1, in seconds: one of requests and one of bytes."""
    requests = Bucket(per_second=1, read=1 / read_iops, write=1 / write_iops)
    bytes_ = Bucket(per_second=1, read_byte=1 / read_bandwidth, written_byte=1 / write_bandwidth)
    return (requests, bytes_) if read_bandwidth < math.inf else (requests,)


def additive(
    read: tuple[float, float], write: tuple[float, float], **burst: float
) -> tuple[Bucket, ...]:
    """Return the bucket of requests that cost 1/C1 + n/C2 seconds; `read`, `write` are C1, C2."""
    return (
        Bucket(
            per_second=1,
            read=1 / read[0],
            write=1 / write[0],
            read_byte=1 / read[1],
            written_byte=1 / write[1],
            **burst,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Medium:
    """The disk behind the limiter: `servers` requests at a time, each for `service_s`."""

    service_s: float = 0.0002
    jitter: float = 0.0
    """Standard deviation of the logarithm of the service time; the mean is `service_s`."""
    servers: int = 32
    stalls: tuple[tuple[float, float], ...] = ()
    """Start and end of each time in which nothing completes."""

    def spec(self) -> MediumSpec:
        """Return the parameters of the simulation; nothing is flushed."""
        service = ServiceTime("constant", self.service_s)
        if self.jitter:
            spread = math.sqrt(math.expm1(self.jitter**2))
            service = ServiceTime("lognormal", self.service_s, spread)
        return MediumSpec(service, service, self.servers, stalls=self.stalls)


@dataclass(frozen=True, kw_only=True)
class Load(ABC):
    """The requests that are sent, and when."""

    write_share: float = 0.0
    read_bytes: int = 4096
    write_bytes: int = 4096
    active: tuple[tuple[float, float], ...] = FOREVER
    """Start and end of each time in which requests are sent."""

    @property
    def requests(self) -> programs.Requests:
        """Return what the requests are."""
        return programs.Requests(self.write_share, self.read_bytes, self.write_bytes)

    @abstractmethod
    def program(self) -> programs.Load:
        """Return the program that sends them."""

    def spans(self) -> tuple[Span, ...]:
        """Return the program at each of its times."""
        return tuple(Span(self.program(), start_s, end_s) for start_s, end_s in self.active)


@dataclass(frozen=True, kw_only=True)
class Closed(Load):
    """Closed loop: `depth` requests at a time; each that completes is followed by another."""

    depth: int
    think_s: float = 0.0
    """Time from a completion to the next request."""

    def program(self) -> programs.Load:
        return programs.Closed(self.depth, self.requests, self.think_s, thinks_evenly=True)


@dataclass(frozen=True, kw_only=True)
class Open(Load):
    """Open loop: `per_second` requests per second, independent of completions."""

    per_second: float
    poisson: bool = False

    def program(self) -> programs.Load:
        return programs.Open(self.per_second, self.requests, is_even=not self.poisson)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A simulation. Times are seconds from its start."""

    loads: tuple[Load, ...] = ()
    limiter: Limiter | None = None
    medium: Medium = Medium()
    seconds: float = 10.0
    terms: str | CustomTerms | None = None
    """Terms of the disk; None if they are unknown."""
    size_bytes: int | None = None
    """Size of the disk as sold, for terms of the catalogue."""
    sampler_phase_s: float = 0.037
    """Time from the start of a window of the limiter to a sample."""
    lateness: bool = True
    """Whether the sampler is sometimes late."""
    seed: int = 1

    def settings(self) -> Settings:
        """Return the configuration with the terms of the disk."""
        if self.terms is None:
            return Settings()
        match = DiskMatch(device=DEVICE)
        return Settings(disks=(DiskEntry(match=match, terms=self.terms, size=self.size_bytes),))

    def spec(self) -> Spec:
        """Return the parameters of the simulation, which ends when its windows are complete."""
        return Spec(
            f"{self.seed}",
            tuple(span for load in self.loads for span in load.spans()),
            self.medium.spec(),
            noise=Noise() if self.lateness else Noise(late_sample_ratio=0, usual_lateness_s=0),
            write_back=None,
            reads_inflight=True,
            phase_s=self.sampler_phase_s,
            seconds=self.seconds + WINDOW_S / 2,
        )


class Window(msgspec.Struct, frozen=True):
    """The truth of one window of the limiter."""

    start_s: float
    """Monotonic time, as in the ticks."""
    end_s: float
    ops: int
    """Requests that were admitted."""
    bytes: int
    throttled: bool
    """At least one request waited for the limiter at the end of the window. For a smooth limiter,
    which has no windows: one waited for most of the time."""
    throttled_at: ThrottledAt | None
    limit: LimitName | None
    throttled_s: float
    """Time in which at least one request waited for the limiter."""
    throttled_io_seconds: float
    """Total time that requests waited for the limiter."""
    inflight_io_seconds: float
    """Total time that requests were in flight, waiting or not."""
    levels: tuple[float, ...]
    """Tokens of the buckets at the end of the window."""


@dataclass(frozen=True)
class Run:
    """The ticks of a simulation, and the truth."""

    ticks: list[Tick]
    truth: list[Window]

    def throttled_share(self, start_s: float = 0.0, end_s: float = math.inf) -> float:
        """Return the share of throttled windows between two times of the simulation."""
        windows = [
            window
            for window in self.truth
            if start_s <= window.start_s - ORIGIN_S < end_s - WINDOW_S / 2
        ]
        return sum(window.throttled for window in windows) / len(windows)


def run(scenario: Scenario) -> Run:
    """Run the simulation; the same scenario always has the same result.

    Its ticks have close samples of all of the time, more than a sampler takes.
    """
    spec = scenario.spec()
    disk = SimulatedDisk(spec, scenario.limiter)
    truth = _Truth(disk, (scenario.limiter and scenario.limiter.window_s) or WINDOW_S)
    samples = Sampler(spec, disk).result
    disk.events.run_until(spec.seconds)
    return Run(samples.ticks, truth.windows)


class _Truth:
    """Notes the truth of each window."""

    def __init__(self, disk: SimulatedDisk, window_s: float) -> None:
        self.windows: list[Window] = []
        self._disk = disk
        self._window_s = window_s
        self._before: tuple[float, ...] = (0, 0, 0.0, 0.0, 0.0)
        disk.at(window_s + _JUST_AFTER_S, self._close_window, 1)

    def _totals(self) -> tuple[float, ...]:
        """Return requests and bytes that were admitted, and seconds, since the start."""
        disk, now_s = self._disk, self._disk.now_s
        waited = (0.0, 0.0)
        if disk.limiter is not None:
            level = disk.limiter.level
            waited = (level.some_s(now_s), level.request_s(now_s))
        return (disk.admitted, disk.admitted_bytes, *waited, disk.level.request_s(now_s))

    def _close_window(self, number: int) -> None:
        limiter = self._disk.limiter
        totals = self._totals()
        parts = [now - before for now, before in zip(totals, self._before, strict=True)]
        self._before = totals
        throttled, levels = False, tuple[float, ...]()
        if limiter is not None:
            limiter.fill_to_now()
            throttled = limiter.level.count > 0
            if limiter.is_leaky:
                throttled = parts[2] > self._window_s / 2
            levels = tuple(state.base.tokens for state in limiter.buckets)
        throttled_at, limit = limiter.throttled_by() if limiter and throttled else (None, None)
        self.windows.append(
            Window(
                start_s=ORIGIN_S + (number - 1) * self._window_s,
                end_s=ORIGIN_S + number * self._window_s,
                ops=int(parts[0]),
                bytes=int(parts[1]),
                throttled=throttled,
                throttled_at=throttled_at,
                limit=limit,
                throttled_s=parts[2],
                throttled_io_seconds=parts[3],
                inflight_io_seconds=parts[4],
                levels=levels,
            )
        )
        due_s = (number + 1) * self._window_s + _JUST_AFTER_S
        self._disk.at(due_s, self._close_window, number + 1)
