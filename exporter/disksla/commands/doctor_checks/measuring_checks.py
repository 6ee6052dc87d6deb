"""Checks of what measures: exact counts of data writes, fio, and what probes may open."""

from collections.abc import Iterator

from prometheus_client.core import Sample

from disksla.commands.doctor_checks.check_result import Check, CheckResult
from disksla.commands.doctor_checks.disk_checks import monitored_disks
from disksla.commands.doctor_checks.facts import MachineFacts, UnitFacts
from disksla.kernel.disks import Disk
from disksla.promise.configuration import ProbeEntry, is_below

_DROP_INS = "/etc/systemd/system/disksla-exporter.service.d"
_EXAMPLES = "/usr/share/doc/disksla-exporter/examples"
_RESTART = "systemctl daemon-reload && systemctl restart disksla-exporter"


def check_measuring(machine: MachineFacts) -> Iterator[CheckResult]:
    """Yield the results of all checks of what measures."""
    yield _exact_counts(machine)
    probes = _probes(machine)
    yield _fio(machine, has_probes=bool(probes))
    for disk, entry in probes:
        yield from _permission(machine, disk, entry)
        yield from _last_probe(machine, disk, entry)


def _exact_counts(machine: MachineFacts) -> CheckResult:
    check = Check("measuring.exact_counts")
    cached = [disk.name for disk in monitored_disks(machine) if disk.write_back]
    if not cached:
        return check.ok("no monitored disk has a volatile write cache: all writes are exact")
    counted = {sample.labels.get("device") for sample in _samples(machine, "data_writes_total")}
    names = ", ".join(cached)
    if counted & set(cached):
        return check.ok(f"data writes of {names} are counted exactly by the daemon")
    if any(sample.value for sample in _samples(machine, "collector_success", collector="events")):
        return check.ok(f"data writes of {names} are counted exactly once they are written to")
    if machine.why_not_exact is None:
        return check.ok(f"data writes of {names} can be counted exactly by this user")
    return check.note(
        f"empty flushes of {names} count as writes, so that the number of data writes is known"
        f" between two bounds only: {machine.why_not_exact}",
        expected="exact counts, by performance events of the kernel",
        fix=_fix_of_events(machine.why_not_exact, has_unit=machine.unit is not None),
    )


def _fix_of_events(why_not: str, *, has_unit: bool) -> str:
    if not has_unit:
        return "disksla open-events --listen /run/disksla-events/events.sock   # as root"
    if why_not.startswith("no helper"):
        return "systemctl enable --now disksla-events.socket"
    return "journalctl --unit 'disksla-events@*'"


def _probes(machine: MachineFacts) -> list[tuple[Disk, ProbeEntry]]:
    configuration = machine.configuration.configuration
    if configuration is None:
        return []
    return [
        (disk, entry)
        for disk in monitored_disks(machine)
        for entry in configuration.settings.probes
        if entry.covers(disk.name)
    ]


def _fio(machine: MachineFacts, *, has_probes: bool) -> CheckResult:
    check, fio = Check("measuring.fio"), machine.fio
    if fio.problem is None and fio.version is not None:
        major, minor = fio.version
        return check.ok(f"fio {major}.{minor}, {fio.path}")
    found = (fio.problem or "fio was not found").partition("; expected")[0]
    expected, fix = "fio 3.1 or newer", "apt install fio (or dnf install fio)"
    if has_probes:
        return check.wrong(f"{found}; no probe runs", expected=expected, fix=fix)
    return check.note(f"{found}; verify, sweep and probes need it", expected=expected, fix=fix)


def _permission(machine: MachineFacts, disk: Disk, entry: ProbeEntry) -> Iterator[CheckResult]:
    """Check what the unit permits; without a unit, nothing is known of the daemon's sandbox."""
    unit = machine.unit
    if unit is None:
        return
    check = Check("measuring.probes", disk.name)
    if not entry.uses_file:
        if unit.last("PrivateDevices") in {"no", "false", None}:
            yield check.ok(f"{entry.kind}: the unit permits to read")
        else:
            yield check.wrong(
                f"{entry.kind}: the daemon has no block devices (PrivateDevices=yes in its unit)",
                expected="the drop-in 10-probe-devices.conf",
                fix=f"install -D -m 644 -t {_DROP_INS} {_EXAMPLES}/10-probe-devices.conf"
                f" && {_RESTART}",
            )
    elif not disk.mount_points:
        yield check.note(
            f"{entry.kind}: no file system of this disk is mounted, so that the probe is skipped",
            expected="a mounted file system",
            fix=f"remove {disk.name} from `disks` of the probe",
        )
    elif not _may_write(unit, disk, machine.state.directory):
        mount_point = disk.mount_points[0]
        user = machine.access.user
        yield check.wrong(
            f"{entry.kind}: the daemon may not write a file to {mount_point}",
            expected=f"ReadWritePaths=-{mount_point} in the drop-in 20-probe-files.conf",
            fix=f"install -d -o {user} -g {user} -m 0700 {mount_point.rstrip('/')}/.disksla, add"
            f" the line to {_DROP_INS}/20-probe-files.conf, and {_RESTART}",
        )
    else:
        yield check.ok(f"{entry.kind}: the unit permits to write")


def _may_write(unit: UnitFacts, disk: Disk, state_directory: str) -> bool:
    """Return whether a mount point of a disk, or the state directory on it, is writable."""
    listed = [
        path.lstrip("-+")
        for text in unit.values.get("ReadWritePaths", ())
        for path in text.split()
    ]
    # The mount point that is nearest to the state directory may belong to another disk; then the
    # probe fails, and its result says so.
    return any(
        is_below(state_directory, point) or any(is_below(point, path) for path in listed)
        for point in disk.mount_points
    )


def _last_probe(machine: MachineFacts, disk: Disk, entry: ProbeEntry) -> Iterator[CheckResult]:
    """Report the last probe of the daemon if it failed, with the reasons since its start."""
    labels = {"device": disk.name, "kind": entry.kind}
    last = _samples(machine, "probe_success", **labels)
    if not last or last[0].value:
        return
    reasons = [
        sample.labels["reason"] for sample in _samples(machine, "probe_failures_total", **labels)
    ]
    yield Check("measuring.probe_success", disk.name).wrong(
        f"{entry.kind}: the last probe failed ({', '.join(sorted(reasons)) or 'no reason'})",
        expected="a probe that measures",
        fix="journalctl --unit disksla-exporter --grep 'probe failed'",
    )


def _samples(machine: MachineFacts, name: str, **labels: str) -> list[Sample]:
    return machine.daemon.values(f"disksla_{name}", **labels)
