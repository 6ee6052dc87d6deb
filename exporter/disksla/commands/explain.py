"""`disksla explain`: the terms and limits of one disk, why they apply, and what it did lately."""

import argparse
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from disksla.commands._console import SafeConsole
from disksla.commands._context import (
    HostContext,
    add_context_arguments,
    add_device,
    prepare_sampler,
    read_context,
)
from disksla.commands._limits_text import facts_table, limits_facts, rates_table
from disksla.commands._options import add_duration, roots_of
from disksla.commands.replay import replay
from disksla.config import (
    CUSTOM_TERMS,
    Configuration,
    provision_of,
    with_kubernetes_volumes,
)
from disksla.disks import Disk
from disksla.doctor.ask_daemon import DEFAULT_URL, ask_disks
from disksla.history import (
    describe_machine,
    explain,
    explain_writes,
    summary_of_records,
)
from disksla.history.machine_limit import machine_limit
from disksla.limits import Assignment, SharedLimits, Terms, derivation
from disksla.pipeline import State, Tick, WindowRecord, advance, window_records
from disksla.probes import plan_probe
from disksla.system.roots import Roots
from disksla.text import escape_bytes
from disksla.units import format_size

_RECENT_S = 60.0
"""Longest time of a sample or a recording that is explained."""
_SAMPLED_S = 5.0


class _Lately(NamedTuple):
    """What the disk did lately, and what is known besides of its limits."""

    at_s: float
    """Wall-clock time, in seconds since 1970."""
    machine: tuple[SharedLimits, ...]
    """Limits of the machine over this disk and others."""
    sentences: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_device(parser)
    add_duration(
        parser,
        None,
        "sample for this time; default: ask the daemon for the last five minutes, or sample for"
        f" {_SAMPLED_S:.0f}s without one",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--recording",
        type=Path,
        metavar="FILE",
        help="explain a disk of this recording, with its configuration, without sampling",
    )
    source.add_argument(
        "--url",
        default=DEFAULT_URL,
        metavar="URL",
        help="metrics of the daemon, on loopback (default: %(default)s)",
    )
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print identity, terms and limits of one disk, and what it did lately."""
    if arguments.recording is None:
        host = read_context(arguments)
        disk = host.find(arguments.device)
        lately = _from_daemon(arguments, host, disk)
        if lately is None:
            states, why_not_exact = _sample(arguments)
            lately = _of_states(host, disk, states, why_not_exact)
    else:
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
        lately = _of_states(host, disk, states, None)
    _print(host, disk, lately)
    return 0


def _print(host: HostContext, disk: Disk, lately: _Lately) -> None:
    assignment = host.assignment(disk)
    terms = host.catalog.find(assignment.terms)
    console = SafeConsole()
    console.print(f"{disk.name}, {format_size(disk.size_bytes)}", style="bold")
    console.print()
    console.print(facts_table(_identity(host, disk)))
    console.print()
    console.print(facts_table(_choice(disk, assignment, terms, lately.at_s)))
    console.print()
    if assignment.limits.budget is not None:
        console.print(rates_table(assignment.limits))
        console.print()
    machine = [("machine", describe_machine(shared)) for shared in lately.machine]
    promise = [*_promise(host, disk, assignment, terms), *machine]
    console.print(facts_table([*promise, *_probes(host, disk, assignment)]))
    if not host.why_not_monitored(disk):
        console.print()
        for sentence in lately.sentences:
            console.print(sentence)
    if terms:
        console.print()
        for source in terms.sources:
            console.print(f"{source.date} {source.url}", soft_wrap=True)


def _from_daemon(arguments: argparse.Namespace, host: HostContext, disk: Disk) -> _Lately | None:
    """Return what the daemon of this machine says of a disk; None if it is not to be asked.

    That is so if a duration is given, or another root of procfs or sysfs, if no daemon answers
    with its disks, or if it does not have this one.
    """
    if arguments.duration_s is not None or roots_of(arguments) != Roots():
        return None
    document = ask_disks(arguments.url)
    if document is None:
        return None
    found = [each for each in document.disks if each.device == escape_bytes(disk.name)]
    if not found:
        return None
    shared = host.machine_limits(host.assignment(disk))
    return _Lately(document.timestamp_s, shared, list(found[0].sentences))


def _of_states(
    host: HostContext, disk: Disk, states: list[State], why_not_exact: str | None
) -> _Lately:
    """Return what a disk did in the ticks of a sample or a recording."""
    machine = machine_limit(states[-1], disk.name)
    shared = () if machine is None else (machine.shared,)
    records = _records(states, disk)
    assignment = host.assignment(disk)
    sentences = explain(summary_of_records(records, _RECENT_S), assignment, machine)
    sentences += explain_writes(records, why_not_exact)
    return _Lately(_now_s(states[-1]), shared, sentences)


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
    sampler.run_for(arguments.duration_s or _SAMPLED_S)
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


def _probes(host: HostContext, disk: Disk, assignment: Assignment) -> Iterator[tuple[str, str]]:
    """Yield the probes of the disk, with their share of its limits."""
    for entry in host.settings.probes:
        if entry.covers(disk.name):
            yield "probe", plan_probe(entry, disk.name, assignment.limits).describe()
