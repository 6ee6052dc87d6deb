"""Models of disks of the fleet, with a playback for each situation.

Most are simulated (tests/support/simulated_limiter.py) with terms of the catalogue; some are
recordings of disks of the lab (benches/lab/recordings), which repeat all day.
"""

import fcntl
import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path

import msgspec

from disksla.base.histogram import LatencyBin
from disksla.base.units import GIB, MIB
from disksla.commands.replay import replay
from disksla.measure.verification.report import VerificationReport
from disksla.measure.verification.suites import make_suite
from disksla.promise.catalogue.limits import Limits
from disksla.promise.configuration import Configuration
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms
from disksla.promise.configuration.settings import ProbeEntry, Settings
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.probe_results import ProbeResult
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick
from fleet.machines import machine_playbacks
from fleet.playback import Playback, make_playback
from support.reports import a_report, a_result
from support.scenarios import SCENARIOS
from support.simulated_host import CATALOG
from support.simulated_limiter import (
    DEVICE,
    WINDOW_S,
    Closed,
    Limiter,
    Load,
    Medium,
    Open,
    Scenario,
    run,
    separate,
    summed,
)

RECORDINGS = Path(__file__).parent.parent / "lab" / "recordings"
RECORDED = (
    "steady-90", "leaky-bucket", "free-reader-few-writes", "postgresql-8-fsync", "steady-90",
    "etcd-8-xfs", "free-reader-few-writes", "steady-90", "below-deep",
    "redis-always-16-xfs", "steady-90", "mariadb-4",
)  # fmt: skip

SECONDS = 10.0
_SETTLED_S = 2.5
"""Time until verdicts are stable; not part of the playback."""
_PROBE = ProbeEntry(kind="read-latency", every_s=SECONDS, runtime_s=1.0)


@dataclass(frozen=True)
class Model:
    """A kind of disk, with its playbacks by situation."""

    name: str
    playbacks: dict[str, Playback]


@dataclass(frozen=True)
class DiskType:
    """A type of disk, and the limiter that enforces its limits."""

    scenario: Scenario
    """Terms, size, limiter and medium; no load."""
    iops: float
    """Reads of 4 KiB per second that it allows."""
    lowered: Limiter | None = None
    """A limiter that gives less than the promise."""
    probed: bool = False
    verified: bool = False


DISK_TYPES = {
    "ssd": DiskType(
        Scenario(
            terms="vk.ceph-ssd",
            size_bytes=30 * GIB,
            limiter=Limiter(buckets=separate(1000, 500, 125 * MIB, 62.5 * MIB), apart=True),
            medium=Medium(service_s=0.001, jitter=0.3),
        ),
        iops=1000,
        lowered=Limiter(buckets=separate(600, 300, 75 * MIB, 37 * MIB), apart=True),
        probed=True,
    ),
    "hdd": DiskType(
        Scenario(
            terms="vk.ceph-hdd",
            size_bytes=500 * GIB,
            limiter=Limiter(buckets=separate(500, 500, 62.5 * MIB, 62.5 * MIB), apart=True),
            medium=Medium(service_s=0.008, jitter=0.5),
        ),
        iops=500,
        lowered=Limiter(buckets=separate(250, 250, 31 * MIB, 31 * MIB), apart=True),
    ),
    "nvme": DiskType(
        Scenario(
            terms="vk.ef-nvme",
            size_bytes=10 * GIB,
            limiter=Limiter(buckets=separate(10_000, 5000, 500 * MIB, 500 * MIB), apart=True),
        ),
        iops=10_000,
        lowered=Limiter(buckets=separate(6000, 3000, 300 * MIB, 300 * MIB), apart=True),
        probed=True,
        verified=True,
    ),
    "shared": DiskType(replace(SCENARIOS["mixed-additive"], loads=()), iops=1000),
    "unknown": DiskType(Scenario(medium=Medium(service_s=0.002, jitter=0.5)), iops=500),
}
"""`shared` is yandex.network-ssd; `unknown` has no terms."""


def situations(disk_type: DiskType) -> dict[str, Scenario]:
    """Return the scenario of each situation of a disk."""
    deep = Closed(depth=40, write_share=0.35)
    lowered = disk_type.lowered or disk_type.scenario.limiter
    below = replace(disk_type.scenario, limiter=lowered)
    stalled = replace(disk_type.scenario.medium, stalls=((1.0, 1e9),))
    slow = replace(disk_type.scenario.medium, service_s=5 * disk_type.scenario.medium.service_s)
    return {
        "idle": disk_type.scenario,
        "light": _under(disk_type.scenario, _share(disk_type, 0.15)),
        "busy": _under(disk_type.scenario, _share(disk_type, 0.65)),
        "throttled": _under(disk_type.scenario, deep),
        "synchronous": _under(disk_type.scenario, Closed(depth=1, write_share=1.0, think_s=20e-6)),
        "below": _under(below, deep),
        "slow": _under(replace(disk_type.scenario, medium=slow), _share(disk_type, 0.15)),
        "stalled": _under(replace(disk_type.scenario, medium=stalled), Closed(depth=8)),
    }


