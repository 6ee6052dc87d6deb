"""When a disk is left alone."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.custom_terms import SumBurst, SumTerms
from disksla.config.settings import DiskEntry, DiskMatch, ProbeEntry, Settings
from disksla.credits.account import CreditLevel
from disksla.pipeline.probe_results import SKIP_REASONS, ProbeTotals, SkipReason
from disksla.pipeline.snapshot import DiskSnapshot, take_snapshot
from disksla.probes.plan import ProbePlan, plan_probe
from disksla.probes.skip import OBSERVATION_S, Observation, observation_s, skip_reasons
from disksla.units import MIB
from support.simulated_host import Machine, a_disk

NOON_S = 1.7e9
READS = ProbeEntry(kind="read-latency")
PROMISED = Settings(
    disks=(DiskEntry(match=DiskMatch(device="vda"), terms=SumTerms(iops=1000.0)),),
    probes=(READS,),
)


def a_machine(settings: Settings = PROMISED, mount_points: tuple[str, ...] = ()) -> Machine:
    return Machine(a_disk("vda", mount_points=mount_points), settings=settings)


def seen(machine: Machine) -> DiskSnapshot:
    (view,) = take_snapshot(machine.state).disks
    return view


def looked_at(machine: Machine, ticks: int = 30, **each_tick: int) -> Observation:
    """Look at a machine twice while it does something in each tick."""
    before = seen(machine)
    began_s = machine.now_s
    for _ in range(ticks):
        machine.does("vda", **each_tick)
        machine.tick()
    return Observation(before, seen(machine), machine.now_s - began_s)


def plan(view: DiskSnapshot | None, entry: ProbeEntry = READS) -> ProbePlan:
    assert view is not None
    return plan_probe(entry, "vda", view.assignment.limits)


def reasons(
    sight: Observation, entry: ProbeEntry = READS, timestamp_s: float = NOON_S
) -> tuple[SkipReason, ...]:
    found = skip_reasons(plan(sight.now or sight.before, entry), sight, timestamp_s)
    assert all(skip.message for skip in found)
    return tuple(skip.reason for skip in found)


def test_a_quiet_disk_is_probed() -> None:
    assert reasons(looked_at(a_machine())) == ()


def test_a_disk_that_is_at_work_but_not_busy_is_probed() -> None:
    assert reasons(looked_at(a_machine(), reads=70, read_sectors=560, read_ms=35)) == ()


def test_a_busy_disk_is_left_alone() -> None:
    sight = looked_at(a_machine(), reads=85, read_sectors=680, read_ms=42)
    assert reasons(sight) == ("busy",)
    (skip,) = skip_reasons(plan(sight.now), sight, NOON_S)
    assert skip.message == "85% of the promise is in use, over 80%"
    assert reasons(sight, ProbeEntry(kind="read-latency", busy_share=0.9)) == ()


def test_a_disk_that_became_busy_in_the_last_second_is_left_alone() -> None:
    machine = a_machine()
    before = seen(machine)
    for _ in range(20):
        machine.tick()
    looked_at(machine, 10, reads=90, read_sectors=720, read_ms=45)
    assert reasons(Observation(before, seen(machine), 3.0)) == ("busy",)


def test_without_a_promise_waiting_requests_are_what_busy_means() -> None:
    nothing = Settings(probes=(READS,))
    assert reasons(looked_at(a_machine(nothing), reads=90, read_sectors=720, read_ms=80)) == ()
    assert reasons(looked_at(a_machine(nothing), reads=90, read_sectors=720, read_ms=400)) == (
        "busy",
    )


def test_a_disk_that_was_held_lately_is_left_alone() -> None:
    machine = a_machine()
    before = seen(machine)
    for _ in range(20):
        machine.does("vda", reads=100, read_sectors=800, read_ms=3200, inflight=32)
        machine.tick()
    machine.does("vda", inflight=0)
    for _ in range(10):
        machine.tick()
    assert seen(machine).verdict == "idle"
    assert "throttled" in reasons(Observation(before, seen(machine), 3.0))


def test_a_stalled_disk_is_left_alone() -> None:
    assert reasons(looked_at(a_machine(), inflight=4)) == ("stalled",)


def test_a_disk_below_its_promise_is_left_alone() -> None:
    sight = looked_at(a_machine(), reads=50, read_sectors=400, read_ms=1600, inflight=32)
    assert "below" in reasons(sight)


def test_a_disk_that_could_not_be_judged_is_left_alone() -> None:
    machine = a_machine()
    before = seen(machine)
    for _ in range(30):
        machine.tick(text=None)
    assert reasons(Observation(before, seen(machine), 3.0)) == ("not_sampled",)


def test_a_disk_that_was_never_sampled_is_left_alone() -> None:
    machine = Machine(a_disk("vda"), settings=PROMISED, unreadable=True)
    assert reasons(Observation(seen(machine), seen(machine), 3.0)) == ("not_sampled",)


@pytest.mark.parametrize("size_bytes", [0, None])
def test_a_disk_that_is_gone_cannot_be_probed(size_bytes: int | None) -> None:
    sight = looked_at(a_machine())
    assert sight.now is not None
    now = None
    if size_bytes is not None:
        disk = msgspec.structs.replace(sight.now.disk, size_bytes=size_bytes)
        now = msgspec.structs.replace(sight.now, disk=disk)
    assert reasons(msgspec.structs.replace(sight, now=now)) == ("device_missing",)
    assert reasons(msgspec.structs.replace(sight, before=None)) == ("device_missing",)


def test_a_disk_that_sleeps_is_not_woken() -> None:
    sight = msgspec.structs.replace(looked_at(a_machine()), is_suspended=True)
    assert reasons(sight) == ("suspended",)


def test_a_promise_too_small_for_one_request_is_not_probed() -> None:
    tiny = Settings(disks=(DiskEntry(match=DiskMatch(device="vda"), terms=SumTerms(iops=50.0)),))
    assert reasons(looked_at(a_machine(tiny))) == ("limit_too_low",)


@pytest.mark.parametrize(
    "entry", [ProbeEntry(kind="write-latency"), ProbeEntry(kind="read-latency", target="file")]
)
def test_a_file_needs_a_file_system(entry: ProbeEntry) -> None:
    assert reasons(looked_at(a_machine()), entry) == ("no_file_system",)
    assert reasons(looked_at(a_machine(mount_points=("/data",))), entry) == ()


def test_the_allowance_of_a_day_comes_back_with_the_next() -> None:
    sight = looked_at(a_machine())
    assert sight.now is not None
    day = int(NOON_S // 86400)
    used = ProbeTotals(day=day, day_bytes=256 * MIB - 4096)
    now = msgspec.structs.replace(sight.now, probes={"read-latency": used})
    sight = msgspec.structs.replace(sight, now=now)
    assert reasons(sight) == ("daily",)
    assert reasons(sight, timestamp_s=NOON_S + 86400) == ()
    assert reasons(sight, ProbeEntry(kind="read-latency", daily_bytes=512 * MIB)) == ()


BURSTING = Settings(
    disks=(
        DiskEntry(
            match=DiskMatch(device="vda"),
            terms=SumTerms(iops=1000.0, burst=SumBurst(iops=2000.0, iops_credits=8000.0)),
        ),
    )
)


def with_credits(lower: float, estimate: float, upper: float) -> Observation:
    sight = looked_at(a_machine(BURSTING))
    assert sight.now is not None
    level = CreditLevel("iops", 8000.0, lower, upper, estimate, 1.0)
    return msgspec.structs.replace(sight, now=msgspec.structs.replace(sight.now, credits=(level,)))


@pytest.mark.parametrize(
    ("lower", "estimate", "upper", "left_alone"),
    [
        (8000.0, 8000.0, 8000.0, False),
        (0.0, 0.0, 399.0, True),  # proven to be low
        (400.0, 400.0, 8000.0, False),  # proven not to be
        (0.0, 4000.0, 8000.0, False),  # nothing is known
        (0.0, 100.0, 8000.0, True),  # nothing is proven, but it looks low
    ],
)
def test_a_disk_low_on_credits_is_left_alone(
    lower: float, estimate: float, upper: float, left_alone: bool
) -> None:
    assert reasons(with_credits(lower, estimate, upper)) == (("credits",) if left_alone else ())


@given(st.tuples(*[st.floats(0, 8000)] * 3).map(sorted), st.floats(0, 1))
def test_credits_proven_to_be_enough_are_enough_and_those_proven_low_are_low(
    levels: list[float], share: float
) -> None:
    entry = ProbeEntry(kind="read-latency", credits_share=share)
    lower, estimate, upper = levels
    found = "credits" in reasons(with_credits(lower, estimate, upper), entry)
    if lower >= share * 8000:
        assert not found
    if upper < share * 8000:
        assert found


def test_unknown_credits_of_a_new_disk_do_not_keep_probes_away() -> None:
    sight = looked_at(a_machine(BURSTING))
    assert sight.now is not None
    assert sight.now.credits
    assert reasons(sight) == ()


def test_the_look_is_long_enough_for_slow_sampling() -> None:
    assert observation_s(0.1) == OBSERVATION_S
    assert observation_s(10.0) == 30.0


@given(
    reads=st.integers(0, 300),
    inflight=st.integers(0, 64),
    rotting=st.booleans(),
    ticks=st.integers(0, 40),
)
def test_whatever_a_disk_does_there_is_an_answer(
    reads: int, inflight: int, rotting: bool, ticks: int
) -> None:
    machine = a_machine()
    sight = looked_at(machine, ticks, reads=reads, read_sectors=8 * reads, inflight=inflight)
    sight = msgspec.structs.replace(sight, is_suspended=rotting)
    assert set(reasons(sight)) <= set(SKIP_REASONS)
