"""A machine that is never left alone: disks under changing loads, and all that goes wrong.

Its ticks are those that a sampler would have taken: in-flight counts of disks that are awake, what
the host waited when the pipeline wants to know it, other disks when some were plugged.
"""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from disksla.disks.disk import Disk
from disksla.fio.result import LatencyBin
from disksla.pipeline.probe_results import ProbeResult
from disksla.pipeline.state import State, needs_host_wait
from disksla.pipeline.tick import Tick
from disksla.procfs.iowait import HostWait
from disksla.units import GIB
from disksla.verdict.interval import Clocks

TICK_S = 0.1
IOPS = 300
BURST_IOPS = 2000
REQUEST_SECTORS = 8
DEEP = 32
WRAP = 2**32
"""Times are 32 bits wide on every kernel."""

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
"""The last two are held against nothing."""


class Load(NamedTuple):
    """What is asked of a disk for a while."""

    name: str
    per_tick: int
    """Requests that complete in a tick."""
    varies: int
    """By which that changes from tick to tick."""
    inflight: int
    request_ms: int


LOADS = (
    Load("asleep", 0, 0, 0, 0),
    Load("light", 8, 5, 1, 1),
    Load("steady", 20, 2, 2, 2),
    Load("held", IOPS // 10, 0, DEEP, 106),
    Load("held by one", IOPS // 10, 0, 1, 3),
    Load("bursting", BURST_IOPS // 10, 0, DEEP, 16),
    Load("too slow", IOPS // 20, 6, DEEP, 200),
    Load("stalled", 0, 0, 4, 0),
)
SHORTEST_TICKS, LONGEST_TICKS = 20, 600


class RestlessDisk:
    """One disk, and the load on it."""

    def __init__(self, name: str, minor: int, serial: int, chance: Random) -> None:
        """Begin with counters that are about to wrap."""
        self.disk = Disk(
            name, 254, minor, size_bytes=100 * GIB, diskseq=serial, serial=f"volume-{serial}"
        )
        self.inflight = 0
        self._chance = chance
        self._reads = self._writes = self._busy_ms = 0
        self._read_ms = self._write_ms = WRAP - 100_000
        self._load, self._left = LOADS[0], 0

    def lives(self) -> None:
        """Let one tick pass."""
        if self._left == 0:
            self._load = self._chance.choice(LOADS)
            self._left = self._chance.randint(SHORTEST_TICKS, LONGEST_TICKS)
        self._left -= 1
        load = self._load
        varied = self._chance.randint(-load.varies, load.varies) if load.varies else 0
        done = max(0, load.per_tick + varied)
        reads = done // 3
        self._reads += reads
        self._writes += done - reads
        self._read_ms = (self._read_ms + reads * load.request_ms) % WRAP
        self._write_ms = (self._write_ms + (done - reads) * load.request_ms) % WRAP
        self._busy_ms = (self._busy_ms + (100 if load.inflight else 0)) % WRAP
        self.inflight = load.inflight

    def line(self) -> str:
        """Give its line of /proc/diskstats."""
        return (
            f" 254 {self.disk.minor:7d} {self.disk.name}"
            f" {self._reads} 0 {REQUEST_SECTORS * self._reads} {self._read_ms}"
            f" {self._writes} 0 {REQUEST_SECTORS * self._writes} {self._write_ms}"
            f" {self.inflight} {self._busy_ms} {(self._read_ms + self._write_ms) % WRAP}"
            " 0 0 0 0 0 0\n"
        )


class RestlessMachine:
    """All disks, the clocks, and what happens to them."""

    def __init__(self, seed: int) -> None:
        """Begin; the same seed gives the same life."""
        self._chance = Random(seed)
        self._serial = 0
        self._plugged = True
        self._unreadable = 0
        self._now_s, self._asleep_s, self._set_by_s = 1000.0, 0.0, 0.0
        self._iowait_s = 0.0
        self._idle = "".join(f"   7 {n:7d} loop{n}" + " 0" * 17 + "\n" for n in range(8))
        self._disks = {name: self._a_disk(name) for name in DEVICES}

    def tick(self, state: State) -> Tick:
        """Give the next tick, as the sampler of `state` would take it."""
        late_s = self._time_passes()
        for disk in self._disks.values():
            disk.lives()
        if self._happens(every=2500):
            self._plug()
        plugged, self._plugged = self._plugged, False
        text, problems = self._text()
        return Tick(
            Clocks(
                self._now_s,
                self._now_s + self._asleep_s,
                1.7e9 + self._now_s + self._asleep_s + self._set_by_s,
            ),
            text,
            lateness_s=late_s % TICK_S,
            missed_ticks=int(late_s / TICK_S),
            inflight={
                name: (0, disk.inflight)
                for name, disk in self._disks.items()
                if name in state.active
            },
            disks=tuple(disk.disk for disk in self._disks.values()) if plugged else None,
            host=self._host() if needs_host_wait(state) else None,
            problems=problems,
            probes=tuple(self._probes()),
        )

    def _happens(self, every: int) -> bool:
        return self._chance.random() < 1 / every

    def _time_passes(self) -> float:
        late_s = self._chance.random() * 0.002
        if self._happens(every=3000):
            late_s += 0.7
        if self._happens(every=20_000):
            self._asleep_s += 3600.0
        if self._happens(every=20_000):
            self._set_by_s += self._chance.choice((-7200.0, 7200.0))
        self._now_s += TICK_S + late_s
        self._iowait_s += self._chance.choice((0.0, 0.04, -0.01))
        return late_s

    def _a_disk(self, name: str) -> RestlessDisk:
        self._serial += 1
        return RestlessDisk(name, 16 * DEVICES.index(name), self._serial, self._chance)

    def _plug(self) -> None:
        """Take a disk away, or bring one that is new."""
        name = self._chance.choice(DEVICES)
        if self._disks.pop(name, None) is None or self._chance.random() < 0.5:
            self._disks[name] = self._a_disk(name)
        self._plugged = True

    def _text(self) -> tuple[str | None, dict[str, str]]:
        if self._happens(every=5000):
            self._unreadable = 5
        if self._unreadable:
            self._unreadable -= 1
            return None, {"diskstats": "[Errno 5] Input/output error"}
        text = self._idle + "".join(disk.line() for disk in self._disks.values())
        if self._happens(every=5000):
            return text[: self._chance.randrange(len(text))], {}
        return text, {}

    def _host(self) -> HostWait:
        return HostWait(self._iowait_s, self._now_s / 3, self._now_s / 4)

    def _probes(self) -> Iterator[ProbeResult]:
        if self._happens(every=3000):
            failed = self._chance.random() < 0.2
            yield ProbeResult(
                device=self._chance.choice(DEVICES),
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
