"""What would have been enough: the least of each type, and of the machines of a family."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.advice.advice import GroupOnMachine, machine_outcomes
from disksla.advice.demand import Demand, DemandWindow
from disksla.advice.search import Candidate, Needs, Outcome, least_of, outcome_of, outcomes_of_type
from disksla.advice.simulation import ShareRange
from disksla.limits import MachineChoice, Provision, Rates, build_limits, shared_limits
from disksla.limits.catalog import load_catalog
from disksla.limits.cost_model import Work
from disksla.limits.derive import beyond_bounds, beyond_sizes
from disksla.limits.machine_tables import load_machine_rules, read_machine, read_table
from disksla.limits.terms import Terms
from disksla.units import GIB, KIB, MIB
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


def of_type(name: str, size_gib: int, needed: Needs) -> list[Outcome]:
    return outcomes_of_type(CATALOG[name], size_gib * GIB, needed)


def test_what_is_provisioned_by_default_may_be_enough() -> None:
    [only] = of_type("aws.gp3", 100, needs(3000))
    assert only.candidate == Candidate("aws.gp3", 100 * GIB, Provision(), only.candidate.limits)
    assert (only.share, only.answer, only.performance_iops) == ((0, 0), "enough", 3000)


def test_least_provisioned_iops_that_are_enough() -> None:
    plain, enough = of_type("aws.gp3", 100, needs(4130))
    assert plain.answer == "not enough"
    assert enough.candidate.provision == Provision(4200, 125 * MIB)
    assert enough.answer == "enough"
    assert enough.performance_iops == pytest.approx(4200)


def test_least_provisioned_bandwidth_that_is_enough() -> None:
    [_, enough] = of_type("aws.gp3", 100, needs(1000, size_bytes=200 * KIB))
    assert enough.candidate.provision == Provision(3000, 196 * MIB)


def test_least_size_that_is_enough() -> None:
    plain, enough = of_type("aws.gp2", 200, needs(900))
    assert (plain.candidate.size_bytes, plain.answer) == (200 * GIB, "maybe")  # full credits
    assert (enough.candidate.size_bytes, enough.answer) == (300 * GIB, "enough")


def test_a_load_that_was_throttled_may_need_anything() -> None:
    outcomes = of_type("aws.io1", 100, needs(4000, is_limited=True))
    assert [each.answer for each in outcomes] == ["not enough", "maybe"]
    assert outcomes[1].candidate.provision == Provision(4300)


def test_a_type_that_is_never_enough_shows_its_best() -> None:
    plain, best = of_type("aws.st1", 200, needs(1000, size_bytes=MIB))
    assert [plain.answer, best.answer] == ["not enough", "not enough"]
    assert best.candidate.size_bytes > plain.candidate.size_bytes


def test_a_type_of_one_performance_shows_one_disk() -> None:
    assert [each.answer for each in of_type("aws.standard", 100, needs(10_000))] == ["not enough"]


def test_a_type_without_such_sizes_has_no_disks() -> None:
    assert of_type("aws.standard", 2048, needs(10)) == []


def test_a_type_starts_at_its_least_size() -> None:
    assert of_type("aws.st1", 10, needs(1))[0].candidate.size_bytes == 125 * GIB


def test_an_option_may_be_enough() -> None:
    outcomes = of_type("azure.premium-ssd", 100, needs(1900))
    assert outcomes[-1].candidate.provision == Provision(options={"tier": "P20"})


def test_least_of_nothing_is_nothing() -> None:
    assert least_of([], "maybe") is None


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
    outcome = of_type("aws.gp3", 1000, needed)[-1]
    assert outcome.answer == "enough"
    lower = build_limits(
        Rates(outcome.performance_iops - 100, outcome.performance_iops - 100), "sum"
    )
    if outcome.candidate.provision != Provision():
        assert needed.answer(needed.share(lower)) != "enough"


def test_answers_follow_from_the_range() -> None:
    needed = needs(1)
    assert needed.answer(ShareRange(0, TOLERATED)) == "enough"
    assert needed.answer(ShareRange(TOLERATED, 0.5)) == "maybe"
    assert needed.answer(ShareRange(0.1, 0.5)) == "not enough"


def machines(name: str, needed: Needs, *, has_family: bool = True) -> list[tuple[str, str]]:
    rules = load_machine_rules("aws")
    assert rules is not None
    choice = MachineChoice(rules, read_machine(rules, name, None))
    [shared] = shared_limits(choice, None)
    choices = (choice,) if has_family else ()
    outcomes = machine_outcomes(GroupOnMachine((), shared, choices, read_table(rules)), needed)
    return [(each.machine, each.answer) for each in outcomes]


def test_a_machine_that_is_enough_is_the_only_answer() -> None:
    assert machines("m5.4xlarge", needs(1000)) == [("m5.4xlarge", "enough")]


def test_the_next_machine_that_is_enough() -> None:
    assert machines("m5.4xlarge", needs(20_000)) == [
        ("m5.4xlarge", "not enough"),
        ("m5.8xlarge", "enough"),
    ]


def test_a_burst_of_a_machine_may_be_enough() -> None:
    assert machines("m5.large", needs(10_000)) == [("m5.large", "maybe"), ("m5.2xlarge", "enough")]


def test_a_family_that_is_never_enough_shows_its_best() -> None:
    assert machines("m5.large", needs(10**6))[-1][1] == "not enough"
    assert len(machines("m5.large", needs(10**6))) == 2


def test_a_machine_whose_limits_are_written_out_has_no_family() -> None:
    assert len(machines("m5.large", needs(10**6), has_family=False)) == 1
