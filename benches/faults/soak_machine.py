"""Simulated machine of the soak test: disks under changing loads, hotplug, and faults.

It produces the ticks that a sampler would take: in-flight counts of active disks, iowait and
pressure when the pipeline needs them, and the list of disks after hotplug.
"""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from disksla.base.histogram import LatencyBin
from disksla.base.units import GIB
from disksla.kernel.disks.disk import Disk
from disksla.kernel.procfs.iowait import HostWait
from disksla.state.pipeline.probe_results import ProbeResult
from disksla.state.pipeline.state import State, needs_host_wait, needs_inflight
from disksla.state.pipeline.tick import Tick
from disksla.verdict.interval.interval import Clocks

TICK_S = 0.1
LATE_S = 0.3
"""Lateness of a tick from which the time since the one before is a gap."""
HOUR_S = 3600.0
IOPS = 300
BURST_IOPS = 2000
REQUEST_SECTORS = 8
QUEUE_DEPTH = 32
WRAP = 2**32
"""Times in /proc/diskstats are 32 bits wide on every kernel."""

CONFIG = """
disks:
  - match: {device: vda}
    terms: vk.ceph-ssd
  - match: {device: vdb}
    terms: yandex.network-hdd
  - match: {device: vdc}
    terms: {budget: sum, iops: 300, burst: {iops: 2000, iops_credits: 8000}}
  - match: {device: vdd}
    terms: {budget: separate, read_iops: 300, write_iops: 300, latency: 5ms}
probes:
  - {kind: read-latency, every: 10m}
"""
OTHER_CONFIG = CONFIG.replace("8000", "9000") + "assessment: {tolerance: 8%}\n"
DEVICES = ("vda", "vdb", "vdc", "vdd", "vde", "vdf")
"""The last two have no terms."""
STAYING = 2
"""The first disks, which are never removed."""


class Load(NamedTuple):
    """A load on a disk for some ticks."""

    name: str
    per_tick: int
    """Requests that complete in a tick."""
    variation: int
    """Largest difference of a tick from `per_tick`."""
    inflight: int
    request_ms: int


