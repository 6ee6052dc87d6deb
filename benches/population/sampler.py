"""The sampler of a simulated disk: ticks every 100 ms, close samples every 10 ms.

It takes close samples all the time, more than a daemon does: `judging.judged` keeps those that a
daemon would have taken, which depends on its state.
"""

from dataclasses import dataclass
from random import Random

import msgspec

from disksla.kernel.procfs.diskstats import CloseSample
from disksla.state.pipeline.tick import Tick
from disksla.verdict.interval.interval import Clocks
from population.simulation import DEVICE, SimulatedDisk, Spec

TICK_S = 0.1
CLOSE_S = 0.01
ORIGIN_S = 1000.0
"""Monotonic time at which a simulation begins."""
_REALTIME_S = 1.7e9
_JIFFY_MS = 4
_READ_DELAY_S = 40e-6
"""From the reading of /proc/diskstats to that of the close sample."""


@dataclass
class Samples:
    """What was sampled of a simulation, and the truth at each tick."""

    ticks: list[Tick]
    truth: list[float]
    """Seconds since the tick before in which a request waited for the limiter."""
    credits: list[tuple[float, float] | None]
    """What is left in the limiter's credit bucket, without and with what is being served; None
    without a burst."""
    data_requests: int = 0
    """Reads and data writes completed."""
    data_bytes: int = 0


def simulate(spec: Spec) -> Samples:
    """Run a simulation; the same parameters always have the same result."""
    disk = SimulatedDisk(spec, None if spec.limit is None else spec.limit.limiter())
    result = Sampler(spec, disk).result
    disk.events.run_until(spec.seconds)
    result.data_requests, result.data_bytes = disk.data_requests, disk.data_bytes
    return result


class Sampler:
    """Reads a tick every 100 ms, and close samples every 10 ms."""

    def __init__(self, spec: Spec, disk: SimulatedDisk) -> None:
        self.result = Samples([], [], [])
        self._spec = spec
        self._disk = disk
        self._chance = Random(f"{spec.seed} sampler")
        self._close: list[CloseSample] = []
        self._waited_s = 0.0
        self._is_active = False
        self._requests = 0
        self._step_at(0)

    def _step_at(self, number: int) -> None:
        """Wait for the next deadline; those that are over when it is reached are missed."""
        due_s = self._spec.phase_s + number * CLOSE_S
        late_s = self._chance.lognormvariate(0, 0.5) * self._spec.noise.usual_lateness_s
        if self._chance.random() < self._spec.noise.late_sample_ratio:
            late_s = self._chance.uniform(0.001, 0.006)
        at_s = self._disk.preemption.seen_s(due_s + late_s, by_sampler=True)
        self._disk.at(max(at_s, self._disk.now_s), self._step, number)

    def _step(self, number: int) -> None:
        steps = round(TICK_S / CLOSE_S)
        if number % steps == 0:
            self._tick(number)
        else:
            self._close.append(self._close_sample())
        following = number + 1
        over_s = self._disk.now_s - self._spec.phase_s
        while following % steps and following * CLOSE_S <= over_s:
            following += 1
        self._step_at(following)

    def _close_sample(self) -> CloseSample:
        disk = self._disk
        reads, writes, flushes = disk.completed
        sectors_read, sectors_written = disk.sectors
        at_s = round(ORIGIN_S + disk.now_s, 5)
        flush_ms = int(disk.spent_s[2] * 1000)
        return CloseSample(
            at_s, reads, writes, sectors_read, sectors_written, disk.inflight, flushes, flush_ms
        )

    def _tick(self, number: int) -> None:
        disk, now_s, result = self._disk, self._disk.now_s, self.result
        due_s = self._spec.phase_s + number * CLOSE_S
        data_writes = disk.data_requests - disk.completed[0]
        counted = {DEVICE: (1, data_writes)} if self._spec.counts_data_writes else {}
        tick = Tick(
            Clocks(ORIGIN_S + now_s, ORIGIN_S + now_s, _REALTIME_S + now_s),
            self._diskstats(),
            lateness_s=now_s - due_s,
            data_writes=counted,
            disks=None if result.ticks else (self._spec.disk,),
        )
        self._record_truth()
        samples, self._close = self._close, []
        disk.at(now_s + _READ_DELAY_S, self._end_close, (len(result.ticks), samples))
        result.ticks.append(tick)

    def _record_truth(self) -> None:
        disk, limit = self._disk, self._spec.limit
        waited_s, credits_left = 0.0, None
        if disk.limiter is not None and limit is not None:
            waited_s = disk.limiter.level.some_s(disk.now_s)
            serving = disk.admitted - disk.data_requests
            if limit.name == "bandwidth":
                serving = disk.admitted_bytes - disk.data_bytes
            if limit.burst is not None:
                tokens = disk.limiter.buckets[0].base.tokens
                credits_left = tokens, tokens + serving
        self.result.truth.append(waited_s - self._waited_s)
        self.result.credits.append(credits_left)
        self._waited_s = waited_s

    def _end_close(self, of: tuple[int, list[CloseSample]]) -> None:
        """Add the close samples to a tick; the last is read after /proc/diskstats."""
        index, samples = of
        close = {DEVICE: (*samples, self._close_sample())}
        ticks = self.result.ticks
        ticks[index] = msgspec.structs.replace(ticks[index], close=close)
        if self._spec.reads_inflight:
            self._read_inflight(index)

    def _read_inflight(self, index: int) -> None:
        """Add the requests in flight, if the device was active at the tick before."""
        disk, ticks = self._disk, self.result.ticks
        reads, writes, _ = disk.inflight_by_kind
        if self._is_active:
            inflight = {DEVICE: (reads, writes)}
            ticks[index] = msgspec.structs.replace(ticks[index], inflight=inflight)
        self._is_active = bool(reads + writes) or disk.data_requests != self._requests
        self._requests = disk.data_requests

    def _diskstats(self) -> str:
        disk = self._disk
        reads, writes, flushes = disk.completed
        read_sectors, written_sectors = disk.sectors
        read_ms, write_ms, flush_ms = (int(seconds * 1000) for seconds in disk.spent_s)
        busy_ms = int(disk.level.some_s(disk.now_s) * 1000 / _JIFFY_MS) * _JIFFY_MS
        return (
            f" 254      16 {DEVICE} {reads} 0 {read_sectors} {read_ms} {writes} 0"
            f" {written_sectors} {write_ms} {disk.inflight} {busy_ms}"
            f" {read_ms + write_ms + flush_ms} 0 0 0 0 {flushes} {flush_ms}\n"
        )
