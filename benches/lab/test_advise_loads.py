"""Loads of `make advice`, and their table. Needs no disks."""

import msgspec
import pytest
import yaml

from disksla.measure.advice.simulation import ShareRange
from lab.advise import HEADINGS, Comparison, all_loads, read_loads, with_rows
from lab.quantity import decode
from lab.scenario import Scenario

TABLE = f"""before

| {" | ".join(HEADINGS)} |
|---|---|---|---|---|---|---|---|
| a | 12 | 300 | 0 % | 100 | 1 % to 2 % | 3 % | FAIL |
| a | 13 | 300 | 0 % | 100 | 1 % to 2 % | 1.5 % |  |

after
"""


@pytest.mark.parametrize("name", all_loads())
@pytest.mark.parametrize("seed", range(5))
def test_a_load_is_a_scenario_of_one_limit_under_each_value(name: str, seed: int) -> None:
    loads = read_loads(all_loads()[name], seed)
    assert len(set(loads.limits)) == len(loads.limits) > 1
    for limit in loads.limits:
        document = yaml.safe_load(loads.text(limit))
        scenario = msgspec.convert(document, Scenario, dec_hook=decode)
        if scenario.machine is None:
            [disk] = scenario.disks
            [meter] = disk.disk.meters
        else:
            [meter] = scenario.machine.meters
        assert limit in {meter.unit_per_second, meter.unit_per_second / 1e6}


def comparison(seed: int, measured: float) -> Comparison:
    return Comparison("a", seed, 300, 0.0, 100, ShareRange(0.1, 0.2), measured)


def test_rows_of_other_seeds_are_kept() -> None:
    document = with_rows(TABLE, [comparison(12, 0.15)])
    assert "| a | 12 | 300 | 0 % | 100 | 10 % to 20 % | 15 % |  |\n| a | 13 |" in document
    assert document.startswith("before\n\n| load |")
    assert document.endswith("| 1.5 % |  |\n\nafter\n")


def test_a_page_without_the_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="found no table"):
        with_rows("nothing", [])


@pytest.mark.parametrize(
    ("measured", "is_within"), [(0.05, False), (0.09, True), (0.21, True), (0.25, False)]
)
def test_two_runs_differ_by_little(measured: float, is_within: bool) -> None:
    assert comparison(12, measured).is_within is is_within
