from pathlib import Path

import msgspec
import pytest

from disksla.config.settings_file import read_configuration
from vm.experiment import configuration
from vm.limits import QemuLimits
from vm.scenario import all_scenarios, choose, parse_scenario, random_numbers, read_scenario

TEXT = """\
caption: limit $iops
random: {iops: [100, 200], peak: {of: iops, times: 4}}
limits: {iops: $iops, iops_max: $peak}
load: [{for: 1s, fio: --rw=read}]
"""


@pytest.mark.parametrize("name", all_scenarios())
def test_scenario_is_valid_for_every_seed(name: str) -> None:
    scenarios = [choose(name, seed).scenario for seed in range(20)]
    assert all(scenario.load for scenario in scenarios)
    assert len({scenario.caption for scenario in scenarios}) > 1


def test_seed_chooses_the_numbers() -> None:
    numbers = random_numbers(TEXT, "5")
    assert numbers == random_numbers(TEXT, "5")
    assert numbers != random_numbers(TEXT, "6")
    assert 100 <= numbers["iops"] <= 200
    assert numbers["peak"] == 4 * numbers["iops"]


def test_numbers_are_filled_in() -> None:
    scenario = parse_scenario(TEXT, {"iops": 150, "peak": 600})
    assert scenario.limits == QemuLimits(iops=150, iops_max=600)
    assert scenario.caption == "limit 150"


def test_scenarios_of_one_seed_have_different_numbers() -> None:
    assert choose("deep", 5).numbers != choose("paused", 5).numbers
    assert choose("deep", 5) == choose("deep", 5)


def test_name_must_fit_a_serial_number() -> None:
    with pytest.raises(ValueError, match="21 characters"):
        read_scenario(21 * "a", {})


def test_unknown_key_is_rejected() -> None:
    with pytest.raises(msgspec.ValidationError, match="iopps"):
        parse_scenario(TEXT.replace("iops_max:", "iopps:"), {"iops": 1, "peak": 2})


def test_terms_are_valid(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text(configuration([choose(name, 5) for name in all_scenarios()]))
    settings = read_configuration(file).settings
    assert len(settings.disks) == len(all_scenarios()) - 1


def test_disk_without_terms_is_not_in_the_configuration() -> None:
    text = configuration([choose(name, 5) for name in ("deep", "deep-no-terms")])
    assert '"serial": "deep"' in text
    assert "no-terms" not in text
