"""What would have been enough: the least of each type, and of the machines of a family."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.schema.yaml_file import parse_record
from disksla.base.units import GIB, KIB, MIB
from disksla.measure.advice.advice import GroupOnMachine, machine_outcomes
from disksla.measure.advice.demand import Demand, DemandWindow
from disksla.measure.advice.search import (
    Answer,
    Candidate,
    Needs,
    Price,
    PriceList,
    least_of,
    outcome_of,
    outcomes_of_type,
)
from disksla.measure.advice.simulation import ShareRange
from disksla.promise.catalogue import (
    NO_LIMITS,
    MachineChoice,
    Provision,
    Rates,
    build_limits,
    shared_limits,
)
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.cost_model import Work
from disksla.promise.catalogue.derive import beyond_bounds, beyond_sizes
from disksla.promise.catalogue.machine_tables import load_machine_rules, read_machine, read_table
from disksla.promise.catalogue.terms import Terms
from support.examples import scaled

CATALOG = load_catalog()
TYPES = [row for row in CATALOG.rows if row.budget is not None]
TOLERATED = 0.001
LONG_S = 1000.0
"""So long that a tenth of a second of saved tokens does not count."""


def needs(*per_second: float, size_bytes: int = 4 * KIB, is_limited: bool = False) -> Needs:
    """Return the needs of reads, so many per second, each for the same long time."""
    windows = []
    for iops in per_second:
        reads = iops * LONG_S
        work = Work(reads, 0, reads * size_bytes, 0)
        most = math.inf if is_limited else reads
        throttled_s = LONG_S if is_limited else 0.0
        windows.append(DemandWindow(LONG_S, work, work, throttled_s, is_limited, reads, most))
    return Needs(Demand(tuple(windows)), TOLERATED, 0.05)


PLAIN = Provision()
TIER = Provision(options={"tier": "P20"})


@pytest.mark.parametrize(
    ("terms", "size_gib", "needed", "expected"),
    [
        ("aws.gp3", 100, needs(3000), [(100, PLAIN, "enough")]),
        ("aws.gp3", 100, needs(4130),
         [(100, PLAIN, "not enough"), (100, Provision(4200, 125 * MIB), "enough")]),
        ("aws.gp3", 100, needs(1000, size_bytes=200 * KIB),
         [(100, PLAIN, "not enough"), (100, Provision(3000, 196 * MIB), "enough")]),
        # Full credits may be enough.
        ("aws.gp2", 200, needs(900), [(200, PLAIN, "maybe"), (300, PLAIN, "enough")]),
        # A load that was throttled may need anything.
        ("aws.io1", 100, needs(4000, is_limited=True),
         [(100, Provision(100), "not enough"), (100, Provision(4300), "maybe")]),
        # Never enough: the best of the type.
        ("aws.st1", 200, needs(1000, size_bytes=MIB),
         [(200, PLAIN, "not enough"), (16_384, PLAIN, "not enough")]),
        ("aws.standard", 100, needs(10_000), [(100, PLAIN, "not enough")]),
        ("aws.standard", 2048, needs(10), []),
        ("aws.st1", 10, needs(1), [(125, PLAIN, "enough")]),
        ("azure.premium-ssd", 100, needs(1900), [(100, PLAIN, "maybe"), (100, TIER, "enough")]),
    ],
)  # fmt: skip
def test_disks_of_a_type_that_matter(
    terms: str, size_gib: int, needed: Needs, expected: list[tuple[int, Provision, Answer]]
) -> None:
    found = outcomes_of_type(CATALOG[terms], size_gib * GIB, needed)
    assert [
        (each.candidate.size_bytes // GIB, each.candidate.provision, each.answer) for each in found
    ] == expected


@pytest.mark.parametrize("row", TYPES, ids=lambda row: row.id)
@scaled(20)
@given(
    size_gib=st.integers(1, 70_000),
    iops=st.integers(1, 200_000),
    size_bytes=st.sampled_from([4 * KIB, 64 * KIB, MIB]),
)
def test_every_disk_is_sold(row: Terms, size_gib: int, iops: int, size_bytes: int) -> None:
    needed = needs(iops, iops / 2, size_bytes=size_bytes)
    for outcome in outcomes_of_type(row, size_gib * GIB, needed):
        candidate = outcome.candidate
        assert candidate.size_bytes >= size_gib * GIB
        assert beyond_sizes(row, candidate.size_bytes) == []
        assert beyond_bounds(row, candidate.size_bytes, candidate.provision) == []
        assert outcome == outcome_of(candidate, needed)
        assert 0 < outcome.performance_iops < math.inf


@given(st.integers(3000, 16_000))
def test_no_lower_step_is_enough(iops: int) -> None:
    needed = needs(iops)
    outcome = outcomes_of_type(CATALOG["aws.gp3"], 1000 * GIB, needed)[-1]
    assert outcome.answer == "enough"
    assert least_of([], "maybe") is None
    lower = build_limits(
        Rates(outcome.performance_iops - 100, outcome.performance_iops - 100), "sum"
    )
    if outcome.candidate.provision != Provision():
        assert needed.answer(needed.share(lower)) != "enough"


def test_answers_follow_from_the_range() -> None:
    ranges = (ShareRange(0, TOLERATED), ShareRange(TOLERATED, 0.5), ShareRange(0.1, 0.5))
    assert [needs(1).answer(each) for each in ranges] == ["enough", "maybe", "not enough"]


def machines(name: str, needed: Needs, *, has_family: bool = True) -> list[tuple[str, str]]:
    rules = load_machine_rules("aws")
    assert rules is not None
    choice = MachineChoice(rules, read_machine(rules, name, None))
    [shared] = shared_limits(choice, None)
    choices = (choice,) if has_family else ()
    outcomes = machine_outcomes(GroupOnMachine((), shared, choices, read_table(rules)), needed)
    return [(each.machine, each.answer) for each in outcomes]


@pytest.mark.parametrize(
    ("name", "iops", "expected"),
    [
        ("m5.4xlarge", 1000, [("m5.4xlarge", "enough")]),
        ("m5.4xlarge", 20_000, [("m5.4xlarge", "not enough"), ("m5.8xlarge", "enough")]),
        ("m5.large", 10_000, [("m5.large", "maybe"), ("m5.2xlarge", "enough")]),
    ],
)
def test_machines_of_the_family(name: str, iops: int, expected: list[tuple[str, str]]) -> None:
    assert machines(name, needs(iops)) == expected


def test_a_family_that_is_never_enough_shows_its_best() -> None:
    assert [answer for _, answer in machines("m5.large", needs(10**6))] == ["not enough"] * 2
    # A machine whose limits are written out has no family.
    assert len(machines("m5.large", needs(10**6), has_family=False)) == 1


GP3 = Price(gib=0.08, iops=0.005, iops_included=3000, mib_per_s=0.04, mib_per_s_included=125)


@pytest.mark.parametrize(
    ("provision", "price"),
    [
        (Provision(), 8),
        (Provision(3000, 125 * MIB), 8),
        (Provision(4000), 13),
        (Provision(4000, 225 * MIB), 17),
        (Provision(options={"tier": "P30"}), None),
    ],
)
def test_what_is_above_the_included_values_is_paid(
    provision: Provision, price: float | None
) -> None:
    assert GP3.of(100 * GIB, provision) == (price and pytest.approx(price))


def test_a_price_that_the_list_does_not_have_is_not_known() -> None:
    assert Price(gib=0.1).of(100 * GIB, Provision(500)) is None
    candidate = Candidate("aws.gp2", GIB, Provision(), NO_LIMITS)
    assert PriceList("USD", {"aws.gp3": GP3}).price_of(candidate) is None
    assert PriceList("USD", {"aws.gp2": Price(gib=0.1)}).price_of(candidate) == 0.1


def test_every_problem_of_the_file_is_named() -> None:
    content = b"prices: {aws.gp3: {gib: free, disk: 3}}"
    with pytest.raises(DiskslaError) as raised:
        parse_record(content, "prices.yml", PriceList, {})
    problems = str(raised.value).splitlines()
    assert len(problems) == 3
    assert all(line.startswith("prices.yml:1: ") for line in problems)
