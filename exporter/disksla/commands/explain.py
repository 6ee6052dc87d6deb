"""`disksla explain`: what disks did lately, and the terms and limits of those that are named."""

import argparse
import os
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from disksla import VERSION
from disksla.base.console import SafeConsole, to_json
from disksla.base.text import escape_bytes, escape_control
from disksla.base.units import format_duration, format_size
from disksla.commands import record
from disksla.commands._context import (
    HostContext,
    add_context_arguments,
    add_devices,
    read_context,
    recorded_context,
)
from disksla.commands._daemon import add_remote_url, chosen_disks
from disksla.commands._means import add_others, check_own, explain_others, is_of_others
from disksla.commands._option_table import add_options
from disksla.commands._options import add_duration
from disksla.commands._prometheus import add_server
from disksla.commands._recent import (
    SAMPLED_S,
    FollowedStates,
    RecentDisks,
    condition_text,
    from_daemon,
    from_recording,
    from_sample,
    print_recent,
    sentences_of,
)
from disksla.commands.disks import known_document
from disksla.commands.replay import replay
from disksla.kernel.disks import Disk
from disksla.measure.probes import plan_probe
from disksla.promise.catalogue import CUSTOM_TERMS, Assignment, SharedLimits, Terms, derivation
from disksla.promise.configuration import in_order, provision_of
from disksla.tell.api import DiskDocument
from disksla.tell.api.daemon_client import is_remote
from disksla.tell.explanation import describe_machine, describe_rates
from disksla.tell.limits_text import limits_document, limits_facts, rates_table, source_lines
from disksla.tell.page import FactList, Heading, Line, PagePart
from disksla.tell.printed_page import print_parts

