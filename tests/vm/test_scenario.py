from pathlib import Path

import msgspec
import pytest

from disksla.config.settings_file import read_configuration
from vm.experiment import configuration
from vm.limits import QemuLimits
from vm.scenario import all_scenarios, choose, parse_scenario

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
    scenario = parse_scenario("name", TEXT, 5)
    assert scenario == parse_scenario("name", TEXT, 5)
    assert scenario != parse_scenario("other", TEXT, 5)
    iops = scenario.limits.iops
    assert iops is not None
    assert 100 <= iops <= 200
    assert scenario.limits == QemuLimits(iops=iops, iops_max=4 * iops)
    assert scenario.caption == f"limit {iops}"


def test_name_must_fit_a_serial_number() -> None:
    with pytest.raises(ValueError, match="21 characters"):
        parse_scenario(21 * "a", TEXT, 5)


def test_unknown_key_is_rejected() -> None:
    with pytest.raises(msgspec.ValidationError, match="iopps"):
        parse_scenario("name", TEXT.replace("iops_max:", "iopps:"), 5)


def test_terms_are_valid(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text(configuration([choose(name, 5) for name in all_scenarios()]))
    settings = read_configuration(file).settings
    assert len(settings.disks) == len(all_scenarios()) - 1


def test_disk_without_terms_is_not_in_the_configuration() -> None:
    text = configuration([choose(name, 5) for name in ("deep", "deep-no-terms")])
    assert '"serial": "deep"' in text
    assert "no-terms" not in text
