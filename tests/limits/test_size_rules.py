"""How a limit follows from a size."""

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
def clamps(draw: st.DrawFn) -> Clamp:
    lowest, highest = sorted((draw(RATES), draw(RATES)))
    return Clamp(
        base=draw(st.floats(0, 1e5)),
        per_gib=draw(st.floats(0.01, 1e6)),
        minimum=draw(st.none() | st.just(lowest)),
        maximum=draw(st.none() | st.just(highest)),
        round_to=draw(st.none() | st.just(1.0)),
    )


@st.composite
def tier_tables(draw: st.DrawFn) -> Tiers:
    sizes = sorted(draw(st.sets(SIZES_BYTES, min_size=1, max_size=6)))
    rates = sorted(draw(st.lists(RATES, min_size=len(sizes), max_size=len(sizes))))
    return Tiers(steps=tuple(map(Tier, sizes, rates)))


ALLOCATION_UNITS = st.builds(
    AllocationUnits,
    unit_bytes=st.integers(1, 2**40),
    per_unit=RATES,
    maximum=st.none() | RATES,
)
SIZE_LAWS: st.SearchStrategy[SizeRule] = clamps() | tier_tables() | ALLOCATION_UNITS


@given(SIZE_LAWS, SIZES_BYTES, SIZES_BYTES)
def test_limits_never_fall_as_a_disk_grows(law: SizeRule, one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert 0 < law.rate(small) <= law.rate(large)


@given(clamps(), SIZES_BYTES)
def test_clamps_stay_within_their_bounds(law: Clamp, size_bytes: int) -> None:
    assert (law.minimum or 0) <= law.rate(size_bytes) <= (law.maximum or float("inf"))


@given(ALLOCATION_UNITS, SIZES_BYTES)
def test_every_unit_begun_counts(law: AllocationUnits, size_bytes: int) -> None:
    units = allocation_units(size_bytes, law.unit_bytes)
    assert (units - 1) * law.unit_bytes < size_bytes <= units * law.unit_bytes
    assert law.rate(size_bytes) == min(units * law.per_unit, law.maximum or float("inf"))


def test_a_clamp_has_a_base_and_a_rate() -> None:
    law = Clamp(base=6000, per_gib=30, maximum=100000)
    assert law.rate(500 * GIB) == 21000
    assert law.rate(10000 * GIB) == 100000


def test_halves_are_rounded_up() -> None:
    law = FromIops(bytes_per_io=128 * KIB, round_to=MIB)
    assert law.rate(300) == 38 * MIB
    assert law.rate(250) == 31 * MIB


def test_a_limit_is_never_rounded_to_nothing() -> None:
    assert Clamp(per_gib=1, round_to=1).rate(1) == 1


def test_a_tier_holds_up_to_its_size_and_the_last_one_beyond() -> None:
    law = Tiers(steps=(Tier(32 * GIB, 120), Tier(64 * GIB, 240), Tier(128 * GIB, 500)))
    sizes = (1, 32 * GIB, 32 * GIB + 1, 128 * GIB, 4096 * GIB)
    assert [law.rate(size) for size in sizes] == [120, 120, 240, 500, 500]


@pytest.mark.parametrize(
    "steps",
    [
        (Tier(64 * GIB, 240), Tier(32 * GIB, 500)),
        (Tier(32 * GIB, 240), Tier(32 * GIB, 240)),
        (Tier(32 * GIB, 240), Tier(64 * GIB, 120)),
    ],
)
def test_tiers_out_of_order_are_refused(steps: tuple[Tier, ...]) -> None:
    with pytest.raises(ValueError, match="must grow in size"):
        Tiers(steps=steps)


def test_a_clamp_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="a clamp needs"):
        Clamp(maximum=100)


def test_what_can_be_provisioned_grows_with_the_size_but_the_least_is_always_had() -> None:
    law = Provisioned(minimum=3000, maximum=16000, default=3000, maximum_per_gib=500)
    assert law.bounds(1 * GIB) == (3000, 3000)
    assert law.bounds(20 * GIB) == (3000, 10000)
    assert law.bounds(1000 * GIB) == (3000, 16000)


def test_a_bandwidth_can_be_bounded_by_the_iops() -> None:
    law = Provisioned(minimum=125 * MIB, maximum=1000 * MIB, maximum_per_iops=MIB / 4)
    assert law.bounds(GIB, iops=2000) == (125 * MIB, 500 * MIB)
    assert law.bounds(GIB, iops=16000) == (125 * MIB, 1000 * MIB)


@given(SIZES_BYTES, SIZES_BYTES, st.none() | st.floats(1, 1e6))
def test_bounds_never_cross_and_never_fall(one: int, other: int, per_gib: float | None) -> None:
    law = Provisioned(minimum=100, maximum=64000, maximum_per_gib=per_gib)
    small, large = (law.bounds(size)[1] for size in sorted((one, other)))
    assert 100 <= small <= large <= 64000


@pytest.mark.parametrize("default", [99, 1001])
def test_a_default_out_of_bounds_is_refused(default: float) -> None:
    with pytest.raises(ValueError, match="minimum <= default <= maximum"):
        Provisioned(minimum=100, maximum=1000, default=default)
