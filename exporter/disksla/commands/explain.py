"""`disksla explain`: say which terms a disk is held against, why, and how it does by them."""

import argparse
import os
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path

from disksla.commands.machine import (
    Machine,
    add_machine_arguments,
    read_machine,
)
from disksla.commands.options import add_duration
from disksla.commands.promise_words import (
    cap_words,
    facts_of,
    facts_table,
    rates_table,
)
from disksla.commands.replay import replay
from disksla.commands.sampling import prepare_sampler
from disksla.commands.terminal import Terminal
from disksla.core.account import Row, account
from disksla.core.arithmetic import work_out
from disksla.core.disk import Disk
from disksla.core.matching import WRITTEN_OUT, provision_of
from disksla.core.pipeline import State, Tick, advance
from disksla.core.probeplan import plan_probe
from disksla.core.story import tell
from disksla.core.terms import Terms, vm_cap
from disksla.core.units import format_size
from disksla.core.view import Assignment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEVICE and where to look."""
    parser.add_argument(
        "device", metavar="DEVICE", help="vda, /dev/vda, or a name under /dev/disk/by-id"
    )
    add_duration(parser, "5s", "how long to watch the disk (default: %(default)s)")
    parser.add_argument(
        "--recording",
        type=Path,
        metavar="FILE",
        help="explain a disk of a recording instead, without watching anything",
    )
    add_machine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what is known of one disk, how its limits come about, and its last minute."""
    if arguments.recording is None:
        machine = read_machine(arguments)
        machine.find(arguments.device)  # before anybody waits
        states = _watch(arguments)
    else:
        states = list(replay(arguments.recording, arguments.config_file))
        last = states[-1]
        machine = Machine(last.inventory, last.settings, last.catalog)
    disk = machine.find(arguments.device)
    assignment = machine.assignment(disk)
    written_out = assignment.terms == WRITTEN_OUT
    terms = None if written_out else machine.catalog[assignment.terms]
    console = Terminal()
    console.print(f"{disk.name}, {format_size(disk.size_bytes)}", style="bold")
    console.print()
    console.print(facts_table(_identity(machine, disk)))
    console.print()
    console.print(facts_table(_choice(disk, assignment, terms)))
    console.print()
    if assignment.limits.budget is not None:
        console.print(rates_table(assignment.limits))
        console.print()
    promise = _promise(machine, disk, assignment, terms)
    console.print(facts_table([*promise, *_probes(machine, disk, assignment)]))
    if not machine.why_unwatched(disk):
        console.print()
        for sentence in tell(_rows(states, disk), assignment):
            console.print(sentence)
    if terms:
        console.print()
        for source in terms.sources:
            console.print(f"{source.date} {source.url}", soft_wrap=True)
    return 0


def _watch(arguments: argparse.Namespace) -> list[State]:
    """Sample for a while; give what was known before the first tick, and after each."""
    ticks: list[Tick] = []
    sampler = prepare_sampler(arguments, ticks.append)
    unwatched = sampler.state
    sampler.run_for(arguments.duration_s)
    return list(accumulate(ticks, advance, initial=unwatched))


def _rows(states: list[State], disk: Disk) -> list[Row]:
    rows = (row for before, after in pairwise(states) for row in account(before, after))
    return [row for row in rows if row.device == disk.name]


def _identity(machine: Machine, disk: Disk) -> Iterator[tuple[str, str]]:
    """Say what the disk is, leaving out what is not known."""
    why_unwatched = machine.why_unwatched(disk)
    for name, words in (
        ("model", disk.model),
        ("serial", disk.serial),
        ("WWN", disk.wwn),
        ("device number", f"{disk.major}:{disk.minor}"),
        ("rotational", None if disk.rotational is None else f"{disk.rotational:d} in sysfs"),
        ("partition of", disk.partition_of),
        ("made of", ", ".join(disk.slaves)),
        ("stacked on it", ", ".join(disk.holders)),
        ("mounted at", ", ".join(disk.mount_points)),
        ("by-id", ", ".join(disk.by_id)),
        ("watched", f"no: {why_unwatched}" if why_unwatched else "yes"),
    ):
        if words:
            yield name, words


def _choice(disk: Disk, assignment: Assignment, terms: Terms | None) -> Iterator[tuple[str, str]]:
    """Say which terms the disk is held against, and why."""
    if terms:
        yield "terms", f"{terms.id}: {terms.title}, {terms.provider_name}"
    else:
        yield "terms", "written out in the configuration"
    yield "because", assignment.reason
    if assignment.size_bytes != disk.size_bytes:
        size = format_size(assignment.size_bytes)
        yield "for a size of", f"{size} by the configuration, not {format_size(disk.size_bytes)}"


def _promise(
    machine: Machine, disk: Disk, assignment: Assignment, terms: Terms | None
) -> Iterator[tuple[str, str]]:
    """Say what is promised, how it was worked out, and when it holds."""
    if terms is None or assignment.limits.budget is None:
        yield from facts_of(assignment.limits)
        return
    entry = machine.entry(disk)
    provision = provision_of(entry) if entry else None
    workings = work_out(terms, assignment.size_bytes, provision)
    yield from facts_of(assignment.limits, terms, workings)
    vcpus = os.cpu_count()
    if terms.vm_caps and vcpus:
        yield "whole machine", cap_words(vm_cap(terms.vm_caps, vcpus), vcpus)


def _probes(machine: Machine, disk: Disk, assignment: Assignment) -> Iterator[tuple[str, str]]:
    """Say what is measured again and again, and what that is of the promise."""
    for entry in machine.settings.probes:
        if entry.covers(disk.name):
            yield "probe", plan_probe(entry, disk.name, assignment.limits).in_words()
