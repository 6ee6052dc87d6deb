"""Checks of the kernel."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.commands.doctor_checks.check_result import CheckResult
from disksla.commands.doctor_checks.kernel_checks import kernel_version
from support.machine_facts import KERNEL, machine, result, results

PROBLEMS = {"pressure": "found junk", "iowait": "no cpu line"}


def kernel(check: str, **facts: object) -> CheckResult:
    return result(machine(kernel=msgspec.structs.replace(KERNEL, **facts)), f"kernel.{check}")


@pytest.mark.parametrize(
    ("check", "facts", "status", "words"),
    [
        ("version", {"release": "6.10.0"}, "ok", ""),
        ("version", {"release": "6.18.44-fc"}, "ok", ""),
        ("version", {"release": "7.0-rc1"}, "ok", ""),
        ("version", {"release": "6.9.12"}, "note", ""),
        ("version", {"release": "6.1.0-18-amd64"}, "note", ""),
        ("version", {"release": "3.10.0-957.el7"}, "note", ""),
        ("version", {"release": "unknown"}, "note", "has no version"),
        ("diskstats", {"diskstats": None, "diskstats_problem": "lxcfs"}, "wrong", "lxcfs"),
        ("diskstats", {"diskstats": None}, "wrong", "/proc/diskstats was not read"),
        ("pressure", {}, "ok", ""),
        ("pressure", {"has_pressure": False}, "note", ""),
        ("pressure", {"wait_problems": PROBLEMS}, "wrong", "found junk"),
        ("iowait", {"wait_problems": PROBLEMS}, "wrong", "no cpu line"),
        ("sysfs", {"disks_problem": "no sysfs"}, "wrong", "no sysfs"),
        ("sysfs", {"device_problems": ("skipped: vdb",)}, "wrong", "skipped: vdb"),
        ("udev", {"has_udev_entries": False}, "note", ""),
        ("udev", {}, "ok", ""),
        ("hotplug", {}, "ok", ""),
        ("hotplug", {"uses_udev": False}, "note", ""),
        ("hotplug", {"uevents_problem": "cannot listen"}, "wrong", "AF_NETLINK"),
        ("consumers", {}, "ok", ""),
        ("consumers", {"why_no_consumers": "io is off; turn it on"}, "note", "io is off turn it"),
        ("consumers", {"why_no_consumers": "there are none"}, "note", "there are none None"),
    ],
)
def test_check(check: str, facts: dict[str, object], status: str, words: str) -> None:
    found = kernel(check, **facts)
    assert found.status == status
    assert words in f"{found.found} {found.fix}"


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
    found = kernel("diskstats", diskstats=text)
    assert found.status == status
    assert words in found.found


def test_udev_is_not_examined_without_devices() -> None:
    gone = machine(kernel=msgspec.structs.replace(KERNEL, disks_problem="no sysfs"))
    assert results(gone, "kernel.udev") == []
