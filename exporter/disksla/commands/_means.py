"""What others recorded of disks: where it is, what the disks were sold as, and what it says."""

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from disksla.base.console import to_json
from disksla.base.errors import DiskslaError
from disksla.base.schema.yaml_file import read_named
from disksla.clouds.http_client.transport import carry_out
from disksla.commands._context import read_all
from disksla.commands._options import check_unused, duration_s, parse_size_of_disk
from disksla.commands._prometheus import add_period, period_of, server_of
from disksla.commands._provision import (
    add_machine,
    add_provision,
    check_alone,
    chosen_machine,
    sold_by_options,
)
from disksla.kernel.disks import Disk
from disksla.measure.advice import Candidate
from disksla.measure.means import Mean, together, use_of_limits
from disksla.measure.means.mean import NOT_DISKS
from disksla.measure.means.means_page import DiskUse, MachineUse, in_order, means_page
from disksla.measure.means.node_exporter import find_node_disks, read_means
from disksla.measure.means.sysstat import LARGEST_BYTES, is_sysstat, parse_sysstat
from disksla.measure.prometheus import Period, Selection
from disksla.promise.catalogue import MachineChoice, Provision, shared_limits
from disksla.promise.catalogue.machine_tables import load_machine_rules
from disksla.promise.configuration import (
    TERMS_TITLES,
    Configuration,
    assign,
    find_terms,
    provision_of,
)
from disksla.tell.printed_page import print_parts

_WITHIN_S = 600.0
"""All questions about one disk."""
_MOST_DETAILED = 3
_HEAD_BYTES = 64 * 1024
_OF_OTHERS = (
    *(
        "--every",
        "--last",
        "--terms",
        "--size",
        "--iops",
        "--bandwidth",
        "--option",
        "--machine",
        "--vcpus",
    ),
)


class RecordedDisk(NamedTuple):
    """A disk that others recorded."""

    instance: str
    """Of its machine; empty if that is not known."""
    disk: Disk
    means: Sequence[Mean]

    @property
    def title(self) -> str:
        """Instance and device."""
        return f"{self.instance} {self.disk.name}".strip()


class Sold(NamedTuple):
    """What a disk was sold as, and who says so."""

    candidate: Candidate
    reason: str


def add_series(parser: argparse.ArgumentParser, *, of_disksla: bool) -> None:
    """Add --series."""
    names = ("disksla", "node_exporter") if of_disksla else ("node_exporter",)
    parser.add_argument(
        "--series",
        choices=names,
        default=names[0],
        help="with --prometheus: whose series it has of the disks (default: %(default)s)",
    )


def add_others(parser: argparse.ArgumentParser) -> None:
    """Add the options for what others recorded: the period, and what the disks were sold as."""
    add_series(parser, of_disksla=False)
    add_period(parser)
    parser.add_argument(
        "--terms",
        metavar="ID",
        help="of disks that others recorded: what they were sold as, such as aws.gp3 (default: as"
        " the configuration and terms files say)",
    )
    parser.add_argument("--size", metavar="SIZE", help="with --terms: size as sold")
    add_provision(parser)
    add_machine(parser, "of disks that others recorded")
    parser.add_argument(
        "--every",
        type=duration_s,
        metavar="TIME",
        help="with output of iostat without times (-t): the time between its reports, such as 5s",
    )


def check_own(arguments: argparse.Namespace) -> None:
    """Raise DiskslaError for options that mean nothing of what disksla itself saw."""
    if arguments.duration_s is not None and (arguments.url or arguments.recording):
        raise DiskslaError("found --for with --url or --recording; expected one of them")
    check_unused(arguments, "what disksla itself recorded", _OF_OTHERS)
    if arguments.start is not None or arguments.end is not None:
        raise DiskslaError("found --from or --to; expected them with --prometheus")


def is_of_others(arguments: argparse.Namespace) -> bool:
    """Return whether others recorded what is asked about. Raise DiskslaError."""
    if arguments.recording is None:
        return arguments.prometheus is not None
    try:
        with arguments.recording.open("rb") as file:
            return is_sysstat(file.read(_HEAD_BYTES).decode(errors="replace"))
    except OSError as error:
        raise DiskslaError(f"cannot read {arguments.recording}: {error.strerror}") from None


def explain_others(arguments: argparse.Namespace) -> int:
    """Print what disks did that others recorded."""
    if arguments.recording is None:
        disks, period = from_prometheus(arguments, arguments.devices)
    else:
        disks, period = _from_file(arguments)
    uses = uses_of(arguments, disks)
    if arguments.json:
        print(to_json({"period": period, "disks": uses}))
    else:
        print_parts(means_page(uses, period, _MOST_DETAILED))
    return 0


