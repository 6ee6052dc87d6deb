"""Recordings of the lab: verdicts agree with the truth. Needs no disks."""

from pathlib import Path

import pytest
import yaml

from lab.__main__ import main
from lab.experiment import as_it_ran
from lab.scenario import all_scenarios, drawn_text, read_scenario
from lab.table import headings, row
from lab.verdict import verdicts

RECORDINGS = Path(__file__).parent / "lab" / "recordings"


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDINGS.iterdir()))
def test_verdicts_on_a_recording_agree_with_the_truth(name: str) -> None:
    scenario = as_it_ran(read_scenario(all_scenarios()[name]), RECORDINGS / name)
    for verdict in verdicts(name, scenario, RECORDINGS / name):
        assert verdict.problems == [], f"\n{headings()}\n{row(verdict)}"


@pytest.mark.parametrize("name", all_scenarios())
def test_scenario_is_valid(name: str) -> None:
    assert read_scenario(all_scenarios()[name]).disks


@pytest.mark.parametrize("name", all_scenarios())
def test_random_numbers_are_those_of_the_seed(name: str) -> None:
    path = all_scenarios()[name]
    assert drawn_text(path, 1) == drawn_text(path, 1)
    assert (drawn_text(path, 1) != drawn_text(path, 2)) == bool(read_scenario(path).random)


def test_random_number_is_in_its_range(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text(
        "random: {a: {from: 3, to: 9}, b: [x, y], c: {of: a, from: 1.5, to: 1.5},"
        " d: {from: 0.5, to: 0.6}}\nout: [$a, $b, $c, $d]\n"
    )
    drawn = [yaml.safe_load(drawn_text(path, seed))["out"] for seed in range(50)]
    assert {a for a, *_ in drawn} == set(range(3, 10))
    assert {b for _, b, *_ in drawn} == {"x", "y"}
    assert all(c == round(1.5 * a) and 0.5 <= d <= 0.6 for a, _, c, d in drawn)


def test_table_fits_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    written = tmp_path / "accuracy.md"
    assert main(["--judge", str(RECORDINGS), "--report", str(written)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].startswith("0 of ")
    assert max(map(len, shown)) <= 80
    assert written.read_text().count("| pass |\n") == len(shown) - 2
