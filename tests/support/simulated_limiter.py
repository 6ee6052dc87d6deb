"""A simulated disk behind a limiter, under a load: the samples of it, and the truth.

Time is simulated, so ten seconds of a disk take milliseconds. `run` returns the ticks that the
pipeline would have received, and for each window of the limiter the truth that its verdict is
compared with.

The limiter with windows is the one in the documents of Yandex Cloud: 300 IOPS are 30 requests per
100 ms, and the others wait for the next window
(https://yandex.cloud/en/docs/compute/concepts/storage-read-write). The limiter without windows,
called smooth, is that of QEMU: a leaky bucket with a depth of a tenth of a second
(https://gitlab.com/qemu-project/qemu, util/throttle.c).
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import count
from random import Random
from typing import Any, Literal, NamedTuple

import msgspec

from disksla.config.custom_terms import CustomTerms
from disksla.config.settings import DiskEntry, DiskMatch, Settings
from disksla.disks.disk import Disk
from disksla.interval.interval import Clocks
from disksla.pipeline.tick import Tick
from disksla.procfs.close_sample import CloseSample
from disksla.procfs.diskstats import SECTOR_BYTES
from disksla.units import GIB

WINDOW_S = 0.1
ORIGIN_S = 1000.0
"""Monotonic time at which a simulation begins."""
FOREVER = ((0.53, math.inf),)
"""A load that starts half a second after the sampler, and within a window of the limiter."""

DEVICE = "vdx"
DISK = Disk(DEVICE, 254, 16, size_bytes=100 * GIB, serial="simulated")

_MONOTONIC_TO_REALTIME_S = 1.7e9
_JIFFY_MS = 4
_JIFFY_S = _JIFFY_MS / 1000
_READ_DELAY_S = 50e-6
"""From the clocks to /proc/diskstats, and from there to sysfs."""
_STEPS = 10
"""Close samples per window."""
_SHORTEST_TIMER_S = 1e-6
_ROUNDING = 1e-9
"""Rounding error, as a share of the tokens of a second."""

LimitedBy = Literal["iops", "bandwidth"]
ThrottledAt = Literal["base", "burst"]


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """Token bucket: a request is admitted while there are tokens, even if it overdraws.

    Tokens are I/Os, bytes or seconds of service, as are the prices. Without a peak all tokens may
    be spent at once; without a capacity it is the fill of one window.
    """

    per_second: float
    read: float = 0.0
    """Price of a read request."""
    write: float = 0.0
    read_byte: float = 0.0
    written_byte: float = 0.0
    peak_per_second: float | None = None
    capacity: float | None = None
    initial: float | None = None
    """Tokens at the start; None is full."""


@dataclass(frozen=True, kw_only=True)
class Limiter:
    """Makes requests wait, first in, first out, while any bucket that they use is empty."""

    buckets: tuple[Bucket, ...]
    window_s: float | None = WINDOW_S
    """Buckets are filled once per window; None: continuously."""
    apart: bool = False
    """Reads and writes wait in separate queues."""
    changes: tuple[tuple[float, tuple[Bucket, ...]], ...] = ()
    """Times at which other buckets replace the present ones, one for one; tokens are kept."""


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
    byte_s: float = 0.0
    """Service time that each byte adds."""
    jitter: float = 0.0
    """Standard deviation of the logarithm of the service time; the mean is `service_s`."""
    servers: int = 32
    stalls: tuple[tuple[float, float], ...] = ()
    """Start and end of each time in which nothing completes."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """The requests that are sent, and when."""

    write_share: float = 0.0
    read_bytes: int = 4096
    write_bytes: int = 4096
    active: tuple[tuple[float, float], ...] = FOREVER
    """Start and end of each time in which requests are sent."""


@dataclass(frozen=True, kw_only=True)
class Closed(Load):
    """Closed loop: `depth` requests at a time; each that completes is followed by another."""

    depth: int
    think_s: float = 0.0
    """Time from a completion to the next request."""


@dataclass(frozen=True, kw_only=True)
class Open(Load):
    """Open loop: `per_second` requests per second, independent of completions."""

    per_second: float
    poisson: bool = False


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
    limit: LimitedBy | None
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
    return _Simulation(scenario).run()


class _BucketState:
    """One bucket in use."""

    __slots__ = (
        "bucket",
        "byte",
        "capacity",
        "depth",
        "filled_s",
        "op",
        "peak_tokens",
        "rounding",
        "tokens",
    )

    def __init__(self, bucket: Bucket, window_s: float) -> None:
        self.peak_tokens = math.inf
        self.tokens = math.inf
        self.filled_s = 0.0
        self.change(bucket, window_s)
        if bucket.initial is not None:
            self.tokens = min(bucket.initial, self.capacity)

    def change(self, bucket: Bucket, window_s: float) -> None:
        self.bucket = bucket
        self.op = (bucket.read, bucket.write)
        self.byte = (bucket.read_byte, bucket.written_byte)
        base = bucket.per_second * window_s
        self.capacity = base if bucket.capacity is None else bucket.capacity
        self.depth = (bucket.peak_per_second or math.inf) * window_s
        self.rounding = bucket.per_second * _ROUNDING
        self.tokens = min(self.tokens, self.capacity)
        self.peak_tokens = min(self.peak_tokens, self.depth)

    def fill(self, seconds: float) -> None:
        self.tokens = min(self.capacity, self.tokens + self.bucket.per_second * seconds)
        if self.depth < math.inf:
            peak = self.bucket.peak_per_second or math.inf
            self.peak_tokens = min(self.depth, self.peak_tokens + peak * seconds)

    def wait_s(self) -> float:
        """Return the time until the bucket has tokens."""
        peak = self.bucket.peak_per_second or math.inf
        return max(-self.tokens / self.bucket.per_second, -self.peak_tokens / peak)


class _Request:
    __slots__ = ("op", "sent_s", "size", "stream")

    def __init__(self, sent_s: float, op: int, size: int, stream: "_Stream") -> None:
        self.sent_s = sent_s
        self.op = op
        self.size = size
        self.stream = stream


class _Queue(deque[_Request]):
    """Requests that wait for the limiter."""

    is_timed = False
    """A smooth limiter has a timer for it."""


class _Stream:
    """A load being simulated."""

    __slots__ = ("depth", "load", "think_s")

    def __init__(self, load: Load) -> None:
        self.load = load
        self.depth = 0
        """Requests of a closed loop that are in flight, or in their think time."""
        self.think_s = load.think_s if isinstance(load, Closed) else None
        """None for an open loop, where no request follows a completion."""


class _Arrival(NamedTuple):
    """A future request of an open loop."""

    stream: _Stream
    load: Open
    start_s: float
    end_s: float
    number: int


class _Simulation:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.medium = scenario.medium
        self.limiter = scenario.limiter
        self.window_s = (self.limiter and self.limiter.window_s) or WINDOW_S
        self.smooth = self.limiter is not None and self.limiter.window_s is None
        self.random = Random(scenario.seed)
        self.events: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self.order = count()
        self.now_s = 0.0

        buckets = self.limiter.buckets if self.limiter else ()
        self.buckets = [_BucketState(bucket, self.window_s) for bucket in buckets]
        apart = self.limiter is not None and self.limiter.apart
        self.queues = [_Queue() for _ in range(2 if apart else 1)]
        self.waiting = 0
        """Requests that wait for the limiter."""
        self.last = _Request(0.0, 0, 0, _Stream(Load()))
        """The request that was admitted last."""
        self.servers = [0.0] * self.medium.servers
        heapify(self.servers)

        self.inflight = [0, 0]
        self.ios = [0, 0]
        self.sectors = [0, 0]
        self.io_ns = [0, 0]
        self.busy_s = 0.0

        self.truth: list[Window] = []
        self.ops = 0
        self.bytes = 0
        self.throttled_s = 0.0
        self.throttled_io_s = 0.0
        self.inflight_io_s = 0.0

        self.ticks: list[Tick] = []
        self.close: list[CloseSample] = []
        self.last_sample: tuple[int, ...] | None = None
        self.is_active = False

    def run(self) -> Run:
        self._at(self.window_s, self._close_window, 1)
        if self.limiter is not None:
            for at_s, buckets in self.limiter.changes:
                self._at(at_s, self._change, buckets)
        for load in self.scenario.loads:
            stream = _Stream(load)
            for start_s, end_s in load.active:
                if isinstance(load, Closed):
                    self._at(start_s, self._fill_loop, (stream, load.depth))
                elif isinstance(load, Open):
                    self._at(start_s, self._arrive, _Arrival(stream, load, start_s, end_s, 0))
        self._at_tick(0)
        events = self.events
        # The windows before the last sample are complete.
        while events[0][0] <= self.scenario.seconds + self.window_s / 2:
            at_s, _, act, argument = heappop(events)
            self._pass(at_s - self.now_s)
            self.now_s = at_s
            act(argument)
        return Run(self.ticks, self.truth)

    def _at(self, at_s: float, act: Callable[[Any], None], argument: object) -> None:
        heappush(self.events, (at_s, next(self.order), act, argument))

    def _pass(self, seconds: float) -> None:
        inflight = self.inflight[0] + self.inflight[1]
        if inflight:
            self.busy_s += seconds
            self.inflight_io_s += inflight * seconds
            if self.waiting:
                self.throttled_s += seconds
                self.throttled_io_s += self.waiting * seconds

    # The load

    def _fill_loop(self, of: tuple[_Stream, int]) -> None:
        stream, depth = of
        while stream.depth < depth:
            stream.depth += 1
            self._send(stream)

    def _send_next(self, stream: _Stream) -> None:
        """Send another request if the load is still active."""
        now_s = self.now_s
        for start_s, end_s in stream.load.active:
            if start_s <= now_s < end_s:
                self._send(stream)
                return
        stream.depth -= 1

    def _arrive(self, arrival: _Arrival) -> None:
        stream, load, start_s, end_s, number = arrival
        self._send(stream)
        if load.poisson:
            next_s = self.now_s + self.random.expovariate(load.per_second)
        else:
            next_s = start_s + (number + 1) / load.per_second
        if next_s < end_s:
            self._at(next_s, self._arrive, _Arrival(stream, load, start_s, end_s, number + 1))

    def _send(self, stream: _Stream) -> None:
        load = stream.load
        op = int(load.write_share > 0 and self.random.random() < load.write_share)
        request = _Request(self.now_s, op, load.write_bytes if op else load.read_bytes, stream)
        self.inflight[op] += 1
        queue = self.queues[op] if len(self.queues) > 1 else self.queues[0]
        queue.append(request)
        self.waiting += 1
        if len(queue) == 1:
            self._admit(queue)

    # The limiter

    def _admit(self, queue: _Queue) -> None:
        if self.smooth:
            self._fill_until_now()
        while queue:
            request = queue[0]
            blocking = self._blocking(request)
            if blocking is not None:
                if self.smooth and not queue.is_timed:
                    queue.is_timed = True
                    wait_s = max(blocking.wait_s(), _SHORTEST_TIMER_S)
                    self._at(self.now_s + wait_s, self._on_timer, queue)
                return
            queue.popleft()
            self.waiting -= 1
            op, size = request.op, request.size
            for state in self.buckets:
                price = state.op[op] + state.byte[op] * size
                state.tokens -= price
                state.peak_tokens -= price
            self.last = request
            self.ops += 1
            self.bytes += size
            self._serve(request)

    def _blocking(self, request: _Request) -> _BucketState | None:
        """Return the bucket that a request waits longest for; None if it may be admitted."""
        op = request.op
        blocking = None
        for state in self.buckets:
            rounding = -state.rounding if self.smooth else state.rounding
            if (
                (state.tokens <= rounding or state.peak_tokens <= rounding)
                and (state.op[op] or state.byte[op])
                and (blocking is None or state.wait_s() > blocking.wait_s())
            ):
                blocking = state
        return blocking

    def _fill_until_now(self) -> None:
        for state in self.buckets:
            state.fill(self.now_s - state.filled_s)
            state.filled_s = self.now_s

    def _on_timer(self, queue: _Queue) -> None:
        queue.is_timed = False
        self._admit(queue)

    def _change(self, buckets: tuple[Bucket, ...]) -> None:
        if self.smooth:
            self._fill_until_now()
        for state, bucket in zip(self.buckets, buckets, strict=True):
            state.change(bucket, self.window_s)

    def _close_window(self, number: int) -> None:
        if self.smooth:
            self._fill_until_now()
        throttled = self.throttled_s > self.window_s / 2 if self.smooth else self.waiting > 0
        throttled_at, limit = self._throttled_by() if throttled else (None, None)
        self.truth.append(
            Window(
                ORIGIN_S + (number - 1) * self.window_s,
                ORIGIN_S + number * self.window_s,
                self.ops,
                self.bytes,
                throttled,
                throttled_at,
                limit,
                self.throttled_s,
                self.throttled_io_s,
                self.inflight_io_s,
                tuple(state.tokens for state in self.buckets),
            )
        )
        self.ops = self.bytes = 0
        self.throttled_s = self.throttled_io_s = self.inflight_io_s = 0.0
        self._at((number + 1) * self.window_s, self._close_window, number + 1)
        if not self.smooth:
            for state in self.buckets:
                state.fill(self.window_s)
            for queue in self.queues:
                self._admit(queue)

    def _throttled_by(self) -> tuple[ThrottledAt, LimitedBy]:
        """Return what the next request waits for, or the last one waited for."""
        request = next((queue[0] for queue in self.queues if queue), self.last)
        blocking = self._blocking(request) or max(self.buckets, key=_BucketState.wait_s)
        of_bytes = blocking.byte[request.op] * request.size > blocking.op[request.op]
        is_base = blocking.tokens <= blocking.rounding or blocking.bucket.peak_per_second is None
        return "base" if is_base else "burst", "bandwidth" if of_bytes else "iops"

    # The disk

    def _serve(self, request: _Request) -> None:
        medium = self.medium
        service_s = medium.service_s + medium.byte_s * request.size
        if medium.jitter:
            service_s *= self.random.lognormvariate(-(medium.jitter**2) / 2, medium.jitter)
        end_s = max(self.now_s, self.servers[0])
        start_s, end_s = end_s, end_s + service_s
        for stall_start_s, stall_end_s in medium.stalls:
            if start_s < stall_end_s and end_s > stall_start_s:
                end_s += stall_end_s - max(stall_start_s, start_s)
        heappop(self.servers)
        heappush(self.servers, end_s)
        heappush(self.events, (end_s, next(self.order), self._complete, request))

    def _complete(self, request: _Request) -> None:
        op = request.op
        self.inflight[op] -= 1
        self.ios[op] += 1
        self.sectors[op] += request.size // SECTOR_BYTES
        self.io_ns[op] += round((self.now_s - request.sent_s) * 1e9)
        think_s = request.stream.think_s
        if think_s:
            self._at(self.now_s + think_s, self._send_next, request.stream)
        elif think_s is not None:
            self._send_next(request.stream)

    # The sampler

    def _at_tick(self, number: int) -> None:
        late_s = 0.0
        if self.scenario.lateness:
            late_s = self.random.lognormvariate(math.log(0.00015), 0.5)
            if self.random.random() < 0.002:
                late_s = self.random.uniform(0.001, 0.018)
        due_s = self.scenario.sampler_phase_s + number * WINDOW_S
        self._at(due_s + late_s + _READ_DELAY_S, self._read_diskstats, (number, late_s))
        for step in range(1, _STEPS):
            step_s = due_s - WINDOW_S * (1 - step / _STEPS)
            if step_s > self.now_s:
                self._at(step_s, self._read_close, None)

    def _read_close(self, _: None) -> None:
        reads, writes = self.ios
        read_sectors, written_sectors = self.sectors
        at_s, inflight = round(ORIGIN_S + self.now_s, 5), sum(self.inflight)
        self.close.append(
            CloseSample(at_s, reads, writes, read_sectors, written_sectors, inflight)
        )

    def _read_diskstats(self, of: tuple[int, float]) -> None:
        number, late_s = of
        reads, writes = self.ios
        read_sectors, written_sectors = self.sectors
        read_ns, write_ns = self.io_ns
        counters = (
            *(reads, 0, read_sectors, read_ns // 10**6),
            *(writes, 0, written_sectors, write_ns // 10**6),
            sum(self.inflight),
            int(self.busy_s / _JIFFY_S) * _JIFFY_MS,
            (read_ns + write_ns) // 10**6,
            *(0, 0, 0, 0, 0, 0),
        )
        clock_s = self.now_s - _READ_DELAY_S
        tick = Tick(
            Clocks(ORIGIN_S + clock_s, ORIGIN_S + clock_s, _MONOTONIC_TO_REALTIME_S + clock_s),
            f" {DISK.major} {DISK.minor:7d} {DISK.name} {' '.join(map(str, counters))}\n",
            lateness_s=late_s,
            disks=(DISK,) if number == 0 else None,
        )
        self._at(self.now_s + _READ_DELAY_S, self._read_inflight, tick)
        self._at_tick(number + 1)

    def _read_inflight(self, tick: Tick) -> None:
        """Complete a tick; sysfs is read only if the device was active at the last sample."""
        reads, writes = self.inflight
        self._read_close(None)
        tick = msgspec.structs.replace(tick, close={DEVICE: tuple(self.close)})
        self.close = []
        if self.is_active:
            tick = msgspec.structs.replace(tick, inflight={DEVICE: (reads, writes)})
        self.ticks.append(tick)
        sample = (*self.ios, *self.io_ns)
        has_changed = self.last_sample is not None and sample != self.last_sample
        self.is_active = has_changed or reads + writes > 0
        self.last_sample = sample
