"""Size rules: limits by the size of a disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB, KIB, MIB
from disksla.promise.catalogue.rules import (
    AllocationUnits,
    BySize,
    Clamp,
    FromBandwidth,
    FromBaseline,
    FromIops,
    Greatest,
    Least,
    Multiple,
    Provisioned,
    RuleInput,
    SizeRule,
    SizeStep,
    Sum,
    Tier,
    Tiers,
    allocation_units,
    provisioned_parts,
)

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
    AllocationUnits, unit_bytes=st.integers(1, 2**40), per_unit=RATES, maximum=st.none() | RATES
)
SIZE_RULES: st.SearchStrategy[SizeRule[float]] = clamps() | tier_tables() | ALLOCATION_UNITS


@given(SIZE_RULES, SIZES_BYTES, SIZES_BYTES)
def test_size_rules_do_not_decrease_with_size(rule: SizeRule[float], one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert 0 < rule.rate(RuleInput(small)) <= rule.rate(RuleInput(large))


@given(clamps(), SIZES_BYTES)
def test_clamp_stays_within_bounds(rule: Clamp[float], size_bytes: int) -> None:
    assert (
        (rule.minimum or 0) <= rule.rate(RuleInput(size_bytes)) <= (rule.maximum or float("inf"))
    )


@given(ALLOCATION_UNITS, SIZES_BYTES)
def test_allocation_units_round_up(rule: AllocationUnits[float], size_bytes: int) -> None:
    units = allocation_units(size_bytes, rule.unit_bytes)
    assert (units - 1) * rule.unit_bytes < size_bytes <= units * rule.unit_bytes
    assert rule.rate(RuleInput(size_bytes)) == min(
        units * rule.per_unit, rule.maximum or float("inf")
    )


def test_clamp_adds_base_and_rate() -> None:
    rule = Clamp(base=6000, per_gib=30, maximum=100000)
    assert rule.rate(RuleInput(500 * GIB)) == 21000
    assert rule.rate(RuleInput(10000 * GIB)) == 100000


def test_from_iops_rounds_half_up() -> None:
    rule = FromIops(bytes_per_io=128 * KIB, round_to=MIB)
    assert rule.rate(RuleInput(GIB, other=300)) == 38 * MIB
    assert rule.rate(RuleInput(GIB, other=250)) == 31 * MIB


def test_clamp_is_never_rounded_to_zero() -> None:
    assert Clamp(per_gib=1, round_to=1).rate(RuleInput(1)) == 1


def test_tiers_apply_up_to_their_size_and_last_beyond() -> None:
    rule = Tiers(steps=(Tier(32 * GIB, 120), Tier(64 * GIB, 240), Tier(128 * GIB, 500)))
    sizes = (1, 32 * GIB, 32 * GIB + 1, 128 * GIB, 4096 * GIB)
    assert [rule.rate(RuleInput(size)) for size in sizes] == [120, 120, 240, 500, 500]


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
    with pytest.raises(ValueError, match="found none of base, per_gib, per_unit and minimum"):
        Clamp(maximum=100)


GP3 = Provisioned(minimum=3000, maximum=Clamp(per_gib=500, maximum=80000), default=3000)


def test_bounds_of_provisioned_values_follow_the_size() -> None:
    assert GP3.bounds(RuleInput(1 * GIB)) == (3000, 3000)  # the minimum is available at any size
    assert GP3.bounds(RuleInput(20 * GIB)) == (3000, 10000)
    assert GP3.bounds(RuleInput(1000 * GIB)) == (3000, 80000)


def test_bounds_of_a_bandwidth_follow_the_iops() -> None:
    most = FromIops(bytes_per_io=MIB // 4, maximum=1000 * MIB)
    rule = Provisioned(minimum=125 * MIB, maximum=most)
    assert rule.bounds(RuleInput(GIB, other=2000)) == (125 * MIB, 500 * MIB)
    assert rule.bounds(RuleInput(GIB, other=16000)) == (125 * MIB, 1000 * MIB)


def test_provisioned_value_beyond_the_bounds_counts() -> None:
    assert GP3.rate(RuleInput(20 * GIB, provisioned=90000)) == 90000
    assert GP3.rate(RuleInput(20 * GIB)) == 3000
    assert Provisioned(minimum=100, maximum=64000).rate(RuleInput(GIB)) is None


def test_default_follows_the_size_within_the_bounds() -> None:
    rule = Provisioned(minimum=100, maximum=5000, default=Clamp(per_gib=100))
    assert [rule.rate(RuleInput(size * GIB)) for size in (0.5, 10, 100)] == [100, 1000, 5000]


@given(SIZES_BYTES, SIZES_BYTES, clamps())
def test_provisioned_bounds_never_cross_or_decrease(
    one: int, other: int, maximum: Clamp[float]
) -> None:
    rule = Provisioned(minimum=100, maximum=maximum)
    small, large = (rule.bounds(RuleInput(size)) for size in sorted((one, other)))
    assert 100 == small[0] <= small[1] <= large[1]


def test_iops_that_follow_from_bandwidth() -> None:
    rule = FromBandwidth(bytes_per_io=256 * KIB, maximum=9600)
    assert rule.rate(RuleInput(GIB, other=100 * MIB)) == 400
    assert rule.rate(RuleInput(GIB, other=10000 * MIB)) == 9600


def test_greatest_of_two_laws() -> None:
    """io1: 256 KiB per IOPS up to 500 MiB/s, 16 KiB per IOPS beyond."""
    rule = Greatest[float](
        of=(
            FromIops(bytes_per_io=256 * KIB, maximum=500 * MIB),
            FromIops(bytes_per_io=16 * KIB, maximum=1000 * MIB),
        )
    )
    rates = [rule.rate(RuleInput(GIB, other=iops)) for iops in (1000, 2000, 32000, 48000, 64000)]
    assert rates == [mib * MIB for mib in (250, 500, 500, 750, 1000)]


def test_base_by_size_plus_what_was_bought() -> None:
    iops = Sum[float](
        of=(Clamp(base=1800, per_gib=50, minimum=3000, maximum=50000), Provisioned(maximum=50000))
    )
    bandwidth = Sum[float](
        of=(Clamp(base=120 * MIB), FromIops(bytes_per_io=16 * KIB, of_provisioned=True))
    )
    assert iops.rate(RuleInput(100 * GIB)) == 6800
    assert iops.rate(RuleInput(100 * GIB, provisioned=6400)) == 13200
    assert bandwidth.rate(RuleInput(100 * GIB, other=13200, other_provisioned=6400)) == 220 * MIB
    assert bandwidth.rate(RuleInput(100 * GIB, other=6800)) == 120 * MIB
    assert Sum[float](of=(Provisioned(minimum=1.0),)).rate(RuleInput(GIB)) is None


def test_by_size_may_step_down() -> None:
    rule = BySize[float](
        steps=(SizeStep(GIB, Clamp(per_gib=12)), SizeStep(10 * GIB, Clamp(per_gib=9)))
    )
    rates = [rule.rate(RuleInput(int(size * GIB))) for size in (0.5, 1, 9, 10, 20)]
    assert rates == [6, 12, 108, 90, 180]


@pytest.mark.parametrize("sizes", [(), (2, 1), (1, 1)])
def test_by_size_rejects_steps_out_of_order(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected growing sizes"):
        BySize[float](steps=tuple(SizeStep(size, 1.0) for size in sizes))


def test_rounding_up_of_whole_numbers_adds_nothing() -> None:
    rule = Clamp(per_gib=0.06 * MIB, round_to=MIB, round_up=True)
    rates = [rule.rate(RuleInput(size * GIB)) / MIB for size in (1, 50, 51, 100, 150, 2048)]
    assert rates == [1, 3, 4, 6, 9, 123]


def test_clamp_has_one_rate_by_size() -> None:
    assert Clamp(per_unit=64, unit_bytes=10**12).rate(RuleInput(3 * 10**12)) == 192
    with pytest.raises(ValueError, match="found per_gib beside per_unit or unit_bytes"):
        Clamp(per_gib=1, per_unit=1)
    with pytest.raises(ValueError, match="found per_gib beside per_unit or unit_bytes"):
        Clamp(per_gib=1, unit_bytes=10**12)


def test_multiple_and_least_of_what_was_bought() -> None:
    bought = Provisioned[float](minimum=1)
    triple = Multiple[float](factor=3, of=bought, minimum=30, maximum=300)
    rates = [triple.rate(RuleInput(GIB, provisioned=value)) for value in (1, 20, 1000)]
    assert rates == [30, 60, 300]
    assert triple.rate(RuleInput(GIB)) is None
    parts = (bought, Clamp[float](base=5))
    for rule, expected in ((Least(of=parts), 2), (Greatest(of=parts), 5)):
        assert rule.rate(RuleInput(GIB, provisioned=2)) == expected
        assert rule.rate(RuleInput(GIB)) is None
    nested = Sum[float](of=(Clamp(base=5), triple))
    assert provisioned_parts(nested) == [bought]


def test_burst_from_the_baseline() -> None:
    rule = FromBaseline[float](factor=3, minimum=10000, maximum=102400)
    rates = [rule.rate(RuleInput(GIB, other=base)) for base in (3000, 4000, 50000)]
    assert rates == [10000, 12000, 102400]


@pytest.mark.parametrize("default", [99, 1001])
def test_provisioned_rejects_default_out_of_bounds(default: float) -> None:
    with pytest.raises(ValueError, match="expected minimum <= default <= maximum"):
        Provisioned(minimum=100, maximum=1000, default=default)
