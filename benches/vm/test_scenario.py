from pathlib import Path

import msgspec
import pytest

from disksla.promise.configuration.settings_file import read_configuration
from vm.experiment import configuration
from vm.scenario import all_scenarios, read_scenario

SCENARIOS = {name: read_scenario(path) for name, path in all_scenarios().items()}


def test_terms_are_valid(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    for name, scenario in SCENARIOS.items():
        disks = list(zip(scenario.serials(name), scenario.disks, strict=True))
        file.write_text(configuration(disks, scenario.machine))
        settings = read_configuration(file).settings
        assert len(settings.disks) == sum(disk.terms is not None for disk in scenario.disks)
        assert (settings.machine.limits is None) == (scenario.machine is None)


@pytest.mark.parametrize("name", SCENARIOS)
def test_all_serial_numbers_fit(name: str) -> None:
    assert all(len(serial) <= 20 for serial in SCENARIOS[name].serials(name))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("iodepth=16}", "iodepth=16, events: [{at: 1s, replug: true}]}", "replug"),
        ("[{for: 30s}]", "[{for: 30s, events: [{at: 1s, pause: 1s}]}]", "events"),
    ],
)
def test_only_a_single_disk_is_unplugged(old: str, new: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "alone.yml"
    file.write_text(all_scenarios()["machine-alone"].read_text().replace(old, new))
    with pytest.raises(msgspec.ValidationError, match=problem):
        read_scenario(file)
