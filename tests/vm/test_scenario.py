from pathlib import Path

import msgspec
import pytest

from disksla.config.settings_file import read_configuration
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
    file.write_text(configuration(SCENARIOS))
    settings = read_configuration(file).settings
    assert len(settings.disks) == len(SCENARIOS) - 1


def test_disk_without_terms_is_not_in_the_configuration() -> None:
    text = configuration({name: SCENARIOS[name] for name in ("deep", "deep-no-terms")})
    assert '"serial": "deep"' in text
    assert "no-terms" not in text
