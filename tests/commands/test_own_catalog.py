"""Commands with an operator's own catalogue: the example of docs/configuration.md."""

import re
from pathlib import Path

import pytest

from disksla.commands.cli import main

Captured = pytest.CaptureFixture[str]

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "configuration.md"
CHAPTER = DOCUMENT.read_text(encoding="utf-8").partition("\n## Disk types of your own\n")[2]
DIRECTORY = "/etc/disksla"
"""Directory of the example."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", CHAPTER, re.DOTALL | re.MULTILINE)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return the configuration file of the example, with its catalogue file."""
    catalog, settings = blocks("yaml")
    (tmp_path / "catalog.d").mkdir()
    (tmp_path / "catalog.d" / "openstack.yml").write_text(catalog)
    path = tmp_path / "disksla.yml"
    path.write_text(settings)
    return path


def test_check_config_counts_files_and_rows(config: Path, capsys: Captured) -> None:
    assert main(["check-config", "--config.file", str(config)]) == 0
    printed = capsys.readouterr().out.replace(str(config.parent), DIRECTORY)
    (example,) = blocks("console")
    assert f"$ disksla check-config --config.file {DIRECTORY}/disksla.yml\n{printed}" in example


def test_check_config_lists_wrong_cell_of_example(config: Path, capsys: Captured) -> None:
    file = config.parent / "catalog.d" / "openstack.yml"
    file.write_text(file.read_text().replace("write_iops: 1000\n", "write_iops: 10000\n", 1))
    assert main(["check-config", "--config.file", str(config)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [captured.err.replace(str(config.parent), DIRECTORY)] == blocks("text")


def test_check_config_lists_problems_of_all_files(config: Path, capsys: Captured) -> None:
    directory = config.parent / "catalog.d"
    (directory / "a.yml").write_text("terms: 5\n")
    config.write_text("sampling: {interval: 5}\ndisks: [{match: {device: vda}, terms: no.such}]\n")
    assert main(["check-config", "--config.file", str(config)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"{directory}/a.yml:1: terms: found '5'; expected a list, each item a")
    assert second.startswith(f"{config}:1: sampling.interval: '5' has no unit")


def test_limits_of_own_type(config: Path, capsys: Captured) -> None:
    (example,) = blocks("console")
    (command,) = re.findall(r"^\$ disksla (limits .*)$", example, re.MULTILINE)
    assert main([*command.split(), f"--config.file={config}"]) == 0
    printed = capsys.readouterr().out
    assert "Acme Cloud, Ceph HDD (acme.standard), 500 GiB" in printed
    assert "10 x 500 GiB = 5000, at least 300" in printed


def test_catalog_lists_own_types(config: Path, capsys: Captured) -> None:
    assert main(["limits", f"--config.file={config}"]) == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "acme.fast" in line)
    assert row.split() == ["acme.fast", "-", "Ceph", "SSD"]


def test_limits_reports_bad_file(config: Path, capsys: Captured) -> None:
    (config.parent / "catalog.d" / "openstack.yml").write_text("term: []\n")
    assert main(["limits", "acme.fast", "1GiB", f"--config.file={config}"]) == 2
    assert "openstack.yml:1: term: unknown key (did you mean `terms`?)" in capsys.readouterr().err
