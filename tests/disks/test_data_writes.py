"""Counters of data writes that cannot be opened; tests/integration has those that can."""

import logging
import os
from pathlib import Path

import pytest

from disksla.disks.data_writes import CREDENTIAL, DataWriteCounters
from disksla.system.roots import Roots
from support.log_events import events

DISKS = {"vda": (254, 0), "vdb": (254, 16)}


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    online = tmp_path / "sys" / "devices" / "system" / "cpu" / "online"
    online.parent.mkdir(parents=True)
    online.write_text("0-1\n")
    return Roots(procfs=tmp_path / "proc", sysfs=tmp_path / "sys")


def credentials(tmp_path: Path, content: str) -> dict[str, str]:
    (tmp_path / CREDENTIAL).write_text(content)
    return {"CREDENTIALS_DIRECTORY": str(tmp_path)}


def test_without_permission_it_is_logged_once_and_is_no_error(
    roots: Roots, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    counters = DataWriteCounters(roots, {})
    assert not counters.may_wait(DISKS)
    assert [counters.read(DISKS) for _ in range(3)] == [({}, {})] * 3
    assert counters.may_wait(DISKS)
    (event,) = events(caplog)
    assert (event.level, event.message) == ("info", "data writes are not counted exactly")
    assert "cannot read the number of the tracepoint" in event.fields["err"]
    assert "it needs root and tracefs, or the drop-in" in event.fields["err"]
    assert counters.why_not == event.fields["err"]


def test_without_disks_nothing_is_tried(roots: Roots, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    counters = DataWriteCounters(roots, {"CREDENTIALS_DIRECTORY": "/nonexistent"})
    assert counters.read({}) == ({}, {})
    assert (events(caplog), counters.why_not) == ([], None)


def test_configured_counters_that_fail_are_a_problem_until_they_work(
    roots: Roots, tmp_path: Path
) -> None:
    counters = DataWriteCounters(roots, credentials(tmp_path, "many\n"))
    for _ in range(2):
        counts, problems = counters.read(DISKS)
        assert counts == {}
        assert "found 'many\\n'; expected a whole number" in problems["data_writes"]
        assert not counters.may_wait(DISKS), "an idle disk must not hide the problem"
    assert counters.why_not is None


def test_unreadable_list_of_cpus_is_a_problem(roots: Roots, tmp_path: Path) -> None:
    counters = DataWriteCounters(roots, credentials(tmp_path, "1\n"))
    online = roots.sysfs / "devices" / "system" / "cpu" / "online"
    online.write_text("every one\n")
    assert "expected a list of CPUs" in counters.read(DISKS)[1]["data_writes"]
    online.unlink()
    assert "No such file" in counters.read(DISKS)[1]["data_writes"]


def test_descriptors_are_left_for_clients(roots: Roots, tmp_path: Path) -> None:
    counters = DataWriteCounters(roots, credentials(tmp_path, "1\n"))
    (roots.sysfs / "devices" / "system" / "cpu" / "online").write_text("0-4194303\n")
    _, problems = counters.read(DISKS)
    assert "expected 8388608; raise LimitNOFILE" in problems["data_writes"]


def test_events_of_an_unknown_tracepoint_are_a_problem(roots: Roots, tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- descriptors, not files
    counters = DataWriteCounters(roots, credentials(tmp_path, str(2**63)))
    _, problems = counters.read(DISKS)
    assert "perf_event_open: " in problems["data_writes"]
    assert set(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208
