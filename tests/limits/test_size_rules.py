"""Size rules: limits by the size of a disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.limits.size_rules import (
    AllocationUnits,
    Clamp,
    FromIops,
    Provisioned,
    SizeRule,
    Tier,
    Tiers,
    allocation_units,
)
from disksla.units import GIB, KIB, MIB

SIZES_BYTES = st.integers(1, 2**50)
RATES = st.floats(0.1, 1e10)


@st.composite
def clamps(draw: st.DrawFn) -> Clamp[float]:
    lowest, highest = sorted((draw(RATES), draw(RATES)))
    return Clamp(
        base=draw(st.floats(0, 1e5)),
        per_gib=draw(st.floats(0.01, 1e6)),
        minimum=draw(st.none() | st.just(lowest)),
        maximum=draw(st.none() | st.just(highest)),
        round_to=draw(st.none() | st.just(1.0)),
    )


@st.composite
def tier_tables(draw: st.DrawFn) -> Tiers[float]:
    sizes = sorted(draw(st.sets(SIZES_BYTES, min_size=1, max_size=6)))
    rates = sorted(draw(st.lists(RATES, min_size=len(sizes), max_size=len(sizes))))
    return Tiers(steps=tuple(map(Tier, sizes, rates)))


ALLOCATION_UNITS = st.builds(
    AllocationUnits,
    unit_bytes=st.integers(1, 2**40),
    per_unit=RATES,
    maximum=st.none() | RATES,
)
SIZE_RULES: st.SearchStrategy[SizeRule[float]] = clamps() | tier_tables() | ALLOCATION_UNITS


@given(SIZE_RULES, SIZES_BYTES, SIZES_BYTES)
def test_size_rules_do_not_decrease_with_size(rule: SizeRule[float], one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert 0 < rule.rate(small) <= rule.rate(large)


@given(clamps(), SIZES_BYTES)
def test_clamp_stays_within_bounds(rule: Clamp[float], size_bytes: int) -> None:
    assert (rule.minimum or 0) <= rule.rate(size_bytes) <= (rule.maximum or float("inf"))


@given(ALLOCATION_UNITS, SIZES_BYTES)
def test_allocation_units_round_up(rule: AllocationUnits[float], size_bytes: int) -> None:
    units = allocation_units(size_bytes, rule.unit_bytes)
    assert (units - 1) * rule.unit_bytes < size_bytes <= units * rule.unit_bytes
    assert rule.rate(size_bytes) == min(units * rule.per_unit, rule.maximum or float("inf"))


def test_clamp_adds_base_and_rate() -> None:
    rule = Clamp(base=6000, per_gib=30, maximum=100000)
    assert rule.rate(500 * GIB) == 21000
    assert rule.rate(10000 * GIB) == 100000


def test_from_iops_rounds_half_up() -> None:
    rule = FromIops(bytes_per_io=128 * KIB, round_to=MIB)
    assert rule.rate(300) == 38 * MIB
    assert rule.rate(250) == 31 * MIB


def test_clamp_is_never_rounded_to_zero() -> None:
    assert Clamp(per_gib=1, round_to=1).rate(1) == 1


def test_tiers_apply_up_to_their_size_and_last_beyond() -> None:
    rule = Tiers(steps=(Tier(32 * GIB, 120), Tier(64 * GIB, 240), Tier(128 * GIB, 500)))
    sizes = (1, 32 * GIB, 32 * GIB + 1, 128 * GIB, 4096 * GIB)
    assert [rule.rate(size) for size in sizes] == [120, 120, 240, 500, 500]


@pytest.mark.parametrize(
    "steps",
    [
        (Tier(64 * GIB, 240), Tier(32 * GIB, 500)),
        (Tier(32 * GIB, 240), Tier(32 * GIB, 240)),
        (Tier(32 * GIB, 240), Tier(64 * GIB, 120)),
    ],
)
def test_tiers_reject_steps_out_of_order(steps: tuple[Tier[float], ...]) -> None:
    with pytest.raises(ValueError, match="out of order; expected growing sizes"):
        Tiers(steps=steps)


def test_tiers_reject_no_steps() -> None:
    with pytest.raises(ValueError, match="found no steps; expected at least one"):
        Tiers[float](steps=())


def test_clamp_rejects_zero_result() -> None:
    with pytest.raises(ValueError, match="found none of base, per_gib and minimum"):
        Clamp(maximum=100)


def test_provisioned_maximum_grows_with_size() -> None:
    rule = Provisioned(minimum=3000, maximum=16000, default=3000, maximum_per_gib=500)
    assert rule.bounds(1 * GIB) == (3000, 3000)
    assert rule.bounds(20 * GIB) == (3000, 10000)
    assert rule.bounds(1000 * GIB) == (3000, 16000)


def test_provisioned_maximum_depends_on_iops() -> None:
    rule = Provisioned(minimum=125 * MIB, maximum=1000 * MIB, maximum_per_iops=MIB // 4)
    assert rule.bounds(GIB, iops=2000) == (125 * MIB, 500 * MIB)
    assert rule.bounds(GIB, iops=16000) == (125 * MIB, 1000 * MIB)


@given(SIZES_BYTES, SIZES_BYTES, st.none() | st.floats(1, 1e6))
def test_provisioned_bounds_never_cross_or_decrease(
    one: int, other: int, per_gib: float | None
) -> None:
    rule = Provisioned(minimum=100, maximum=64000, maximum_per_gib=per_gib)
    small, large = (rule.bounds(size)[1] for size in sorted((one, other)))
    assert 100 <= small <= large <= 64000


@pytest.mark.parametrize("default", [99, 1001])
def test_provisioned_rejects_default_out_of_bounds(default: float) -> None:
    with pytest.raises(ValueError, match="expected minimum <= default <= maximum"):
        Provisioned(minimum=100, maximum=1000, default=default)
