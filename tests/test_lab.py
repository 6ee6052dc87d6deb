"""Recordings of the lab: verdicts agree with the truth. Needs no disks."""

from pathlib import Path

import pytest

from lab.__main__ import main
from lab.scenario import all_scenarios, read_scenario
from lab.table import headings, row
from lab.verdict import verdicts

RECORDINGS = Path(__file__).parent / "lab" / "recordings"


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDINGS.iterdir()))
def test_verdicts_on_a_recording_agree_with_the_truth(name: str) -> None:
    scenario = read_scenario(all_scenarios()[name])
    for verdict in verdicts(name, scenario, RECORDINGS / name):
        assert verdict.problems == [], f"\n{headings()}\n{row(verdict)}"


@pytest.mark.parametrize("name", all_scenarios())
def test_scenario_is_valid(name: str) -> None:
    assert read_scenario(all_scenarios()[name]).disks


def test_table_fits_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    written = tmp_path / "accuracy.md"
    assert main(["--judge", str(RECORDINGS), "--report", str(written)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].startswith("0 of ")
    assert max(map(len, shown)) <= 80
    assert written.read_text().count("| pass |\n") == len(shown) - 2
