"""Verdicts on real disks: the short scenarios of the lab, throttled and loaded."""

from pathlib import Path

import pytest

from lab.__main__ import missing, missing_for
from lab.experiment import run
from lab.scenario import all_scenarios, read_scenario
from lab.table import headings, row
from lab.verdict import verdicts

SHORT = [name for name, path in all_scenarios().items() if read_scenario(path).short]
REASON = missing()
ATTEMPTS = 3
"""Other work on the machine sometimes disturbs a run, of the load or of the sampler; a detector
that is wrong fails every time."""


@pytest.mark.skipif(REASON is not None, reason=f"NOT TESTED: the lab {REASON}")
@pytest.mark.parametrize("name", SHORT)
def test_verdicts_on_a_real_disk_agree_with_the_truth(name: str, tmp_path: Path) -> None:
    path = all_scenarios()[name]
    scenario = read_scenario(path)
    if (reason := missing_for(scenario)) is not None:
        pytest.skip(f"NOT TESTED: {name} {reason}")
    failures = []
    for attempt in range(ATTEMPTS):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        run(path, directory)
        failed = [each for each in verdicts(name, scenario, directory) if each.problems]
        if not failed:
            return
        failures += [row(each) for each in failed]
    pytest.fail("\n".join([f"failed {ATTEMPTS} times:", headings(), *failures]))
