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
    "measuring.exact_counts no write cache": machine(),
    "measuring.exact_counts counted by the daemon": counted("nvme1n1"),
    "measuring.exact_counts opened by the daemon": cached("no", OPENED),
    "measuring.exact_counts by this user": cached(None),
    "measuring.exact_counts no helper": cached(NO_HELPER),
    "measuring.exact_counts no helper, no unit": without_unit(cached(NO_HELPER)),
    "measuring.exact_counts paranoid": cached("kernel.perf_event_paranoid is 3"),
    "measuring.exact_counts denied": cached("denied"),
    "measuring.exact_counts another disk is counted": counted("vdx"),
    "measuring.fio fio": probed(SETTINGS, fio=FioFacts("/usr/bin/fio", (3, 33))),
    "measuring.fio no fio, no probes": probed(SETTINGS, fio=NO_FIO),
    "measuring.fio no fio": probed(fio=NO_FIO),
    "measuring.fio nothing of fio": probed(fio=FioFacts()),
    "measuring.probes private devices": permitted("/data", PrivateDevices="yes"),
    "measuring.probes drop-in of devices": permitted("/var/lib", PrivateDevices="yes;no"),
    "measuring.probes root": permitted("/"),
    "measuring.probes its directory": permitted("/data", ReadWritePaths="-/data /x"),
    "measuring.probes a directory below": permitted("/srv/data", ReadWritePaths="/srv"),
    "measuring.probes another directory": permitted("/srv/data2", ReadWritePaths="/srv/data"),
    "measuring.probes not mounted": probed(unit=UnitFacts("unit", {})),
    "measuring.probes unit of the package": probed(mount_points=("/data",)),
    "measuring.probes no unit": probed(unit=None),
    "measuring.probe_success failed probe": last_probe(0.0),
    "measuring.probe_success good probe": last_probe(1.0),
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
    **{f"kernel.version {release}": kernel(release=release) for release in RELEASES},
    **{f"kernel.diskstats {n} fields": fields(n) for n in (21, 20, 19, 18, 17, 14, 13, 0)},
    "kernel.diskstats lxcfs": kernel(diskstats=None, diskstats_problem="lxcfs"),
    "kernel.diskstats no diskstats": kernel(diskstats=None),
    "kernel.pressure pressure": machine(),
    "kernel.pressure no pressure": kernel(has_pressure=False),
    "kernel.pressure odd pressure": kernel(wait_problems=PROBLEMS),
    "kernel.iowait odd iowait": kernel(wait_problems=PROBLEMS),
    "kernel.sysfs no sysfs": kernel(disks_problem="no sysfs"),
    "kernel.udev no sysfs, and no udev": kernel(disks_problem="no sysfs"),
    "kernel.sysfs odd device": kernel(device_problems=("skipped: vdb",)),
    "kernel.udev udev": machine(),
    "kernel.udev no entries of udev": kernel(has_udev_entries=False),
    "kernel.hotplug hotplug": machine(),
    "kernel.hotplug other machine": kernel(uses_udev=False),
    "kernel.hotplug no netlink": kernel(uevents_problem="cannot listen"),
    "kernel.consumers consumers": machine(),
    "kernel.consumers no consumers": kernel(why_no_consumers="io is off; turn it on"),
    "kernel.consumers no groups": kernel(why_no_consumers="there are none"),
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
