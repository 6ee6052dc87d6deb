"""Checks of the disks: which are monitored, their terms, sizes and counters."""

import re
from collections.abc import Iterator, Mapping

from disksla.base.units import format_duration, format_size
from disksla.commands.doctor_checks.check_result import Check, CheckResult
from disksla.commands.doctor_checks.facts import MachineFacts
from disksla.kernel.disks import Disk
from disksla.promise.catalogue import UNKNOWN_TERMS, Assignment, SharedLimits
from disksla.promise.configuration import (
    Assignments,
    Configuration,
    Settings,
    UnusedEntry,
    assign_all,
    detected_directory,
    find_terms,
    is_monitored,
    is_shared_by,
    machine_limits,
    unused_entries,
    why_not_monitored,
)

_SIZE_TOLERANCE = 0.01
"""Larger than what providers add for alignment, smaller than from GB to GiB."""
_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")
_BY_DISCOVERY = ("discovery.exclude", "not in discovery.include")


def assignments_of(machine: MachineFacts) -> Mapping[str, Assignment]:
    """Return the terms and limits of the monitored disks; none if the configuration is invalid."""
    configuration = machine.configuration.configuration
    if configuration is None:
        return {}
    return _assignments(machine, configuration).monitored


def _assignments(machine: MachineFacts, configuration: Configuration) -> Assignments:
    return assign_all(
        machine.disks, configuration.settings, configuration.catalog, configuration.terms_files
    )


def monitored_disks(machine: MachineFacts) -> list[Disk]:
    """Return the monitored disks; those of the defaults if the configuration is invalid."""
    configuration = machine.configuration.configuration
    settings = Settings() if configuration is None else configuration.settings
    return [disk for disk in machine.disks if is_monitored(disk, settings)]


def terms_of_daemon(machine: MachineFacts) -> Mapping[str, str]:
    """Return the terms of the disks that the daemon monitors; none if it does not say."""
    found = machine.daemon.values("disksla_disk_info")
    return {each.labels.get("device", ""): each.labels.get("terms", "") for each in found}


def detect_command(machine: MachineFacts) -> str:
    """Return the command that asks the provider again."""
    if machine.detect_unit is not None:
        return "systemctl start disksla-detect"
    return f"disksla detect --output {detected_directory(machine.state.directory)}/cloud.json"


def lacks_terms(machine: MachineFacts) -> list[Disk]:
    """Return the monitored disks for which nothing says what they are."""
    found = assignments_of(machine)
    return [
        disk
        for disk in machine.disks
        if disk.name in found and found[disk.name].source == "none" and not disk.is_local
    ]


def check_disks(machine: MachineFacts) -> Iterator[CheckResult]:
    """Yield the results of all checks of the disks and of the limits over them."""
    configuration = machine.configuration.configuration
    if configuration is None:
        yield Check("disks.terms").note(
            "which disks are monitored, and their terms, were not checked",
            expected="a valid configuration",
            fix="see the group configuration",
        )
    else:
        yield from _monitored(machine, configuration)
        yield from _disks(machine, configuration)
        yield from _unused(machine, configuration)
        yield from _machine(machine, configuration)
    yield from _iostats(machine)


def _monitored(machine: MachineFacts, configuration: Configuration) -> Iterator[CheckResult]:
    names, said = list(assignments_of(machine)), terms_of_daemon(machine)
    if said:
        yield Check("disks.monitored").ok(f"the daemon monitors {', '.join(said)}")
        if set(said) != set(names):
            by_files = ", ".join(names) or "no disk"
            yield Check("disks.monitored").note(
                f"by {machine.configuration.path or 'the defaults'}, it would be {by_files}",
                expected="the files that the daemon was started with",
                fix="disksla doctor --config.file FILE   # or reload the daemon, if they changed",
            )
        return
    if names:
        yield Check("disks.monitored").ok(f"monitored: {', '.join(names)}")
        return
    reasons = {
        disk.name: why_not_monitored(disk, configuration.settings) or "" for disk in machine.disks
    }
    excluded = [name for name, reason in reasons.items() if reason.startswith(_BY_DISCOVERY)]
    if excluded:
        yield Check("disks.monitored").wrong(
            f"no disk is monitored; `discovery` excludes {', '.join(excluded)}",
            expected="at least one monitored disk",
            fix="change `discovery` in the configuration; disksla disks has the reasons",
        )
    else:
        yield Check("disks.monitored").note(
            f"no disk is monitored; none of {len(reasons)} block devices is a whole disk",
            expected="at least one monitored disk",
            fix="disksla disks",
        )