def from_prometheus(
    arguments: argparse.Namespace, patterns: Sequence[str], matchers: str = ""
) -> tuple[list[RecordedDisk], Period]:
    """Return what node_exporter recorded of the selected disks. Raise DiskslaError.

    A device without an instance is that of every machine.
    """
    period, server = period_of(arguments, time.time()), server_of(arguments)
    named = tuple(each for name in patterns for each in (name, f"*:{name}"))
    found = carry_out(find_node_disks(server, Selection(matchers, named), period), _WITHIN_S)
    disks = [
        RecordedDisk(name.instance, disk, carry_out(read_means(server, name, period), _WITHIN_S))
        for name, disk in found
    ]
    seen = [each for each in disks if each.means]
    if not seen:
        wanted = f" of {', '.join(patterns)}" if patterns else ""
        raise DiskslaError(
            f"{arguments.command} failed: the server has no two scrapes of node_disk_*{wanted} in"
            " this period; see that node_exporter is scraped every 10 minutes or more often, and"
            " the names and the period are right"
        )
    return seen, period


def _from_file(arguments: argparse.Namespace) -> tuple[list[RecordedDisk], Period]:
    """Return what sysstat recorded of the named disks, or of all. Raise DiskslaError."""
    file, names = arguments.recording, arguments.devices
    text = read_named(file, LARGEST_BYTES).decode(errors="replace")
    try:
        found = parse_sysstat(text, arguments.every)
    except DiskslaError as error:
        raise DiskslaError(f"cannot read {file}: {error}") from None
    chosen = [
        each
        for each in found
        if (each.device in names if names else not each.device.startswith(NOT_DISKS))
    ]
    if not chosen:
        devices = ", ".join(dict.fromkeys(each.device for each in found))
        raise DiskslaError(f"found {devices} in {file}; expected {', '.join(names) or 'a disk'}")
    disks = [
        RecordedDisk(host, Disk(device, 0, 0, size_bytes=0), means)
        for host, device, means in chosen
    ]
    start_s = min(each.means[0].start_s for each in disks)
    end_s = max(each.means[-1].end_s for each in disks)
    return disks, Period(math.floor(start_s), math.ceil(end_s))


def sold_as(arguments: argparse.Namespace, configuration: Configuration, disk: Disk) -> Sold:
    """Return what a disk was sold as by the options, or else by the files. Raise DiskslaError."""
    if arguments.terms is None:
        check_alone(arguments)
        files, settings = configuration.terms_files, configuration.settings
        found = find_terms(disk, settings, files)
        entry = None if found is None else provision_of(found.entry)
        assignment = assign(disk, settings, configuration.catalog, files)
        row = configuration.catalog.find(assignment.terms)
        name = assignment.terms if row is None else row.id
        return Sold(
            Candidate(name, assignment.size_bytes, entry or Provision(), assignment.limits),
            assignment.reason,
        )
    if arguments.size is None:
        raise DiskslaError("--terms needs --size SIZE: limits depend on the size of the disk")
    terms = configuration.catalog[arguments.terms]
    size_bytes = parse_size_of_disk("--size", arguments.size, terms)
    return Sold(sold_by_options(arguments, terms, size_bytes), "")


def uses_of(arguments: argparse.Namespace, disks: Sequence[RecordedDisk]) -> list[DiskUse]:
    """Return what the disks did, relative to their limits and to those of their machines."""
    configuration = read_all(arguments)
    sold = {each.title: sold_as(arguments, configuration, each.disk) for each in disks}
    machines = _machine_uses(arguments, configuration, disks, sold)
    uses = []
    for each in disks:
        candidate, reason = sold[each.title]
        limits = candidate.limits
        uses.append(
            DiskUse(
                title=each.title,
                terms=TERMS_TITLES.get(candidate.terms, candidate.terms),
                size_bytes=candidate.size_bytes,
                reason=reason,
                limits=limits.rates,
                burst=None if limits.burst is None else limits.burst.rates,
                excess_ratio=limits.limiter.excess_ratio,
                use=use_of_limits(each.means, limits),
                machine=tuple(machines[each.title]),
            )
        )
    return in_order(uses)


def _machine_uses(
    arguments: argparse.Namespace,
    configuration: Configuration,
    disks: Sequence[RecordedDisk],
    sold: Mapping[str, Sold],
) -> Mapping[str, list[MachineUse]]:
    """Return what the disks of each machine did together, by disk; all are of the same type."""
    uses: defaultdict[str, list[MachineUse]] = defaultdict(list)
    providers = {each.candidate.terms.partition(".")[0] for each in sold.values()}
    for provider in providers:
        rules = load_machine_rules(provider)
        row = next(
            (each for each in configuration.catalog.rows if each.provider == provider), None
        )
        machine = None if row is None else chosen_machine(arguments, row, rules)
        if rules is None or machine is None:
            continue
        for shared in shared_limits(MachineChoice(rules, machine), None):
            members: defaultdict[str, list[RecordedDisk]] = defaultdict(list)
            for each in disks:
                if (
                    sold[each.title].candidate.terms in (shared.covers or ())
                    and not shared.is_cache
                ):
                    members[each.instance].append(each)
            for group in members.values():
                means = together([each.means for each in group])
                if means:
                    use = use_of_limits(means, shared.limits)
                    names = tuple(each.disk.name for each in group)
                    for each in group:
                        uses[each.title].append(MachineUse(shared, names, use))
    return uses