_RECORDED_S = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_devices(parser)
    add_duration(
        parser,
        None,
        "sample for this time; default: ask the daemon for the last five minutes, or sample for"
        f" {SAMPLED_S:.0f}s without one, or {_RECORDED_S:.0f}s with --output",
    )
    source = parser.add_mutually_exclusive_group()
    add_options(
        source,
        """
--output FILE     sample, and record it to this file, to attach to a question; it must not exist;
                  compressed if the name ends in .gz
--recording FILE  explain disks of this recording, with its configuration, without sampling; or
                  what sysstat printed: sadf -j -- -d, iostat -x -t, or iostat -x -t -o JSON
""",
    )
    add_remote_url(parser, source)
    add_server(parser, source)
    add_others(parser)
    add_options(parser, "--json  print a JSON object, in base units")
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what all disks did lately, or those that are named, with identity and limits."""
    if is_of_others(arguments):
        return explain_others(arguments)
    check_own(arguments)
    if is_remote(arguments.url):
        return _explain_remote(arguments)
    if arguments.recording is not None:
        followed = FollowedStates(replay(arguments.recording, arguments.config_file))
        host = recorded_context(followed.last)
        arrays, disks = _named(host, arguments.devices)
        recent = from_recording(followed)
    else:
        host = read_context(arguments)
        arrays, disks = _named(host, arguments.devices)
        if arguments.output is None:
            recent = _recent(arguments, host, disks)
        else:
            named = {"file": arguments.output, "duration_s": arguments.duration_s or _RECORDED_S}
            record.run(argparse.Namespace(**(vars(arguments) | named)))
            recent = from_recording(FollowedStates(replay(arguments.output, None)))
    if arguments.json:
        print(to_json(_document(host, recent, disks)))
    else:
        _print(host, recent, arrays, disks)
    if not arguments.json and (arguments.duration_s or arguments.output):
        SafeConsole().print(f"\n{_offer(arguments.output, arguments.duration_s or _RECORDED_S)}")
    return 0


def _print(
    host: HostContext, recent: RecentDisks, arrays: Collection[str], disks: Sequence[Disk]
) -> None:
    """Print what these arrays and their disks did, or all disks."""
    if not disks:
        print_recent(recent, [escape_bytes(each.name) for each in in_order(host.disks)])
    for array in recent.arrays:
        if array.device in arrays:
            print_parts([Heading(array.name, level=1), *map(Line, array.sentences)])
            print()
    for number, disk in enumerate(disks):
        if number:
            print()
        _print_disk(host, disk, recent)


def _offer(file: Path | None, seconds: float) -> str:
    """Return how to send what was seen."""
    if file is None:
        return (
            "To ask somebody else, do it again while the disk is slow, with --output"
            " slow.jsonl.gz, and attach that file."
        )
    return (
        f"Attach {file} to your question. It has the counters of all disks for"
        f" {format_duration(seconds)}, their names, serials and mount points, and the"
        " configuration, but no data of any disk."
        f" disksla explain --recording {file.name} says the same on any machine."
    )


def _explain_remote(arguments: argparse.Namespace) -> int:
    """Print what the daemon of another machine says; nothing that is known of this one."""
    recent = from_daemon(arguments)
    if recent is None:
        raise AssertionError("a daemon that is named and does not answer is an error")
    found = chosen_disks(tuple(recent.disks.values()), arguments.devices)
    disks = {disk.device: disk for disk in found}
    arrays = [each for each in recent.arrays if not disks.keys().isdisjoint(each.disks)]
    if arguments.json:
        head = {"host": recent.host, "version": recent.version, "source": recent.source}
        known = {"disks": list(disks.values()), "arrays": arrays}
        print(to_json({**head, "timestamp_s": recent.timestamp_s, **known}))
    else:
        print_recent(recent._replace(disks=disks, arrays=arrays), list(disks))
    return 0


def _named(host: HostContext, names: Sequence[str]) -> tuple[set[str], list[Disk]]:
    """Return the arrays of these names on several disks, and all disks, each once.

    Raise DiskslaError.
    """
    arrays, disks = set(), list[Disk]()
    for name in names:
        array = host.find_array(name)
        if array is None:
            disks.append(host.find(name))
        else:
            arrays.add(escape_bytes(array[0].name))
            disks += array[1]
    return arrays, list({disk.name: disk for disk in disks}.values())


def _recent(
    arguments: argparse.Namespace, host: HostContext, disks: Sequence[Disk]
) -> RecentDisks:
    """Return what the daemon says of these disks or of all, or a sample. Raise DiskslaError."""
    monitored = [disk for disk in disks if host.why_not_monitored(disk) is None]
    recent = from_daemon(arguments, [escape_bytes(disk.name) for disk in disks])
    if recent is None:
        if disks and not monitored:
            return RecentDisks("no time", 0.0, time.time(), {}, "sample")
        return from_sample(arguments, host.configuration)
    for disk in monitored:
        found = recent.disks.get(escape_bytes(disk.name))
        if found is None:
            _note(f"the daemon does not monitor {disk.name}; sampling instead")
            return from_sample(arguments, host.configuration)
        if _is_other(host, disk, found):
            _note(
                f"the daemon has other limits of {disk.name} than the files on this machine;"
                " reload it if they were changed"
            )
    return recent


def _is_other(host: HostContext, disk: Disk, found: DiskDocument) -> bool:
    """Return whether the daemon knows other terms or limits of a disk than the files here."""
    assignment = host.assignment(disk)
    of_files = (escape_bytes(assignment.terms), assignment.limits.rates)
    return host.why_not_monitored(disk) is not None or (found.terms, found.limits) != of_files


def _note(text: str) -> None:
    print(escape_control(f"disksla: {text}"), file=sys.stderr)


def _machine(host: HostContext, disk: Disk, recent: RecentDisks) -> tuple[SharedLimits, ...]:
    """Return the limits of the machine over a disk and others."""
    if recent.machine is None:
        return host.machine_limits(disk)
    return recent.machine.get(escape_bytes(disk.name), ())


def _document(host: HostContext, recent: RecentDisks, disks: Sequence[Disk]) -> dict[str, Any]:
    """Return what is known of these disks or of all for JSON, in base units."""
    by_device = {escape_bytes(each.name): each for each in host.disks}
    devices = [escape_bytes(disk.name) for disk in disks] or list(recent.disks)
    return {
        "host": None if recent.source == "recording" else os.uname().nodename,
        "version": VERSION,
        "source": recent.source,
        "timestamp_s": recent.timestamp_s,
        "disks": [
            _disk_document(host, recent, by_device.get(device), recent.disks.get(device))
            for device in devices
        ],
        "arrays": [each for each in recent.arrays if not set(devices).isdisjoint(each.disks)],
    }


def _disk_document(
    host: HostContext, recent: RecentDisks, disk: Disk | None, lately: DiskDocument | None
) -> dict[str, Any]:
    """Return what `disksla disks` and the daemon say of a disk.

    The former is missing for a disk that was just removed, the latter for one that is not
    monitored.
    """
    said = {} if lately is None else msgspec.to_builtins(lately)
    document = {field: said.get(field) for field in DiskDocument.__struct_encode_fields__}
    if disk is not None:
        document |= {"size_bytes": disk.size_bytes, "mount_points": disk.mount_points}
        known = known_document(host, disk)
        if lately is not None and recent.source == "daemon" and _is_other(host, disk, lately):
            known |= {"monitored": True, **{key: said[key] for key in said if key in known}}
        document |= known
        document["machine"] = [
            {
                "name": shared.name,
                "title": shared.title,
                "machine": shared.machine or None,
                "covers": shared.covers,
                "is_cache": shared.is_cache,
                "limits": limits_document(shared.limits),
            }
            for shared in _machine(host, disk, recent)
        ]
    return document


def _print_disk(host: HostContext, disk: Disk, recent: RecentDisks) -> None:
    """Print identity, terms and limits of one disk, and what it did lately."""
    assignment = host.assignment(disk)
    terms = host.catalog.find(assignment.terms)
    lately = recent.disks.get(escape_bytes(disk.name))
    is_other = lately is not None and recent.source == "daemon" and _is_other(host, disk, lately)
    parts: list[PagePart] = [
        Heading(f"{disk.name}, {disk.size_text}", level=1),
        FactList([*_identity(host, disk, is_monitored=lately is not None)]),
    ]
    if lately is not None and is_other:
        terms = host.catalog.find(lately.terms)
        parts.append(FactList([*_of_daemon(lately)]))
    else:
        machine = [("machine", describe_machine(each)) for each in _machine(host, disk, recent)]
        promise = [*_promise(host, disk, assignment, terms), *machine]
        parts += [
            FactList([*_choice(disk, assignment, terms, recent.timestamp_s)]),
            *([] if assignment.limits.budget is None else [rates_table(assignment.limits)]),
            FactList([*promise, *_probes(host, disk, assignment)]),
        ]
    if lately is not None:
        sentences = (*sentences_of(lately), *recent.writes.get(lately.device, ()))
        parts += [Heading(condition_text(recent, lately)), *map(Line, sentences)]
        if lately.hour_sentences:
            hour = map(Line, lately.hour_sentences)
            parts += [Heading("The last hour, by minutes:"), *hour]
        if lately.events:
            parts += [Heading("What happened:"), *map(Line, lately.events)]
    print_parts(parts)
    if terms:
        print()
        print_parts(source_lines(terms.sources))


def _of_daemon(lately: DiskDocument) -> Iterator[tuple[str, str]]:
    """Yield what the daemon knows of the terms of a disk."""
    yield "terms", "written out" if lately.terms == CUSTOM_TERMS else lately.terms
    yield "reason", "the daemon says it, and the files on this machine do not"
    yield "limits", describe_rates(lately.limits) or "none"


def _identity(host: HostContext, disk: Disk, *, is_monitored: bool) -> Iterator[tuple[str, str]]:
    """Yield what is known of the identity of the disk."""
    why_not = None if is_monitored else host.why_not_monitored(disk)
    for name, value in (
        ("model", disk.model),
        ("serial", disk.serial),
        ("provider", disk.provider),
        ("volume", "none: a local disk of the host" if disk.is_local else disk.volume),
        ("CSI volume", disk.volume_handle and f"{disk.volume_handle} ({disk.csi_driver})"),
        ("PersistentVolume", disk.persistent_volume),
        ("claim", disk.full_claim),
        ("StorageClass", disk.storage_class),
        ("WWN", disk.wwn),
        ("device number", f"{disk.major}:{disk.minor}"),
        ("rotational", None if disk.rotational is None else f"{disk.rotational:d} in sysfs"),
        ("partition of", disk.partition_of),
        ("built from", ", ".join(disk.slaves)),
        ("stacked on it", ", ".join(disk.holders)),
        ("mounted at", ", ".join(disk.mount_points)),
        ("by-id", ", ".join(disk.by_id)),
        ("monitored", f"no: {why_not}; an entry under disks changes that" if why_not else "yes"),
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
        yield "terms", assignment.title
    else:
        yield "terms", f"{assignment.terms}, which the catalogue does not have"
    yield "reason", assignment.reason
    if assignment.as_of_timestamp_s is not None:
        yield "said by", assignment.said_by(now_s)
    if assignment.size_bytes != disk.size_bytes:
        size = format_size(assignment.size_bytes)
        kernel = "" if disk.is_mount else f"; {format_size(disk.size_bytes)} (kernel)"
        yield "size used", f"{size} (configuration){kernel}"


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
