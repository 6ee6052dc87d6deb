"""Verdicts on disks that the lab serves, with so much tolerance that a busy machine passes.

How accurate verdicts are also depends on how busy the machine is: `make lab` measures it, and
tests/verdict/throttling/test_lab_recordings.py requires it of recordings.
"""

from pathlib import Path

import pytest

from lab.__main__ import missing, missing_for
from lab.experiment import SCENARIO, machine_truth_file, read_results, read_truth, run, truth_file
from lab.judge import Findings
from lab.negatives import negative
from lab.scenario import all_scenarios, read_scenario
from lab.table import row
from lab.verdict import disagreements_with_fio, verdicts

pytestmark = pytest.mark.alone
REASON = missing()
needs_lab = pytest.mark.skipif(REASON is not None, reason=f"NOT TESTED: the lab {REASON}")


def findings_of(name: str, directory: Path) -> Findings:
    """Run a scenario of one disk, compare the truth with fio, and return the findings."""
    path = all_scenarios()[name]
    run(path, directory)
    (result,) = read_results(directory)
    assert disagreements_with_fio(read_truth(truth_file(directory, 0)), result) == []
    (verdict,) = verdicts(name, read_scenario(path), directory)
    return verdict.findings


@needs_lab
@pytest.mark.parametrize(
    "name", [pytest.param("deep-queue", marks=pytest.mark.in_check), "sync-writer"]
)
def test_throttled_disk_is_reported_with_its_limit(name: str, tmp_path: Path) -> None:
    findings = findings_of(name, tmp_path)
    assert findings.reported_s > findings.truth_s / 2 > 0
    assert set(findings.limits) == {"iops"}


def skip_if_a_program_is_missing(name: str) -> None:
    reason = missing_for(read_scenario(all_scenarios()[name]))
    if reason is not None:
        pytest.skip(f"NOT TESTED: {reason}")


@needs_lab
@pytest.mark.parametrize("name", ["postgresql-8-fdatasync", "sqlite-wal", "redis-always-1"])
def test_throttled_disk_of_a_database_is_reported(name: str, tmp_path: Path) -> None:
    skip_if_a_program_is_missing(name)
    findings = findings_of(name, tmp_path)
    assert findings.reported_s > findings.truth_s / 2 > 0
    assert findings.limits.get("iops", 0.0) > findings.truth_s / 2


@needs_lab
def test_slow_disk_without_a_limit_is_mostly_not_throttled(tmp_path: Path) -> None:
    findings = findings_of("slow-unlimited", tmp_path)
    assert findings.reported_s < findings.loaded_s / 2


@needs_lab
def test_disks_that_share_a_limiter_are_throttled_by_the_machine(tmp_path: Path) -> None:
    name = "machine-two-busy"
    path = all_scenarios()[name]
    run(path, tmp_path)
    scenario = read_scenario(tmp_path / SCENARIO)
    together = read_truth(machine_truth_file(tmp_path))
    served = sum(window.reads + window.writes for window in together)
    loaded_s = sum(window.throttled_s for window in together)
    assert scenario.machine is not None
    [meter] = scenario.machine.meters
    assert served <= meter.unit_per_second * (loaded_s + 2)
    truths = [read_truth(truth_file(tmp_path, number)) for number in range(2)]
    for truth, result in zip(truths, read_results(tmp_path), strict=True):
        assert disagreements_with_fio(truth, result) == []
    assert served == sum(window.reads + window.writes for truth in truths for window in truth)
    waits_s = [sum(window.wait_s for window in truth) for truth in truths]
    assert sum(waits_s) == pytest.approx(sum(window.wait_s for window in together))
    *disks, all_disks = [verdict.findings for verdict in verdicts(name, scenario, tmp_path)]
    for findings in disks:
        assert findings.limits.get("machine_iops", 0.0) > findings.truth_s / 2 > 0
    assert all_disks.reported_s > all_disks.truth_s / 2 > 0


@needs_lab
@pytest.mark.parametrize("name", ["two-minutes", "long-postgresql"])
def test_recorders_agree_with_the_truth_and_with_each_other(name: str, tmp_path: Path) -> None:
    """For two minutes, and for ten, under PostgreSQL whose limit and latency change."""
    skip_if_a_program_is_missing(name)
    run(all_scenarios()[name], tmp_path)
    scenario = read_scenario(tmp_path / SCENARIO)
    judged = list(verdicts(name, scenario, tmp_path))
    recorders = scenario.recorders
    assert recorders is not None
    assert len(judged) == recorders.count + recorders.restarted
    assert [verdict for verdict in judged if verdict.problems] == [], "\n".join(map(row, judged))


@needs_lab
@pytest.mark.parametrize("name", ["free-reader-few-writes", "free-postgresql-8"])
def test_program_on_a_disk_without_a_limiter_is_not_throttled(name: str, tmp_path: Path) -> None:
    skip_if_a_program_is_missing(name)
    run(all_scenarios()[name], tmp_path, phase_s=10.0)
    found = negative(name, tmp_path)
    assert found.iops > 20
    assert found.problems == []
