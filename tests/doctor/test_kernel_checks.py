"""Checks of the kernel."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.doctor.check_result import CheckResult
from disksla.doctor.kernel_checks import kernel_version
from support.machine_facts import KERNEL, machine, result, results


def kernel(check: str, **facts: object) -> CheckResult:
    return result(machine(kernel=msgspec.structs.replace(KERNEL, **facts)), check)


@pytest.mark.parametrize(
    ("release", "status"),
    [
        ("6.10.0", "ok"),
        ("6.18.44-fc", "ok"),
        ("7.0-rc1", "ok"),
        ("6.9.12", "note"),
        ("6.1.0-18-amd64", "note"),
        ("3.10.0-957.el7", "note"),
        ("unknown", "note"),
    ],
)
def test_version(release: str, status: str) -> None:
    assert kernel("kernel.version", release=release).status == status


@given(st.integers(0, 9999), st.integers(0, 9999), st.sampled_from(("", ".3", "-rc1", "+")))
def test_version_is_the_first_two_numbers(major: int, minor: int, rest: str) -> None:
    assert kernel_version(f"{major}.{minor}{rest}") == (major, minor)


@given(st.text())
def test_any_release_is_accepted(release: str) -> None:
    kernel_version(release)


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        (20, "ok", "20 fields"),
        (21, "ok", "21 fields"),
        (19, "note", "19 fields, without flushes"),
        (18, "note", "18 fields, without flushes"),
        (17, "note", "without discards and flushes"),  # lxcfs
        (14, "note", "without discards and flushes"),
        (13, "wrong", "13 fields"),
        (0, "wrong", "0 fields"),
    ],
)
def test_fields_of_the_longest_line(fields: int, status: str, words: str) -> None:
    text = f"8 1 sda1 0 0 0 0\n{' '.join(['1'] * fields)}\n" if fields else ""
    found = kernel("kernel.diskstats", diskstats=text)
    assert found.status == status
    assert words in found.found


@pytest.mark.parametrize("problem", ["cannot use /proc/diskstats: lxcfs", None])
def test_unreadable_diskstats(problem: str | None) -> None:
    found = kernel("kernel.diskstats", diskstats=None, diskstats_problem=problem)
    assert found.status == "wrong"
    assert found.found == (problem or "/proc/diskstats was not read")


def test_pressure() -> None:
    assert kernel("kernel.pressure").status == "ok"
    assert kernel("kernel.pressure", has_pressure=False).status == "note"
    problems = {"pressure": "found junk", "iowait": "no cpu line"}
    assert kernel("kernel.pressure", wait_problems=problems).found == "found junk"
    assert kernel("kernel.iowait", wait_problems=problems).status == "wrong"


def test_sysfs_and_udev() -> None:
    assert kernel("kernel.sysfs", disks_problem="no sysfs").status == "wrong"
    assert kernel("kernel.sysfs", device_problems=("device skipped: vdb",)).found == (
        "device skipped: vdb"
    )
    assert kernel("kernel.udev", has_udev_entries=False).status == "note"
    assert kernel("kernel.udev").status == "ok"
    gone = machine(kernel=msgspec.structs.replace(KERNEL, disks_problem="no sysfs"))
    assert results(gone, "kernel.udev") == []


def test_hotplug() -> None:
    assert kernel("kernel.hotplug").status == "ok"
    assert kernel("kernel.hotplug", uses_udev=False).status == "note"
    denied = kernel("kernel.hotplug", uevents_problem="cannot listen to uevents")
    assert denied.status == "wrong"
    assert "AF_NETLINK" in (denied.fix or "")


def test_who_uses_a_disk_is_known_where_control_groups_count_it() -> None:
    assert kernel("kernel.consumers").status == "ok"
    off = "the controller io of the control groups is off; IOAccounting=yes in one unit"
    found = kernel("kernel.consumers", why_no_consumers=off)
    assert found.status == "note"
    assert found.found.endswith("is not known: the controller io of the control groups is off")
    assert found.fix == "IOAccounting=yes in one unit"
    without_fix = kernel("kernel.consumers", why_no_consumers="there are no control groups at /x")
    assert without_fix.fix is None
