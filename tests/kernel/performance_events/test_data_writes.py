"""Counters of data writes that cannot be opened; tests/integration has those that can."""

import logging
from functools import partial
from pathlib import Path

import pytest

from disksla.base.operating_system.machine import Roots
from disksla.kernel.performance_events.data_writes import DataWriteCounters
from disksla.kernel.performance_events.opened import open_events
from disksla.kernel.performance_events.opening import COMPLETED, EventFiles, describe_refusal
from disksla.kernel.performance_events.source import EventSource
from support.log_events import events
from support.opened_events import NO_HELPER, PATIENCE_S, counting, source_of
from support.waiting import eventually

DISKS = {"vda": (254, 0), "vdb": (254, 16)}
FORMAT = Path(__file__).parent / "formats" / "6.18" / COMPLETED


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    found = Roots(procfs=tmp_path / "proc", sysfs=tmp_path / "sys")
    online = found.sysfs / "devices" / "system" / "cpu" / "online"
    online.parent.mkdir(parents=True)
    online.write_text("0-1\n")
    for major, minor in DISKS.values():
        (found.sysfs / "dev" / "block" / f"{major}:{minor}").mkdir(parents=True)
    return found


def reason(counters: DataWriteCounters) -> str:
    """Return why data writes are not counted, once it is known."""

    def read() -> bool:
        assert counters.read(DISKS) == ({}, {})
        return counters.why_not is not None

    assert eventually(read, PATIENCE_S)
    assert counters.why_not is not None
    return counters.why_not


def test_without_permission_it_is_logged_once_and_is_no_error(
    roots: Roots, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with counting(roots) as counters:
        assert not counters.may_wait(DISKS)
        why = reason(counters)
        assert counters.may_wait(DISKS)
        assert not counters.counts
        assert counters.source.health is None
    assert "no helper listens on /nonexistent/events.sock, and this process may not: " in why
    assert f"cannot read the format of the tracepoint {COMPLETED}" in why
    (event,) = events(caplog)
    assert (event.level, event.message) == ("info", "events not opened")
    assert event.fields["err"].args[0] == why


def test_without_disks_nothing_is_tried(roots: Roots, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with counting(roots) as counters:
        assert counters.read({}) == ({}, {})
        assert (events(caplog), counters.why_not) == ([], None)


@pytest.mark.parametrize(
    ("online", "message"),
    [
        ("every one\n", "expected a list of CPUs"),
        (None, "found ''; expected a list of CPUs"),
        ("0-4194303\n", "expected 8388608, one for each CPU and disk; raise LimitNOFILE"),
    ],
)
def test_cpus_that_are_not_known_or_too_many(
    roots: Roots, online: str | None, message: str
) -> None:
    file = roots.sysfs / "devices" / "system" / "cpu" / "online"
    file.unlink()
    if online is not None:
        file.write_text(online)
    with counting(roots) as counters:
        assert message in reason(counters)


def test_format_of_another_kernel(roots: Roots) -> None:
    file = roots.sysfs / "kernel" / "tracing" / "events" / "block" / COMPLETED / "format"
    file.parent.mkdir(parents=True)
    file.write_text(FORMAT.read_text().replace("nr_sector", "sectors"))
    with counting(roots) as counters:
        assert "this kernel is not known" in reason(counters)


def test_disk_that_does_not_exist(roots: Roots) -> None:
    (roots.sysfs / "dev" / "block" / "254:16").rmdir()
    with counting(roots) as counters:
        assert "found the disk 254:16; expected one that exists" in reason(counters)


def test_locked_down_kernel_is_named(roots: Roots) -> None:
    file = roots.sysfs / "kernel" / "security" / "lockdown"
    file.parent.mkdir(parents=True)
    file.write_text("none integrity [confidentiality]\n")
    with counting(roots) as counters:
        assert "the kernel is locked down (confidentiality)" in reason(counters)


def test_credential_without_a_format(roots: Roots, tmp_path: Path) -> None:
    """What the unit passes on a machine without tracefs."""
    (tmp_path / COMPLETED).write_text("unknown")
    opener = partial(open_events, helper=NO_HELPER, files=EventFiles(roots, tmp_path))
    counters = DataWriteCounters(EventSource(opener, "events", roots.sysfs, between_s=0.0))
    assert "found none; it needs root, and tracefs at /sys/kernel/tracing" in reason(counters)
    counters.close()


def test_helper_that_fails_is_counted_and_logged_once(
    roots: Roots, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "events.sock"
    path.touch()
    counters = DataWriteCounters(source_of(roots, path))
    assert "Connection refused" in reason(counters)

    def errors() -> int:
        health = counters.source.health
        return 0 if health is None else health.errors

    assert eventually(lambda: errors() >= 3, PATIENCE_S)
    health = counters.source.health
    assert health is not None
    assert (health.source, health.works) == ("events", False)
    counters.close()
    assert [(event.level, event.message) for event in events(caplog)] == [
        ("warning", "events not opened")
    ]


@pytest.mark.parametrize(
    ("paranoia", "expected"),
    [
        (2, "kernel.perf_event_paranoid is 2, at which this kernel requires CAP_PERFMON"),
        (3, "kernel.perf_event_paranoid is 3, at which this kernel requires CAP_SYS_ADMIN"),
        (4, "kernel.perf_event_paranoid is 4, at which this kernel requires CAP_SYS_ADMIN"),
        (None, "kernel.perf_event_paranoid cannot be read"),
    ],
)
def test_refusal_names_the_setting_and_what_is_required(
    paranoia: int | None, expected: str
) -> None:
    assert describe_refusal(paranoia) == expected
