from pathlib import Path

import msgspec
import pytest

from disksla.promise.configuration.settings_file import read_configuration
from vm.experiment import configuration
from vm.scenario import all_scenarios, read_scenario

SCENARIOS = {name: read_scenario(path) for name, path in all_scenarios().items()}


def test_name_must_fit_a_serial_number() -> None:
    with pytest.raises(ValueError, match="21 characters"):
        read_scenario(Path(21 * "a"))


def test_unknown_key_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "deep.yml"
    file.write_text(
        all_scenarios()["deep"].read_text().replace("limits: {iops:", "limits: {iopps:")
    )
    with pytest.raises(msgspec.ValidationError, match="iopps"):
        read_scenario(file)


def test_terms_are_valid(tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    for name, scenario in SCENARIOS.items():
        disks = list(zip(scenario.serials(name), scenario.disks, strict=True))
        file.write_text(configuration(disks, scenario.machine))
        settings = read_configuration(file).settings
        assert len(settings.disks) == sum(disk.terms is not None for disk in scenario.disks)
        assert (settings.machine.limits is None) == (scenario.machine is None)


def test_disk_without_terms_is_not_in_the_configuration() -> None:
    text = configuration((name, SCENARIOS[name]) for name in ("deep", "deep-no-terms"))
    assert '"serial": "deep"' in text
    assert "no-terms" not in text


def test_disks_of_a_scenario_have_serial_numbers_of_their_own() -> None:
    assert SCENARIOS["machine-three"].serials("machine-three") == [
        "machine-three",
        "machine-three-2",
        "machine-three-3",
    ]
    assert SCENARIOS["deep"].serials("deep") == ["deep"]


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