def _disks(machine: MachineFacts, configuration: Configuration) -> Iterator[CheckResult]:
    assignments, said = assignments_of(machine), terms_of_daemon(machine)
    for disk in machine.disks:
        assignment = assignments.get(disk.name)
        terms = said.get(disk.name) if said else assignment and assignment.terms
        if terms is not None and (assignment is None or assignment.terms != terms):
            yield Check("disks.terms", disk.name).ok(f"{terms}, as the daemon says")
        elif assignment is not None and terms is not None:
            yield from _age(machine, disk, assignments[disk.name])
            yield _terms(machine, disk, assignments[disk.name])
            yield from _size(machine, configuration, disk)


def _age(machine: MachineFacts, disk: Disk, assignment: Assignment) -> Iterator[CheckResult]:
    """Check that the terms may still be relied on."""
    as_of_s, expiry_s = assignment.as_of_timestamp_s, assignment.expiry_timestamp_s
    if as_of_s is None or expiry_s is None or machine.now_s <= expiry_s:
        return
    yield Check("disks.age", disk.name).wrong(
        f"{assignment.terms} is too old; said by {assignment.origin}"
        f" {format_duration(machine.now_s - as_of_s)} ago",
        expected=f"at most {format_duration(expiry_s - as_of_s)}",
        fix=f"write {assignment.origin} again"
        if assignment.source == "file"
        else detect_command(machine),
    )


def _terms(machine: MachineFacts, disk: Disk, assignment: Assignment) -> CheckResult:
    check = Check("disks.terms", disk.name)
    if assignment.source == "none":
        if disk.is_local:
            return check.ok("a local disk of the host, which has no terms")
        return check.note(
            f"{assignment.title}; nothing says what it was sold as; there are no limits",
            expected="an entry of the configuration or of terms.d",
            fix=f"disks: [{{match: {{{_key(disk)}}}, terms: TYPE}}]   # disksla limits",
        )
    if assignment.problem is not None:
        return check.wrong(
            f"{assignment.terms}: {assignment.problem}; it is monitored without limits",
            expected="a type of the catalogue, with a size and values that it has",
            fix="set `terms` in `disks`, or add the type to catalog.d (docs/configuration.md)",
        )
    by = assignment.said_by(machine.now_s) or "configuration"
    return check.ok(f"{assignment.terms}, {by}")


def _size(
    machine: MachineFacts, configuration: Configuration, disk: Disk
) -> Iterator[CheckResult]:
    """Compare the size that was sold with that of the kernel, which has none of a mount.

    The size of a type whose disks share its limits may be that of all of them.
    """
    found = find_terms(disk, configuration.settings, configuration.terms_files)
    if found is None or found.entry.size is None or disk.is_mount:
        return
    terms = found.entry.terms
    row = configuration.catalog.find(terms) if isinstance(terms, str) else None
    if row is not None and row.scope == "machine":
        return
    binary_gb = row is not None and row.binary_gb
    sold, kernel = found.entry.size_bytes(binary_gb=binary_gb) or 0, disk.size_bytes
    difference = abs(sold - kernel) / max(sold, kernel, 1)
    text = f"sold as {format_size(sold)} ({found.place}); {format_size(kernel)} by the kernel"
    if difference <= _SIZE_TOLERANCE:
        yield Check("disks.size", disk.name).ok(f"{format_size(kernel)}, as sold")
    elif sold < kernel:
        yield Check("disks.size", disk.name).wrong(
            f"{text}; its limits are those of the smaller size",
            expected="a size as the kernel reports it",
            fix=f"remove `size: {format_size(sold).replace(' ', '')}` from {found.place}"
            if found.file is None or found.file.source == "file"
            else detect_command(machine),
        )
    else:
        yield Check("disks.size", disk.name).note(
            f"{text}; its limits are those of the larger size",
            expected="the same size, unless the disk was resized just now",
            fix=_rescan(disk),
        )


