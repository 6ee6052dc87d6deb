"""A simulated disk behind a limiter, under a load, as the sampler sees it and as it really was.

Time is simulated, so ten seconds of a disk cost milliseconds. `run` gives the ticks that the
pipeline would have been fed, and for each window of the limiter the truth that a verdict on it
is held against.

The windowed limiter is the one that Yandex Cloud's documents tell of: 300 IOPS are 30 requests
per 100 ms, the rest waits for the next window
(https://yandex.cloud/en/docs/compute/concepts/storage-read-write). The smooth one is that of
QEMU: a bucket one tenth of a second deep that leaks all the time
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
from disksla.pipeline.tick import Tick
from disksla.procfs.diskstats import SECTOR_BYTES
from disksla.units import GIB
from disksla.verdict.interval import Clocks

WINDOW_S = 0.1
ORIGIN_S = 1000.0
"""Monotonic time at which a simulation begins."""
FOREVER = ((0.53, math.inf),)
"""A load that begins half a second after the sampler did, and within a window."""

DEVICE = "vdx"
DISK = Disk(DEVICE, 254, 16, size_bytes=100 * GIB, serial="simulated")

_MONOTONIC_TO_REALTIME_S = 1.7e9
_JIFFY_MS = 4
_JIFFY_S = _JIFFY_MS / 1000
_READ_DELAY_S = 50e-6
"""From the clocks to /proc/diskstats, and from there to sysfs."""
_SHORTEST_TIMER_S = 1e-6
_HAIR = 1e-9
"""Share of a second's tokens that is rounding error."""

LimitedBy = Literal["iops", "bandwidth"]
HeldAt = Literal["base", "burst"]


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """Tokens that requests spend; a request may go while there are any, even if it overdraws.

    Tokens are I/Os, bytes or seconds of service: whatever the prices are in. Without a peak all
    tokens may be spent at once; without a capacity it is what one window brings.
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
    """Level at the start; full if not given."""


@dataclass(frozen=True, kw_only=True)
class Limiter:
    """Holds requests back, first in, first out, while any bucket that they spend is empty."""

    buckets: tuple[Bucket, ...]
    window_s: float | None = WINDOW_S
    """Buckets are filled once per window; None: all the time."""
    apart: bool = False
    """Reads and writes wait in queues of their own."""
    changes: tuple[tuple[float, tuple[Bucket, ...]], ...] = ()
    """Buckets that replace the others, one for one, from a time on; levels are kept."""


def summed(
    iops: float | None = None, bandwidth: float | None = None, **burst: float
) -> tuple[Bucket, ...]:
    """Give the buckets of limits that reads and writes share; `burst` is for the first."""
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
    """Give the buckets of limits of which reads and writes have their own."""
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
    """Give the buckets of r/R + w/W <= 1, for requests and so for bytes, in seconds."""
    requests = Bucket(per_second=1, read=1 / read_iops, write=1 / write_iops)
    bytes_ = Bucket(per_second=1, read_byte=1 / read_bandwidth, written_byte=1 / write_bandwidth)
    return (requests, bytes_) if read_bandwidth < math.inf else (requests,)


def additive(
    read: tuple[float, float], write: tuple[float, float], **burst: float
) -> tuple[Bucket, ...]:
    """Give the bucket of requests that take 1/C1 + n/C2 seconds; `read` and `write` are C1, C2."""
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
    """The disk behind the limiter: so many requests at a time, each for so long."""

    service_s: float = 0.0002
    byte_s: float = 0.0
    """Service time that each byte adds."""
    jitter: float = 0.0
    """Standard deviation of the logarithm of the service time; its mean stays."""
    servers: int = 32
    stalls: tuple[tuple[float, float], ...] = ()
    """Times from and to which nothing gets on."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """Which requests are sent, and when."""

    write_share: float = 0.0
    read_bytes: int = 4096
    write_bytes: int = 4096
    active: tuple[tuple[float, float], ...] = FOREVER
    """Times from and to which requests are sent."""


@dataclass(frozen=True, kw_only=True)
class Closed(Load):
    """So many requests at a time: one that completes is followed by another."""

    depth: int
    think_s: float = 0.0
    """From the completion to the next request."""


@dataclass(frozen=True, kw_only=True)
class Open(Load):
    """So many requests per second, whatever becomes of them."""

    per_second: float
    poisson: bool = False


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What is simulated. Times are seconds from its start."""

    loads: tuple[Load, ...] = ()
    limiter: Limiter | None = None
    medium: Medium = Medium()
    seconds: float = 10.0
    terms: str | CustomTerms | None = None
    """What was promised."""
    size_bytes: int | None = None
    """Size that was sold, for terms of the catalogue."""
    sampler_phase_s: float = 0.037
    """From the start of a window of the limiter to a sample."""
    lateness: bool = True
    """Whether the sampler wakes up late now and then."""
    seed: int = 1

    def settings(self) -> Settings:
        """Give the configuration that tells what was promised."""
        if self.terms is None:
            return Settings()
        match = DiskMatch(device=DEVICE)
        return Settings(
            disks=(DiskEntry(match=match, terms=self.terms, size_bytes=self.size_bytes),)
        )


