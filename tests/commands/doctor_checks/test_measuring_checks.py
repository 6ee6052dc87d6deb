"""What is said of exact counts, fio and probes, and of the kernel; see test_checks.py."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import Sample

from commands.doctor_checks.test_checks import Cases, daemon, shown, without_unit
from disksla.commands.doctor_checks.facts import FioFacts, MachineFacts, UnitFacts
from disksla.commands.doctor_checks.kernel_checks import kernel_version
from support.machine_facts import KERNEL, SETTINGS, configured, machine, sample, with_disk

PROBES = SETTINGS + "probes: [{kind: read-latency}, {kind: write-latency, disks: [nvme1n1]}]\n"
NO_FIO = FioFacts(problem="fio is not installed; expected fio 3.1")
NO_HELPER = "no helper listens on /run/x, and this process may not: denied"
OPENED = sample("collector_success", collector="events")


def cached(why_not: str | None, *samples: Sample) -> MachineFacts:
    """Return a machine whose disk has a volatile write cache."""
    facts = daemon(*samples)
    disks = with_disk(write_back=True).disks
    return msgspec.structs.replace(facts, disks=disks, why_not_exact=why_not)


def counted(device: str) -> MachineFacts:
    return cached("no", sample("data_writes_total", device=device))


def probed(
    text: str = PROBES, mount_points: tuple[str, ...] = (), **facts: object
) -> MachineFacts:
    disks = with_disk(mount_points=mount_points).disks
    return machine(configuration=configured(text), disks=disks, **facts)


def permitted(mount_point: str, **values: str) -> MachineFacts:
    unit = UnitFacts("unit", {name: tuple(value.split(";")) for name, value in values.items()})
    return probed(mount_points=(mount_point,), unit=unit)


def last_probe(success: float) -> MachineFacts:
    labels = {"device": "nvme1n1", "kind": "read-latency"}
    failures = sample("probe_failures_total", 2.0, **labels, reason="unplugged")
    facts = daemon(sample("probe_success", success, **labels), failures)
    return msgspec.structs.replace(facts, configuration=configured(PROBES))


MEASURING: Cases = {
    "no write cache": ("measuring.exact_counts", machine()),
    "counted by the daemon": ("measuring.exact_counts", counted("nvme1n1")),
    "opened by the daemon": ("measuring.exact_counts", cached("no", OPENED)),
    "by this user": ("measuring.exact_counts", cached(None)),
    "no helper": ("measuring.exact_counts", cached(NO_HELPER)),
    "no helper, no unit": ("measuring.exact_counts", without_unit(cached(NO_HELPER))),
    "paranoid": ("measuring.exact_counts", cached("kernel.perf_event_paranoid is 3")),
    "denied": ("measuring.exact_counts", cached("denied")),
    "another disk is counted": ("measuring.exact_counts", counted("vdx")),
    "fio": ("measuring.fio", probed(SETTINGS, fio=FioFacts("/usr/bin/fio", (3, 33)))),
    "no fio, no probes": ("measuring.fio", probed(SETTINGS, fio=NO_FIO)),
    "no fio": ("measuring.fio", probed(fio=NO_FIO)),
    "nothing of fio": ("measuring.fio", probed(fio=FioFacts())),
    "private devices": ("measuring.probes", permitted("/data", PrivateDevices="yes")),
    "drop-in of devices": ("measuring.probes", permitted("/var/lib", PrivateDevices="yes;no")),
    "root": ("measuring.probes", permitted("/")),
    "its directory": ("measuring.probes", permitted("/data", ReadWritePaths="-/data /x")),
    "a directory below": ("measuring.probes", permitted("/srv/data", ReadWritePaths="/srv")),
    "another directory": ("measuring.probes", permitted("/srv/data2", ReadWritePaths="/srv/data")),
    "not mounted": ("measuring.probes", probed(unit=UnitFacts("unit", {}))),
    "unit of the package": ("measuring.probes", probed(mount_points=("/data",))),
    "no unit": ("measuring.probes", probed(unit=None)),
    "failed probe": ("measuring.probe_success", last_probe(0.0)),
    "good probe": ("measuring.probe_success", last_probe(1.0)),
}


def kernel(**facts: object) -> MachineFacts:
    return machine(kernel=msgspec.structs.replace(KERNEL, **facts))


def fields(number: int) -> MachineFacts:
    """Return a machine whose longest line of /proc/diskstats has so many fields."""
    text = f"8 1 sda1 0 0 0 0\n{' '.join(['1'] * number)}\n" if number else ""
    return kernel(diskstats=text)


PROBLEMS = {"pressure": "found junk", "iowait": "no cpu line"}
RELEASES = ("6.10.0", "6.18.44-fc", "7.0-rc1", "6.9.12", "6.1.0-18-amd64", "3.10.0-957.el7", "x")
KERNELS: Cases = {
    **{release: ("kernel.version", kernel(release=release)) for release in RELEASES},
    **{f"{n} fields": ("kernel.diskstats", fields(n)) for n in (21, 20, 19, 18, 17, 14, 13, 0)},
    "lxcfs": ("kernel.diskstats", kernel(diskstats=None, diskstats_problem="lxcfs")),
    "no diskstats": ("kernel.diskstats", kernel(diskstats=None)),
    "pressure": ("kernel.pressure", machine()),
    "no pressure": ("kernel.pressure", kernel(has_pressure=False)),
    "odd pressure": ("kernel.pressure", kernel(wait_problems=PROBLEMS)),
    "odd iowait": ("kernel.iowait", kernel(wait_problems=PROBLEMS)),
    "no sysfs": ("kernel.sysfs", kernel(disks_problem="no sysfs")),
    "no sysfs, and no udev": ("kernel.udev", kernel(disks_problem="no sysfs")),
    "odd device": ("kernel.sysfs", kernel(device_problems=("skipped: vdb",))),
    "udev": ("kernel.udev", machine()),
    "no entries of udev": ("kernel.udev", kernel(has_udev_entries=False)),
    "hotplug": ("kernel.hotplug", machine()),
    "other machine": ("kernel.hotplug", kernel(uses_udev=False)),
    "no netlink": ("kernel.hotplug", kernel(uevents_problem="cannot listen")),
    "consumers": ("kernel.consumers", machine()),
    "no consumers": ("kernel.consumers", kernel(why_no_consumers="io is off; turn it on")),
    "no groups": ("kernel.consumers", kernel(why_no_consumers="there are none")),
}


@pytest.mark.parametrize(("name", "cases"), {"measuring": MEASURING, "kernel": KERNELS}.items())
def test_checks(name: str, cases: Cases, golden: Callable[[Path, str], None]) -> None:
    golden(Path(__file__).parent / "cases" / f"{name}.txt", "\n".join([*shown(cases), ""]))


@given(st.integers(0, 9999), st.integers(0, 9999), st.sampled_from(("", ".3", "-rc1", "+")))
def test_version_is_the_first_two_numbers(major: int, minor: int, rest: str) -> None:
    assert kernel_version(f"{major}.{minor}{rest}") == (major, minor)


@given(st.text())
def test_any_release_is_accepted(release: str) -> None:
    kernel_version(release)