def _rescan(disk: Disk) -> str:
    if disk.name.startswith("sd"):
        return f"echo 1 > /sys/class/block/{disk.name}/device/rescan"
    if found := re.match(r"nvme\d+", disk.name):
        return f"echo 1 > /sys/class/nvme/{found[0]}/rescan_controller"
    return f"correct `size` if it is {format_size(disk.size_bytes)}; else attach the disk again"


def _unused(machine: MachineFacts, configuration: Configuration) -> Iterator[CheckResult]:
    """Name entries that apply to no disk; that is wrong while a disk has no terms."""
    unused = unused_entries(machine.disks, configuration.settings, configuration.terms_files)
    without = ", ".join(disk.name for disk in lacks_terms(machine))
    for entry in unused:
        text = entry.describe().removeprefix(f"{entry.place} ")
        if entry.reason == "unmatched" and without:
            yield Check("disks.entries", entry.place).wrong(
                f"{text}, and nothing says what {without} is",
                expected="a `match` that fits a disk",
                fix="correct `match`; disksla disks has serial numbers and volumes",
            )
        else:
            yield Check("disks.entries", entry.place).note(
                text, expected="an entry that applies to a disk", fix=_unused_fix(entry)
            )


def _unused_fix(entry: UnusedEntry) -> str:
    if entry.reason == "shadowed":
        return "remove it, or move it up"
    if entry.source in {"api", "metadata"}:
        return "disksla disks   # is this volume attached, and to this machine?"
    return "remove it, if the disk will not be attached again"


def _machine(machine: MachineFacts, configuration: Configuration) -> Iterator[CheckResult]:
    """Check the limits of the machine over its disks, and that all disks of a group count."""
    settings = configuration.settings
    shared = machine_limits(settings, configuration.machines, machine.cpus)
    if shared:
        machines = ", ".join(dict.fromkeys(each.machine or "configuration" for each in shared))
        yield Check("disks.machine").ok(f"limits of the machine are known: {machines}")
        yield from _not_in_group(machine, configuration, shared)
        return
    if configuration.machine_problem is not None:
        yield Check("disks.machine").note(
            configuration.machine_problem,
            expected="a machine type of the tables, or its limits",
            fix="machine: {limits: {budget: sum, iops: N, bandwidth: N}}",
        )
        return
    used = {assignment.provider for assignment in assignments_of(machine).values()}
    for provider in sorted(used & set(machine.machine_providers)):
        yield Check("disks.machine").note(
            f"the machine type is not known; {provider} limits all disks of a machine together",
            expected="the machine type",
            fix="machine: {type: TYPE}   # such as m6i.large",
        )


def _not_in_group(
    machine: MachineFacts, configuration: Configuration, shared: tuple[SharedLimits, ...]
) -> Iterator[CheckResult]:
    """Find disks that are not monitored, and may count for a limit of which it is not known."""
    settings, others = configuration.settings, _assignments(machine, configuration).others
    for disk in machine.disks:
        assignment = others.get(disk.name)
        if assignment is None or assignment.terms != UNKNOWN_TERMS:
            continue
        if any(regex.is_in(disk.name) for regex in settings.machine.exclude):
            continue
        if any(is_shared_by(each, disk, assignment, settings) for each in shared):
            continue
        reason = why_not_monitored(disk, settings)
        yield Check("disks.machine", disk.name).note(
            f"not monitored ({reason}), and of unknown type: what it uses of the limits of the"
            " machine is missing",
            expected="its type",
            fix="add the disk to `disks`, or to `machine.exclude` if it has no limit with others",
        )


def _iostats(machine: MachineFacts) -> Iterator[CheckResult]:
    """Find disks whose requests the kernel does not count: they look idle."""
    for disk in monitored_disks(machine):
        if machine.iostats.get(disk.name) == "0":
            yield Check("disks.iostats", disk.name).wrong(
                "the kernel does not count its requests (queue/iostats is 0): it looks idle",
                expected="1 in queue/iostats",
                fix=f"echo 1 > /sys/class/block/{disk.name.replace('/', '!')}/queue/iostats",
            )


def _key(disk: Disk) -> str:
    for key, value in (("volume", disk.volume), ("serial", disk.serial), ("wwn", disk.wwn)):
        if value:
            return f"{key}: {_quoted(value)}"
    return f"device: {_quoted(disk.name)}"


def _quoted(value: str) -> str:
    """Return a value as YAML has it."""
    return value if _PLAIN.fullmatch(value) else "'" + value.replace("'", "''") + "'"