class Window(msgspec.Struct, frozen=True):
    """What really happened within one window of the limiter."""

    start_s: float
    """Monotonic time, as in the ticks."""
    end_s: float
    ops: int
    """Requests that were let through."""
    bytes: int
    held: bool
    """At least one request was being held when the window closed; a smooth limiter has no
    windows: with it, one was being held for most of the time."""
    held_at: HeldAt | None
    limit: LimitedBy | None
    held_s: float
    """How long at least one request was being held."""
    held_io_seconds: float
    """The time that requests were held, all together."""
    inflight_io_seconds: float
    """The time that requests were in flight, all together, held or not."""
    levels: tuple[float, ...]
    """Of the buckets, when the window closed."""


@dataclass(frozen=True)
class Run:
    """What the sampler saw, and what was true."""

    ticks: list[Tick]
    truth: list[Window]

    def held_share(self, start_s: float = 0.0, end_s: float = math.inf) -> float:
        """Give the share of windows that were held, between two times of the simulation."""
        windows = [
            window
            for window in self.truth
            if start_s <= window.start_s - ORIGIN_S < end_s - WINDOW_S / 2
        ]
        return sum(window.held for window in windows) / len(windows)


def run(scenario: Scenario) -> Run:
    """Simulate; the same scenario gives the same run."""
    return _World(scenario).run()


class _Level:
    """One bucket in use."""

    __slots__ = ("byte", "capacity", "depth", "filled_s", "hair", "left", "level", "of", "op")

    def __init__(self, bucket: Bucket, window_s: float) -> None:
        self.left = math.inf
        self.level = math.inf
        self.filled_s = 0.0
        self.become(bucket, window_s)
        if bucket.initial is not None:
            self.level = min(bucket.initial, self.capacity)

    def become(self, bucket: Bucket, window_s: float) -> None:
        self.of = bucket
        self.op = (bucket.read, bucket.write)
        self.byte = (bucket.read_byte, bucket.written_byte)
        base = bucket.per_second * window_s
        self.capacity = base if bucket.capacity is None else bucket.capacity
        self.depth = (bucket.peak_per_second or math.inf) * window_s
        self.hair = bucket.per_second * _HAIR
        self.level = min(self.level, self.capacity)
        self.left = min(self.left, self.depth)

    def fill(self, seconds: float) -> None:
        self.level = min(self.capacity, self.level + self.of.per_second * seconds)
        if self.depth < math.inf:
            peak = self.of.peak_per_second or math.inf
            self.left = min(self.depth, self.left + peak * seconds)

    def missing_s(self) -> float:
        """How long it takes until something may be spent."""
        peak = self.of.peak_per_second or math.inf
        return max(-self.level / self.of.per_second, -self.left / peak)


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
    """A smooth limiter will look at it again."""


class _Stream:
    """A load at work."""

    __slots__ = ("depth", "load", "think_s")

    def __init__(self, load: Load) -> None:
        self.load = load
        self.depth = 0
        """Requests of a closed loop that are in flight, or being thought about."""
        self.think_s = load.think_s if isinstance(load, Closed) else None
        """None where nothing follows a request."""


class _Arrival(NamedTuple):
    """A request of an open load, to come."""

    stream: _Stream
    load: Open
    start_s: float
    end_s: float
    number: int


