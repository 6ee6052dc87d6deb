"""When a probe is skipped."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import MIB
from disksla.measure.probes.probe_plan import ProbePlan, plan_probe
from disksla.measure.probes.skip import OBSERVATION_S, SnapshotPair, observation_s, skip_reasons
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms
from disksla.promise.configuration.settings import DiskEntry, ProbeEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.probe_results import SKIP_REASONS, ProbeTotals, Skip, SkipReason
from disksla.state.pipeline.snapshot import DiskSnapshot, Snapshot
from disksla.verdict.credits.account import CreditLevel
from support.simulated_host import Machine, a_disk
from support.snapshots import changed

NOON_S = 1.7e9
READS = ProbeEntry(kind="read-latency")
LIMITED = Settings(
    disks=(DiskEntry(match=DiskMatch(device="vda"), terms=SumTerms(iops=1000.0)),), probes=(READS,)
)


def a_machine(settings: Settings = LIMITED, mount_points: tuple[str, ...] = ()) -> Machine:
    return Machine(a_disk("vda", mount_points=mount_points), settings=settings)


def snapshot(machine: Machine) -> DiskSnapshot:
    (disk,) = Snapshot(machine.state).disks
    return disk


def observe(machine: Machine, ticks: int = 30, **each_tick: int) -> SnapshotPair:
    """Observe a disk that has the same activity in each tick."""
    before = snapshot(machine)
    started_s = machine.now_s
    for _ in range(ticks):
        machine.does("vda", **each_tick)
        machine.tick()
    return SnapshotPair(before, snapshot(machine), machine.now_s - started_s)


def plan(disk: DiskSnapshot | None, entry: ProbeEntry = READS) -> ProbePlan:
    assert disk is not None
    return plan_probe(entry, "vda", disk.assignment.limits)


def reasons(
    observation: SnapshotPair, entry: ProbeEntry = READS, timestamp_s: float = NOON_S
) -> tuple[SkipReason, ...]:
    found = skip_reasons(
        plan(observation.now or observation.before, entry), observation, timestamp_s
    )
    assert all(skip.message for skip in found)
    return tuple(skip.reason for skip in found)


@pytest.mark.parametrize(
    ("each_tick", "expected"),
    [
        ({}, ()),
        ({"reads": 70, "read_sectors": 560, "read_ms": 35}, ()),
        ({"reads": 90, "read_sectors": 720, "read_ms": 45}, ("busy",)),
        ({"inflight": 4}, ("stalled",)),
        ({"reads": 50, "read_sectors": 400, "read_ms": 1600, "inflight": 32}, ("below",)),
    ],
)
def test_disk_is_skipped_by_what_it_does(
    each_tick: dict[str, int], expected: tuple[str, ...]
) -> None:
    assert reasons(observe(a_machine(), **each_tick)) == expected


def test_busy_disk_is_skipped() -> None:
    observation = observe(a_machine(), reads=85, read_sectors=680, read_ms=42)
    (skip,) = skip_reasons(plan(observation.now), observation, NOON_S)
    assert skip == Skip("busy", "the load is 85% of the limit; at most 80% is allowed")
    assert reasons(observation, ProbeEntry(kind="read-latency", busy_share=0.9)) == ()


def test_disk_busy_in_the_last_second_is_skipped() -> None:
    machine = a_machine()
    before = snapshot(machine)
    for _ in range(20):
        machine.tick()
    observe(machine, 10, reads=90, read_sectors=720, read_ms=45)
    assert reasons(SnapshotPair(before, snapshot(machine), 3.0)) == ("busy",)


@pytest.mark.parametrize(("read_ms", "expected"), [(80, ()), (400, ("busy",))])
def test_disk_without_limits_is_busy_by_queue_depth(
    read_ms: int, expected: tuple[str, ...]
) -> None:
    machine = a_machine(Settings(probes=(READS,)))
    assert reasons(observe(machine, reads=90, read_sectors=720, read_ms=read_ms)) == expected


def test_disk_throttled_recently_is_skipped() -> None:
    machine = a_machine()
    before = snapshot(machine)
    for _ in range(60):
        machine.does("vda", reads=100, read_sectors=800, read_ms=3200, inflight=32)
        machine.tick()
    machine.does("vda", inflight=0)
    for _ in range(11):
        machine.tick()
    assert snapshot(machine).verdict == "idle"
    assert "throttled" in reasons(SnapshotPair(before, snapshot(machine), 7.0))


def test_disk_without_verdicts_is_skipped() -> None:
    machine = a_machine()
    before = snapshot(machine)
    for _ in range(30):
        machine.tick(text=None)
    assert reasons(SnapshotPair(before, snapshot(machine), 3.0)) == ("not_sampled",)
    never = Machine(a_disk("vda"), settings=LIMITED, unreadable=True)
    assert reasons(SnapshotPair(snapshot(never), snapshot(never), 3.0)) == ("not_sampled",)


def test_missing_or_suspended_disk_is_skipped() -> None:
    observation = observe(a_machine())
    assert observation.now is not None
    empty = changed(
        observation.now, disk=msgspec.structs.replace(observation.now.disk, size_bytes=0)
    )
    for changes, reason in (
        ({"now": None}, "device_missing"),
        ({"now": empty}, "device_missing"),
        ({"before": None}, "device_missing"),
        ({"is_suspended": True}, "suspended"),
    ):
        assert reasons(msgspec.structs.replace(observation, **changes)) == (reason,)


def test_limit_too_low_for_1_iops_is_skipped() -> None:
    tiny = Settings(disks=(DiskEntry(match=DiskMatch(device="vda"), terms=SumTerms(iops=50.0)),))
    assert reasons(observe(a_machine(tiny))) == ("limit_too_low",)


@pytest.mark.parametrize(
    "entry", [ProbeEntry(kind="write-latency"), ProbeEntry(kind="read-latency", target="file")]
)
def test_probe_of_a_file_needs_a_file_system(entry: ProbeEntry) -> None:
    assert reasons(observe(a_machine()), entry) == ("no_file_system",)
    assert reasons(observe(a_machine(mount_points=("/data",))), entry) == ()


def test_daily_budget_is_renewed_the_next_day() -> None:
    observation = observe(a_machine())
    assert observation.now is not None
    day = int(NOON_S // 86400)
    totals = ProbeTotals(day=day, day_bytes=256 * MIB - 4096)
    now = changed(observation.now, probes={"read-latency": totals})
    observation = msgspec.structs.replace(observation, now=now)
    assert reasons(observation) == ("daily",)
    assert reasons(observation, timestamp_s=NOON_S + 86400) == ()
    assert reasons(observation, ProbeEntry(kind="read-latency", daily_bytes=512 * MIB)) == ()


BURSTING = Settings(
    disks=(
        DiskEntry(
            match=DiskMatch(device="vda"),
            terms=SumTerms(iops=1000.0, burst=SumBurst(iops=2000.0, iops_credits=8000.0)),
        ),
    )
)


def with_credits(lower: float, estimate: float, upper: float) -> SnapshotPair:
    observation = observe(a_machine(BURSTING))
    assert observation.now is not None
    level = CreditLevel("iops", 8000.0, lower, upper, estimate, 1.0)
    return msgspec.structs.replace(observation, now=changed(observation.now, credits=(level,)))


@pytest.mark.parametrize(
    ("lower", "estimate", "upper", "is_skipped"),
    [
        (8000.0, 8000.0, 8000.0, False),
        (0.0, 0.0, 399.0, True),  # proven to be too few
        (400.0, 400.0, 8000.0, False),  # proven to be enough
        (0.0, 4000.0, 8000.0, False),  # unknown
        (0.0, 100.0, 8000.0, True),  # unproven, but the estimate is low
    ],
)
def test_disk_low_on_credits_is_skipped(
    lower: float, estimate: float, upper: float, is_skipped: bool
) -> None:
    assert reasons(observe(a_machine(BURSTING))) == ()  # nothing is known of them
    assert reasons(with_credits(lower, estimate, upper)) == (("credits",) if is_skipped else ())


@given(st.tuples(*[st.floats(0, 8000)] * 3).map(sorted), st.floats(0, 1))
def test_bounds_that_prove_credits_decide(levels: list[float], share: float) -> None:
    entry = ProbeEntry(kind="read-latency", credits_share=share)
    lower, estimate, upper = levels
    found = "credits" in reasons(with_credits(lower, estimate, upper), entry)
    if lower >= share * 8000:
        assert not found
    if upper < share * 8000:
        assert found


def test_observation_is_longer_for_slow_sampling() -> None:
    assert observation_s(0.1) == OBSERVATION_S
    assert observation_s(10.0) == 30.0


@given(
    reads=st.integers(0, 300),
    inflight=st.integers(0, 64),
    suspended=st.booleans(),
    ticks=st.integers(0, 40),
)
def test_any_activity_gives_known_reasons(
    reads: int, inflight: int, suspended: bool, ticks: int
) -> None:
    machine = a_machine()
    observation = observe(machine, ticks, reads=reads, read_sectors=8 * reads, inflight=inflight)
    observation = msgspec.structs.replace(observation, is_suspended=suspended)
    assert set(reasons(observation)) <= set(SKIP_REASONS)
