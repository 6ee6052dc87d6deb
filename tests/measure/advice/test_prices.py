"""What disks cost by the list of the operator."""

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.schema.yaml_file import parse_record
from disksla.base.units import GIB, MIB
from disksla.measure.advice.search import Candidate, Price, PriceList
from disksla.promise.catalogue import NO_LIMITS, Provision

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