class _World:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.medium = scenario.medium
        self.limiter = scenario.limiter
        self.window_s = (self.limiter and self.limiter.window_s) or WINDOW_S
        self.smooth = self.limiter is not None and self.limiter.window_s is None
        self.dice = Random(scenario.seed)
        self.events: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self.order = count()
        self.now_s = 0.0

        buckets = self.limiter.buckets if self.limiter else ()
        self.levels = [_Level(bucket, self.window_s) for bucket in buckets]
        apart = self.limiter is not None and self.limiter.apart
        self.queues = [_Queue() for _ in range(2 if apart else 1)]
        self.held = 0
        self.last = _Request(0.0, 0, 0, _Stream(Load()))
        """What was let through last."""
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
        self.held_s = 0.0
        self.held_io_s = 0.0
        self.inflight_io_s = 0.0

        self.ticks: list[Tick] = []
        self.seen: tuple[int, ...] | None = None
        self.awake = False

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
        # The windows that the last sample sees are complete.
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
            if self.held:
                self.held_s += seconds
                self.held_io_s += self.held * seconds

    # The load

    def _fill_loop(self, of: tuple[_Stream, int]) -> None:
        stream, depth = of
        while stream.depth < depth:
            stream.depth += 1
            self._send(stream)

    def _follow(self, stream: _Stream) -> None:
        """Send another request if it is still time to."""
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
            next_s = self.now_s + self.dice.expovariate(load.per_second)
        else:
            next_s = start_s + (number + 1) / load.per_second
        if next_s < end_s:
            self._at(next_s, self._arrive, _Arrival(stream, load, start_s, end_s, number + 1))

    def _send(self, stream: _Stream) -> None:
        load = stream.load
        op = int(load.write_share > 0 and self.dice.random() < load.write_share)
        request = _Request(self.now_s, op, load.write_bytes if op else load.read_bytes, stream)
        self.inflight[op] += 1
        queue = self.queues[op] if len(self.queues) > 1 else self.queues[0]
        queue.append(request)
        self.held += 1
        if len(queue) == 1:
            self._let_go(queue)

    # The limiter

    def _let_go(self, queue: _Queue) -> None:
        if self.smooth:
            self._fill_smoothly()
        while queue:
            request = queue[0]
            blocking = self._blocking(request)
            if blocking is not None:
                if self.smooth and not queue.is_timed:
                    queue.is_timed = True
                    wait_s = max(blocking.missing_s(), _SHORTEST_TIMER_S)
                    self._at(self.now_s + wait_s, self._wake, queue)
                return
            queue.popleft()
            self.held -= 1
            op, size = request.op, request.size
            for level in self.levels:
                price = level.op[op] + level.byte[op] * size
                level.level -= price
                level.left -= price
            self.last = request
            self.ops += 1
            self.bytes += size
            self._serve(request)

    def _blocking(self, request: _Request) -> _Level | None:
        """Give the bucket that a request has to wait for longest."""
        op = request.op
        blocking = None
        for level in self.levels:
            hair = -level.hair if self.smooth else level.hair
            if (
                (level.level <= hair or level.left <= hair)
                and (level.op[op] or level.byte[op])
                and (blocking is None or level.missing_s() > blocking.missing_s())
            ):
                blocking = level
        return blocking

    def _fill_smoothly(self) -> None:
        for level in self.levels:
            level.fill(self.now_s - level.filled_s)
            level.filled_s = self.now_s

    def _wake(self, queue: _Queue) -> None:
        queue.is_timed = False
        self._let_go(queue)

    def _change(self, buckets: tuple[Bucket, ...]) -> None:
        if self.smooth:
            self._fill_smoothly()
        for level, bucket in zip(self.levels, buckets, strict=True):
            level.become(bucket, self.window_s)

    def _close_window(self, number: int) -> None:
        if self.smooth:
            self._fill_smoothly()
        held = self.held_s > self.window_s / 2 if self.smooth else self.held > 0
        held_at, limit = self._cause() if held else (None, None)
        self.truth.append(
            Window(
                ORIGIN_S + (number - 1) * self.window_s,
                ORIGIN_S + number * self.window_s,
                self.ops,
                self.bytes,
                held,
                held_at,
                limit,
                self.held_s,
                self.held_io_s,
                self.inflight_io_s,
                tuple(level.level for level in self.levels),
            )
        )
        self.ops = self.bytes = 0
        self.held_s = self.held_io_s = self.inflight_io_s = 0.0
        self._at((number + 1) * self.window_s, self._close_window, number + 1)
        if not self.smooth:
            for level in self.levels:
                level.fill(self.window_s)
            for queue in self.queues:
                self._let_go(queue)

    def _cause(self) -> tuple[HeldAt, LimitedBy]:
        """Say what holds the request that is next, or held the last one."""
        request = next((queue[0] for queue in self.queues if queue), self.last)
        blocking = self._blocking(request) or max(self.levels, key=_Level.missing_s)
        of_bytes = blocking.byte[request.op] * request.size > blocking.op[request.op]
        is_base = blocking.level <= blocking.hair or blocking.of.peak_per_second is None
        return "base" if is_base else "burst", "bandwidth" if of_bytes else "iops"

    # The disk

    def _serve(self, request: _Request) -> None:
        medium = self.medium
        service_s = medium.service_s + medium.byte_s * request.size
        if medium.jitter:
            service_s *= self.dice.lognormvariate(-(medium.jitter**2) / 2, medium.jitter)
        end_s = max(self.now_s, self.servers[0])
        start_s, end_s = end_s, end_s + service_s
        for stalls_s, goes_on_s in medium.stalls:
            if start_s < goes_on_s and end_s > stalls_s:
                end_s += goes_on_s - max(stalls_s, start_s)
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
            self._at(self.now_s + think_s, self._follow, request.stream)
        elif think_s is not None:
            self._follow(request.stream)

    # The sampler

    def _at_tick(self, number: int) -> None:
        late_s = 0.0
        if self.scenario.lateness:
            late_s = self.dice.lognormvariate(math.log(0.00015), 0.5)
            if self.dice.random() < 0.002:
                late_s = self.dice.uniform(0.001, 0.018)
        due_s = self.scenario.sampler_phase_s + number * WINDOW_S
        self._at(due_s + late_s + _READ_DELAY_S, self._read_diskstats, (number, late_s))

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
        """Sysfs is read only of devices that did something up to the sample before."""
        reads, writes = self.inflight
        if self.awake:
            tick = msgspec.structs.replace(tick, inflight={DEVICE: (reads, writes)})
        self.ticks.append(tick)
        seen = (*self.ios, *self.io_ns)
        self.awake = (self.seen is not None and seen != self.seen) or reads + writes > 0
        self.seen = seen
