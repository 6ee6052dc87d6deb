"""The short selection of the lab: real disks, really throttled, really loaded."""

from pathlib import Path

import pytest

from lab.__main__ import main, missing, missing_for
from lab.experiment import run
from lab.scenario import all_scenarios, read_scenario
from lab.table import head, rows
from lab.verdict import verdicts

RECORDINGS = Path(__file__).parent / "lab" / "recordings"
SHORT = [name for name, path in all_scenarios().items() if read_scenario(path).short]
UNABLE = missing()
ATTEMPTS = 3
"""What else runs on the machine spoils a run now and then, the load's as well as the sampler's; a
detector that is wrong is wrong each time."""


@pytest.mark.skipif(UNABLE is not None, reason=f"NOT TESTED: the lab {UNABLE}")
@pytest.mark.parametrize("name", SHORT)
def test_what_is_said_of_a_real_disk_is_true(name: str, tmp_path: Path) -> None:
    path = all_scenarios()[name]
    scenario = read_scenario(path)
    if (reason := missing_for(scenario)) is not None:
        pytest.skip(f"NOT TESTED: {name} {reason}")
    told = []
    for attempt in range(ATTEMPTS):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        run(path, directory)
        wrong = [each for each in verdicts(name, scenario, directory) if each.problems]
        if not wrong:
            return
        told += [rows(each) for each in wrong]
    pytest.fail("\n".join([f"wrong {ATTEMPTS} times:", head(), *told]))


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDINGS.iterdir()))
def test_what_is_said_of_a_recording_is_true(name: str) -> None:
    scenario = read_scenario(all_scenarios()[name])
    for verdict in verdicts(name, scenario, RECORDINGS / name):
        assert verdict.problems == [], f"\n{head()}\n{rows(verdict)}"


@pytest.mark.parametrize("name", all_scenarios())
def test_every_scenario_can_be_read(name: str) -> None:
    assert read_scenario(all_scenarios()[name]).disks


def test_the_table_fits_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    written = tmp_path / "accuracy.md"
    assert main(["--judge", str(RECORDINGS), "--report", str(written)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].startswith("0 of ")
    assert max(map(len, shown)) <= 80
    assert written.read_text().count("| pass |\n") == len(shown) - 2
