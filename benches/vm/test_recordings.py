"""Recordings of `make vm`: verdicts agree with the trace of QEMU. Needs no virtual machine."""

import gzip
import shutil
from functools import cache
from pathlib import Path
from statistics import median

import msgspec
import pytest

from lab.table import headings, row
from lab.verdict import Verdict
from vm.__main__ import main
from vm.experiment import RESULTS, TRACE, Results
from vm.limits import Admitted, bucket_size, levels_at
from vm.truth import read_trace
from vm.verdict import verdicts_on

HERE = Path(__file__).parent / "recordings"
NAMES = sorted(path.name for path in HERE.iterdir())


@cache
def judged_recording(name: str) -> list[Verdict]:
    """Return the verdicts; a name may say after @ what was different."""
    return verdicts_on(name.partition("@")[0], HERE / name)


@pytest.mark.in_check
@pytest.mark.parametrize("name", NAMES)
def test_verdicts_on_a_recording_agree_with_the_trace(name: str) -> None:
    for verdict in judged_recording(name):
        assert verdict.problems == [], f"\n{headings()}\n{row(verdict)}"


def test_qemu_admits_requests_that_wait_when_its_bucket_is_no_longer_over_full() -> None:
    directory = HERE / "deep"
    results = msgspec.json.decode((directory / RESULTS).read_bytes(), type=Results)
    trace = read_trace(gzip.decompress((directory / TRACE).read_bytes()).decode().splitlines())
    [change] = results.changes
    admissions = [
        (admission.admitted_s, admission)
        for admission in trace.admissions
        if admission.admitted_s is not None
    ]
    waited = sorted(
        at_s
        for at_s, admission in admissions
        if admission.waited and admission.arrived_s > change.at_s
    )
    admitted = [Admitted(at_s, admission.size_bytes) for at_s, admission in admissions]
    just_before = levels_at([at_s - 1e-6 for at_s in waited], [change], admitted)
    free = [bucket_size(change.limits) - level for level in just_before]
    assert len(free) > 1000
    assert min(free) > -0.01
    assert median(free) < 0.3  # requests; QEMU is late by the fraction of a millisecond


def test_recording_of_another_disk_is_judged_as_wrong(tmp_path: Path) -> None:
    directory = tmp_path / "deep"
    shutil.copytree(HERE / "deep", directory)
    trace = gzip.decompress((directory / TRACE).read_bytes()).decode().splitlines(keepends=True)
    fewer = [line for number, line in enumerate(trace) if number < len(trace) - 200]
    (directory / TRACE).write_bytes(gzip.compress("".join(fewer).encode()))
    [verdict] = verdicts_on("deep", directory)
    assert any(problem.startswith("bytes: ") for problem in verdict.problems)


def test_unmatched_clocks_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(HERE / "deep", tmp_path / "deep")
    (tmp_path / "deep" / TRACE).write_bytes(
        gzip.compress(b"7@1.0:blk_root_attach child 0xc blk 0xb bs 0xd\n")
    )
    assert main(["--judge", str(tmp_path)]) == 1
    assert "deep: FAIL: clocks: found 0 matches" in capsys.readouterr().out


def test_table_fits_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    longest = max((name for name in NAMES if "@" not in name), key=len)
    shutil.copytree(HERE / longest, tmp_path / "kept" / longest)
    assert main(["--judge", str(tmp_path / "kept")]) == 0
    shown = capsys.readouterr().out.splitlines()
    rows = len(judged_recording(longest))
    assert shown[-1] == f"0 of {rows} failed"
    assert max(map(len, shown)) <= 80
