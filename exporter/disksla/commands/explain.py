"""`disksla explain`: the terms and limits of one disk, why they apply, and its last minute."""

import argparse
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path

from disksla.commands._console import SafeConsole
from disksla.commands._context import (
    HostContext,
    add_context_arguments,
    add_device,
    prepare_sampler,
    read_context,
)
from disksla.commands._limits_text import facts_table, limits_facts, rates_table
from disksla.commands._options import add_duration
from disksla.commands.replay import replay
from disksla.config import (
    CUSTOM_TERMS,
    Configuration,
    provision_of,
    with_kubernetes_volumes,
)
from disksla.disks import Disk
from disksla.history import (
    MachineLimit,
    describe_machine,
    explain,
    explain_writes,
    summary_of_records,
)
from disksla.history.machine_limit import machine_limit
from disksla.limits import Assignment, Terms, derivation
from disksla.pipeline import State, Tick, WindowRecord, advance, window_records
from disksla.probes import plan_probe
from disksla.units import format_size

_RECENT_S = 60.0
"""Longest time that is explained."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_device(parser)
    add_duration(parser, "5s", "duration of sampling (default: %(default)s)")
    parser.add_argument(
        "--recording",
        type=Path,
        metavar="FILE",
        help="explain a disk of this recording, with its configuration, without sampling",
    )
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print identity, terms and limits of one disk, and its last minute."""
    if arguments.recording is None:
        host = read_context(arguments)
        host.find(arguments.device)  # fail before sampling
        states, why_not_exact = _sample(arguments)
    else:
        why_not_exact = None
        states = list(replay(arguments.recording, arguments.config_file))
        last = states[-1]
        host = HostContext(
            with_kubernetes_volumes(last.inventory, last.terms_files),
            Configuration(
                last.settings,
                last.catalog,
                last.machines,
                last.machine_problem,
                last.terms_files,
            ),
        )
    disk = host.find(arguments.device)
    assignment = host.assignment(disk)
    terms = host.catalog.find(assignment.terms)
    console = SafeConsole()
    console.print(f"{disk.name}, {format_size(disk.size_bytes)}", style="bold")
    console.print()
    console.print(facts_table(_identity(host, disk)))
    console.print()
    console.print(facts_table(_choice(disk, assignment, terms, _now_s(states[-1]))))
    console.print()
    if assignment.limits.budget is not None:
        console.print(rates_table(assignment.limits))
        console.print()
    machine = machine_limit(states[-1], disk.name)
    promise = [*_promise(host, disk, assignment, terms), *_machine(machine)]
    console.print(facts_table([*promise, *_probes(host, disk, assignment)]))
    if not host.why_not_monitored(disk):
        console.print()
        records = _records(states, disk)
        for sentence in explain(summary_of_records(records, _RECENT_S), assignment, machine):
            console.print(sentence)
        for sentence in explain_writes(records, why_not_exact):
            console.print(sentence)
    if terms:
        console.print()
        for source in terms.sources:
            console.print(f"{source.date} {source.url}", soft_wrap=True)
    return 0


def _now_s(state: State) -> float:
    """Return the wall-clock time of a state, in seconds since 1970."""
    return 0.0 if state.clocks is None else state.clocks.realtime_s


def _sample(arguments: argparse.Namespace) -> tuple[list[State], str | None]:
    """Sample for a while; return the state before the first tick, and after each tick.

    Return also why data writes were not counted exactly, if the reason is known.
    """
    ticks: list[Tick] = []
    sampler = prepare_sampler(arguments, ticks.append)
    initial = sampler.state
    sampler.run_for(arguments.duration_s)
    return list(accumulate(ticks, advance, initial=initial)), sampler.why_not_exact


def _records(states: list[State], disk: Disk) -> list[WindowRecord]:
    return [
        record
        for before, after in pairwise(states)
        for record in window_records(before, after)
        if record.device == disk.name
    ]


def _identity(host: HostContext, disk: Disk) -> Iterator[tuple[str, str]]:
    """Yield what is known of the identity of the disk."""
    why_not_monitored = host.why_not_monitored(disk)
    for name, value in (
        ("model", disk.model),
        ("serial", disk.serial),
        ("provider", disk.provider),
        ("volume", "none: a local disk of the host" if disk.is_local else disk.volume),
        ("CSI volume", disk.volume_handle and f"{disk.volume_handle} ({disk.csi_driver})"),
        ("PersistentVolume", disk.persistent_volume),
        ("claim", disk.claim and f"{disk.namespace}/{disk.claim}"),
        ("StorageClass", disk.storage_class),
        ("WWN", disk.wwn),
        ("device number", f"{disk.major}:{disk.minor}"),
        ("rotational", None if disk.rotational is None else f"{disk.rotational:d} in sysfs"),
        ("partition of", disk.partition_of),
        ("built from", ", ".join(disk.slaves)),
        ("stacked on it", ", ".join(disk.holders)),
        ("mounted at", ", ".join(disk.mount_points)),
        ("by-id", ", ".join(disk.by_id)),
        ("monitored", f"no: {why_not_monitored}" if why_not_monitored else "yes"),
    ):
        if value:
            yield name, value


def _choice(
    disk: Disk, assignment: Assignment, terms: Terms | None, now_s: float
) -> Iterator[tuple[str, str]]:
    """Yield the terms of the disk, and why it has them, at a time in seconds since 1970."""
    is_configured = assignment.source == "configuration"
    if terms:
        yield "terms", f"{terms.id}: {terms.title}, {terms.provider_name}"
    elif assignment.terms == CUSTOM_TERMS:
        yield "terms", f"written out in {'the configuration' if is_configured else 'a terms file'}"
    elif assignment.source == "none":
        yield "terms", f"{assignment.title}: monitored without limits"
    else:
        yield "terms", f"{assignment.terms}, which the catalogue does not have"
    yield "reason", assignment.reason
    if assignment.as_of_timestamp_s is not None:
        yield "said by", assignment.said_by(now_s)
    if assignment.size_bytes != disk.size_bytes:
        size = format_size(assignment.size_bytes)
        yield "size used", f"{size} (configuration); {format_size(disk.size_bytes)} (kernel)"


def _promise(
    host: HostContext, disk: Disk, assignment: Assignment, terms: Terms | None
) -> Iterator[tuple[str, str]]:
    """Yield the limits, how they were computed, and the conditions under which they apply."""
    if terms is None or assignment.limits.budget is None:
        yield from limits_facts(assignment.limits)
        return
    entry = host.entry(disk)
    provision = provision_of(entry) if entry else None
    steps = derivation(terms, assignment.size_bytes, provision)
    yield from limits_facts(assignment.limits, terms, steps)


def _machine(machine: MachineLimit | None) -> Iterator[tuple[str, str]]:
    """Yield the limit of the machine, if there is one."""
    if machine is not None:
        yield "machine", describe_machine(machine.shared)


def _probes(host: HostContext, disk: Disk, assignment: Assignment) -> Iterator[tuple[str, str]]:
    """Yield the probes of the disk, with their share of its limits."""
    for entry in host.settings.probes:
        if entry.covers(disk.name):
            yield "probe", plan_probe(entry, disk.name, assignment.limits).describe()
