"""Checks of the kernel: its version, the files that are read, udev, hotplug and the wall clock."""

import re
from collections.abc import Iterator

from disksla.base.units import format_duration
from disksla.commands.doctor_checks.check_result import Check, CheckResult
from disksla.commands.doctor_checks.facts import ClockFacts, KernelFacts

_FIELDS = 14
_WITH_DISCARDS = 18
_WITH_FLUSHES = 20
"""Fields of /proc/diskstats: all kernels; since Linux 4.18; since 5.5
(Documentation/ABI/testing/procfs-diskstats)."""
_UTILIZATION_SINCE = (6, 10)
"""Before, time is lost or added in `io_ticks` when requests are sparse (docs/metrics.md)."""
_PATHS = "--path.procfs=/host/proc --path.sysfs=/host/sys --path.udev-data=/host/run/udev/data"


def check_kernel(kernel: KernelFacts) -> Iterator[CheckResult]:
    """Yield the results of all checks of the kernel."""
    yield _version(kernel.release)
    yield _diskstats(kernel)
    yield from _pressure(kernel)
    yield from _devices(kernel)
    yield from _hotplug(kernel)
    yield _consumers(kernel.why_no_consumers)


def kernel_version(release: str) -> tuple[int, int] | None:
    """Return the version in a release such as 6.1.0-18-amd64; None if it has none."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", release)
    return None if found is None else (int(found[1]), int(found[2]))


def _version(release: str) -> CheckResult:
    version = kernel_version(release)
    if version is None:
        return Check("kernel.version").note(
            f"the release '{release}' has no version", expected="a release such as 6.1.0-18-amd64"
        )
    if version < _UTILIZATION_SINCE:
        return Check("kernel.version").note(
            f"Linux {release}: the utilization that it counts is inaccurate for sparse requests;"
            " verdicts do not use it",
            expected="Linux 6.10 or newer, or a distribution that has commit 99dc422335d8",
        )
    return Check("kernel.version").ok(f"Linux {release}")


def _diskstats(kernel: KernelFacts) -> CheckResult:
    check = Check("kernel.diskstats")
    if kernel.diskstats is None:
        return check.wrong(
            kernel.diskstats_problem or "/proc/diskstats was not read",
            expected="/proc/diskstats of the host, readable by all users",
            fix=f"in a container: mount /proc of the host and set {_PATHS}",
        )
    lines = [line.split() for line in kernel.diskstats.splitlines()]
    # Old kernels have shorter lines for partitions, so that the longest counts.
    fields = max(map(len, lines), default=0)
    if fields < _FIELDS:
        return check.wrong(
            f"/proc/diskstats has {fields} fields in its longest line",
            expected=f"a line of {_FIELDS} fields or more for each disk",
            fix=f"in a container: mount /proc of the host and set {_PATHS}",
        )
    missing = [
        what
        for what, number in (("discards", _WITH_DISCARDS), ("flushes", _WITH_FLUSHES))
        if fields < number
    ]
    if missing:
        return check.note(
            f"/proc/diskstats has {fields} fields, without {' and '.join(missing)}",
            expected=f"{_WITH_FLUSHES} fields (Linux 5.5 or newer)",
        )
    return check.ok(f"/proc/diskstats: {fields} fields, flushes among them")


def _pressure(kernel: KernelFacts) -> Iterator[CheckResult]:
    for source, problem in kernel.wait_problems.items():
        yield Check(f"kernel.{source}").wrong(
            problem,
            expected="a file of the kernel, readable by all users",
            fix=f"in a container: mount /proc of the host and set {_PATHS}",
        )
    if "pressure" in kernel.wait_problems:
        return
    if kernel.has_pressure:
        yield Check("kernel.pressure").ok("/proc/pressure/io is readable")
    else:
        yield Check("kernel.pressure").note(
            "the kernel has no I/O pressure (PSI); its metrics are absent",
            expected="/proc/pressure/io",
            fix="boot with psi=1 on the kernel command line (Linux 4.20 or newer)",
        )


def _devices(kernel: KernelFacts) -> Iterator[CheckResult]:
    if kernel.disks_problem is not None:
        yield Check("kernel.sysfs").wrong(
            kernel.disks_problem,
            expected="a directory with a link for each block device",
            fix=f"in a container: mount /sys of the host and set {_PATHS}",
        )
        return
    for problem in kernel.device_problems:
        yield Check("kernel.sysfs").wrong(
            problem,
            expected="attributes that are readable by all users",
            fix="ls -lL /sys/class/block",
        )
    if not kernel.device_problems:
        yield Check("kernel.sysfs").ok("block devices and their attributes are readable")
    if kernel.has_udev_entries:
        yield Check("kernel.udev").ok("the udev database has entries of block devices")
    else:
        yield Check("kernel.udev").note(
            "the udev database has no block devices; names in /dev/disk/by-id, and serial numbers"
            " that only udev knows, are missing",
            expected="a running udevd, and its database in /run/udev/data",
            fix="systemctl start systemd-udevd && udevadm trigger --subsystem-match=block",
        )


def _hotplug(kernel: KernelFacts) -> Iterator[CheckResult]:
    if not kernel.uses_udev:
        yield Check("kernel.hotplug").note(
            "with other paths than the default ones, uevents are not used; new disks are noticed"
            " by their I/O, other changes within 30 s",
            expected="the default paths, or this delay",
        )
    elif kernel.uevents_problem is not None:
        yield Check("kernel.hotplug").wrong(
            kernel.uevents_problem,
            expected="a netlink socket for uevents",
            fix="RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX in the unit",
        )
    else:
        yield Check("kernel.hotplug").ok("uevents of new and removed disks can be received")


def check_clock(clock: ClockFacts) -> Iterator[CheckResult]:
    """Yield the result: signatures of API requests and ages of terms need the right time."""
    check = Check("clock.synchronised")
    if clock.is_synchronised:
        error = "" if clock.error_s is None else f", within {format_duration(clock.error_s)}"
        yield check.ok(f"the clock is synchronised{error}")
    elif clock.is_synchronised is None:
        yield check.note(
            f"it is not known whether the clock is synchronised: {clock.problem}",
            expected="a clock that NTP sets",
        )
    else:
        yield check.note(
            "the kernel says that the clock is not synchronised; a clock that is wrong by minutes"
            " makes the API of the provider reject requests",
            expected="a clock that NTP sets",
            fix="timedatectl set-ntp true (or start chronyd)",
        )


def _consumers(why_not: str | None) -> CheckResult:
    if why_not is None:
        return Check("kernel.consumers").ok("who uses a disk is counted by control groups")
    found, _, fix = why_not.partition("; ")
    return Check("kernel.consumers").note(
        f"who uses a disk is not known: {found}",
        expected="cgroup v2 with the controller io (docs/consumers.md)",
        fix=fix or None,
    )
