"""Loads of `make advice`, and their table. Needs no disks."""

import msgspec
import pytest
import yaml

from lab.advise import all_loads, read_loads
from lab.model import decode
from lab.scenario import Scenario


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