def _share(disk_type: DiskType, share: float) -> Load:
    return Open(per_second=share * disk_type.iops, poisson=True, write_share=0.3)


def _under(scenario: Scenario, load: Load) -> Scenario:
    return replace(scenario, loads=(load,))


def _playbacks(disk_type: DiskType) -> dict[str, Playback]:
    return {
        name: simulate(
            replace(scenario, seconds=_SETTLED_S + SECONDS),
            disk_type.probed,
            disk_type.verified,
            skip_s=_SETTLED_S,
        )
        for name, scenario in situations(disk_type).items()
    }


BURST_S = 60.0
CYCLE_S = 7200.0
_WARM_UP_S = 3100.0
_CREDITS = Scenario(
    terms=SumTerms(
        iops=50.0,
        bytes_per_second=5e6,
        burst=SumBurst(
            iops=300.0, iops_credits=150_000, bytes_per_second=60e6, credit_bytes=10 * GIB
        ),
    ),
    limiter=Limiter(buckets=summed(50, 5e6, peak_per_second=300.0, capacity=150_000.0)),
    loads=(
        Closed(depth=4, write_share=0.5, active=((_WARM_UP_S + BURST_S, _WARM_UP_S + 2400.0),)),
    ),
    seconds=_WARM_UP_S + CYCLE_S,
    lateness=False,
)
"""Credits for ten minutes, half an hour at the baseline, fifty minutes to fill up again. The disk
is idle before, so that its credits are certain to be full at the start."""


MACHINE_DISKS = ("machine-first", "machine-second")
"""Models of disks that share a limit of their machine."""


SHARED_FILE = "DISKSLA_FLEET_MODELS"
"""The environment variable with the path of a file in which processes share the models."""


@cache
def models() -> dict[str, Model]:
    """Return all models by name; of processes that share a file, the first one simulates them."""
    path = os.environ.get(SHARED_FILE)
    if path is None:
        return _made()
    with Path(path).open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if file.tell() == 0:
            pickle.dump(_made(), file)
        file.seek(0)
        found: dict[str, Model] = pickle.load(file)
        return found


def _made() -> dict[str, Model]:
    simulated = {
        name: Model(name, _playbacks(disk_type)) for name, disk_type in DISK_TYPES.items()
    }
    cycle = simulate(_CREDITS, frames=int(CYCLE_S / 60), skip_s=_WARM_UP_S)
    recorded = {name: Model(name, {"recorded": recording(name)}) for name in set(RECORDED)}
    machine = {
        name: Model(name, {"cycle": playback})
        for name, playback in zip(MACHINE_DISKS, machine_playbacks().values(), strict=True)
    }
    return simulated | machine | {"credits": Model("credits", {"cycle": cycle})} | recorded


def simulate(
    scenario: Scenario,
    probed: bool = False,
    verified: bool = False,
    frames: int = 1,
    skip_s: float = 0.0,
) -> Playback:
    """Return the playback of a simulated disk."""
    settings = scenario.settings()
    if probed:
        settings = msgspec.structs.replace(settings, probes=(_PROBE,))
    ticks = run(scenario).ticks
    if probed:
        ticks[-5] = msgspec.structs.replace(ticks[-5], probes=(_probe(scenario),))
    states = list(_states(settings, ticks))
    [disk] = states[-1].monitored.values()
    return make_playback(
        states,
        len(ticks),
        frames=frames,
        skip=round(skip_s / WINDOW_S),
        report=_report(disk.assignment.limits) if verified else None,
    )


def _report(limits: Limits) -> VerificationReport:
    """Return the report of a disk that passed the suite of its provider."""
    suite = make_suite("vk", limits, 0.03)
    return a_report(*(a_result(test.name) for test in suite.tests))


def _states(settings: Settings, ticks: list[Tick]) -> Iterator[State]:
    state = State(Configuration(settings, CATALOG))
    for tick in ticks:
        state = advance(state, tick)
        yield state


def _probe(scenario: Scenario) -> ProbeResult:
    """Return the result of a probe with ten requests, of which one is slow."""
    usual_s = scenario.medium.service_s + 0.0003
    return ProbeResult(
        device=DEVICE,
        kind="read-latency",
        timestamp_s=0.0,
        target_iops=10.0,
        duration_s=1.4,
        requests=10,
        transferred_bytes=40_960,
        achieved_iops=9.9,
        bins=(LatencyBin(usual_s, 9), LatencyBin(4 * usual_s, 1)),
    )


def recording(name: str) -> Playback:
    """Return the playback of a recording of the lab."""
    home = RECORDINGS / name
    states = [
        state
        for state in islice(replay(home / "ticks.jsonl.gz", home / "config.yml"), 1, None)
        if len(state.monitored) == 1
    ]
    return make_playback(states, len(states))