LOADS = (
    Load("idle", 0, 0, 0, 0),
    Load("light", 8, 5, 1, 1),
    Load("steady", 20, 2, 2, 2),
    Load("throttled", IOPS // 10, 0, QUEUE_DEPTH, 106),
    Load("throttled, one in flight", IOPS // 10, 0, 1, 3),
    Load("bursting", BURST_IOPS // 10, 0, QUEUE_DEPTH, 16),
    Load("below the promise", IOPS // 20, 6, QUEUE_DEPTH, 200),
    Load("stalled", 0, 0, 4, 0),
)
SHORTEST_TICKS, LONGEST_TICKS = 20, 600


class SoakDisk:
    """One disk and the load on it."""

    def __init__(self, name: str, minor: int, serial: int, random: Random) -> None:
        """Start with times that are about to wrap."""
        self.disk = Disk(
            name, 254, minor, size_bytes=100 * GIB, diskseq=serial, serial=f"volume-{serial}"
        )
        self.inflight = 0
        self.sampled_reads: int | None = None
        """Reads before the first sample of it."""
        self.assessed_s = 0.0
        """Time between samples that both have its line, without gaps."""
        self.is_listed = False
        """Its line was complete at the last sample."""
        self._random = random
        self._reads = self._writes = self._busy_ms = 0
        self._read_ms = self._write_ms = WRAP - 100_000
        self._load, self._ticks_left = LOADS[0], 0

    def advance(self) -> None:
        """Advance by one tick."""
        if self._ticks_left == 0:
            self._load = self._random.choice(LOADS)
            self._ticks_left = self._random.randint(SHORTEST_TICKS, LONGEST_TICKS)
        self._ticks_left -= 1
        load = self._load
        variation = self._random.randint(-load.variation, load.variation) if load.variation else 0
        requests = max(0, load.per_tick + variation)
        reads = requests // 3
        self._reads += reads
        self._writes += requests - reads
        self._read_ms = (self._read_ms + reads * load.request_ms) % WRAP
        self._write_ms = (self._write_ms + (requests - reads) * load.request_ms) % WRAP
        self._busy_ms = (self._busy_ms + (100 if load.inflight else 0)) % WRAP
        self.inflight = load.inflight

    def sampled(self, text: str | None, assessed_s: float) -> None:
        """Remember the truth of a sample, `assessed_s` after the one before; 0 after a gap."""
        was_listed, self.is_listed = self.is_listed, text is not None and self.line() in text
        if not self.is_listed:
            return
        if self.sampled_reads is None:
            self.sampled_reads = self._reads
        if was_listed:
            self.assessed_s += assessed_s

    @property
    def reads(self) -> int:
        """Reads since its first sample."""
        return self._reads - (self._reads if self.sampled_reads is None else self.sampled_reads)

    def line(self) -> str:
        """Return its line of /proc/diskstats."""
        return (
            f" 254 {self.disk.minor:7d} {self.disk.name}"
            f" {self._reads} 0 {REQUEST_SECTORS * self._reads} {self._read_ms}"
            f" {self._writes} 0 {REQUEST_SECTORS * self._writes} {self._write_ms}"
            f" {self.inflight} {self._busy_ms} {(self._read_ms + self._write_ms) % WRAP}"
            " 0 0 0 0 0 0\n"
        )


class SoakMachine:
    """The disks and clocks of the machine, and what happens to them."""

    def __init__(self, seed: int) -> None:
        """Start; the same seed gives the same ticks."""
        self._random = Random(seed)
        self._serial = 0
        self._disks_changed = True
        self._unreadable_ticks = 0
        self._now_s, self._suspended_s, self._clock_offset_s = 1000.0, 0.0, 0.0
        self._iowait_s = 0.0
        self._loop_lines = "".join(f"   7 {n:7d} loop{n}" + " 0" * 17 + "\n" for n in range(8))
        self.disks = {name: self._new_disk(name) for name in DEVICES}

    def tick(self, state: State) -> Tick:
        """Return the next tick, as the sampler of `state` would take it."""
        before = self._clocks()
        late_s = self._advance_clocks()
        for disk in self.disks.values():
            disk.advance()
        if self._happens(every=2500):
            self._hotplug()
        disks_changed, self._disks_changed = self._disks_changed, False
        text, problems = self._text()
        clocks = self._clocks()
        elapsed_s = clocks.monotonic_s - before.monotonic_s
        real_s = clocks.realtime_s - before.realtime_s
        is_gap = late_s > LATE_S or abs(real_s - elapsed_s) > TICK_S
        for disk in self.disks.values():
            disk.sampled(text, 0.0 if is_gap else elapsed_s)
        return Tick(
            clocks,
            text,
            lateness_s=late_s % TICK_S,
            missed_ticks=int(late_s / TICK_S),
            inflight={
                name: (0, disk.inflight)
                for name, disk in self.disks.items()
                if name in needs_inflight(state)
            },
            disks=tuple(disk.disk for disk in self.disks.values()) if disks_changed else None,
            host=self._host() if needs_host_wait(state) else None,
            problems=problems,
            probes=tuple(self._probes()),
        )

    def _clocks(self) -> Clocks:
        boottime_s = self._now_s + self._suspended_s
        return Clocks(self._now_s, boottime_s, 1.7e9 + boottime_s + self._clock_offset_s)

    def _happens(self, every: int) -> bool:
        return self._random.random() < 1 / every

    def _advance_clocks(self) -> float:
        late_s = self._random.random() * 0.002
        if self._happens(every=3000):
            late_s += 0.7
        if self._happens(every=20_000):
            self._suspended_s += HOUR_S
        if self._happens(every=20_000):
            self._clock_offset_s += self._random.choice((-HOUR_S, HOUR_S))
        self._now_s += TICK_S + late_s
        self._iowait_s += self._random.choice((0.0, 0.04, -0.01))
        return late_s

    def _new_disk(self, name: str) -> SoakDisk:
        self._serial += 1
        return SoakDisk(name, 16 * DEVICES.index(name), self._serial, self._random)

    def _hotplug(self) -> None:
        """Remove a disk that does not stay, or add a new one."""
        name = self._random.choice(DEVICES[STAYING:])
        if self.disks.pop(name, None) is None or self._random.random() < 0.5:
            self.disks[name] = self._new_disk(name)
        self._disks_changed = True

    def _text(self) -> tuple[str | None, dict[str, str]]:
        if self._happens(every=5000):
            self._unreadable_ticks = 5
        if self._unreadable_ticks:
            self._unreadable_ticks -= 1
            return None, {"diskstats": "[Errno 5] Input/output error"}
        text = self._loop_lines + "".join(disk.line() for disk in self.disks.values())
        if self._happens(every=5000):
            return _cut(text, self._random.randrange(len(text))), {}
        return text, {}

    def _host(self) -> HostWait:
        return HostWait(self._iowait_s, self._now_s / 3, self._now_s / 4)

    def _probes(self) -> Iterator[ProbeResult]:
        if self._happens(every=3000):
            failed = self._random.random() < 0.2
            yield ProbeResult(
                device=self._random.choice(DEVICES),
                kind="read-latency",
                timestamp_s=1.7e9 + self._now_s,
                failure="timeout" if failed else None,
                message=f"after {self._now_s} s" if failed else "",
                target_iops=3.0,
                duration_s=5.2,
                requests=0 if failed else 15,
                transferred_bytes=61_440,
                spent_bytes=61_440,
                achieved_iops=None if failed else 3.0,
                bins=() if failed else (LatencyBin(0.0011, 10), LatencyBin(0.0023, 5)),
            )


def _cut(text: str, end: int) -> str:
    """Return the begin of a text, the last line without most of its counters.

    A line with some of its counters would count as a reset, of which the requests are lost.
    """
    begin = text.rfind("\n", 0, end) + 1
    return text[:begin] + " ".join(text[begin:end].split()[:5])
