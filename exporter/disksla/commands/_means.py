"""What others recorded of disks: where it is, what the disks were sold as, and what it says."""

import argparse
import math
import time
from collections.abc import Sequence
from itertools import compress, groupby
from typing import NamedTuple

from disksla.base.console import progress_bar, to_json
from disksla.base.errors import DiskslaError
from disksla.base.schema.yaml_file import read_named
from disksla.clouds.http_client.transport import carry_out
from disksla.commands._context import read_all
from disksla.commands._option_table import add_options
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
from disksla.measure.means import Mean, total_means, use_of_limits
from disksla.measure.means.mean import NOT_DISKS
from disksla.measure.means.means_page import DiskUse, means_page
from disksla.measure.means.node_exporter import find_node_disks, read_means
from disksla.measure.means.sysstat import LARGEST_BYTES, is_sysstat, parse_sysstat
from disksla.measure.prometheus import Period, Selection
from disksla.promise.catalogue import TERMS_TITLES, MachineChoice, Provision, shared_limits
from disksla.promise.catalogue.machine_tables import load_machine_rules
from disksla.promise.configuration import Configuration, assign, find_terms, provision_of
from disksla.tell.page import Line
from disksla.tell.printed_page import print_parts

WITHIN_S = 600.0
"""All questions about one disk."""
_MOST_DETAILED = 3
_HEAD_BYTES = 64 * 1024
OF_SOLD = ("--terms", "--size", "--iops", "--bandwidth", "--option", "--machine", "--vcpus")
"""The options of `add_sold`."""


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


def add_series(parser: argparse.ArgumentParser, *, of_disksla: bool) -> None:
    """Add --series."""
    names = ("disksla", "node_exporter") if of_disksla else ("node_exporter",)
    text = "--series  with --prometheus: whose series it has of the disks (default: %(default)s)"
    add_options(parser, text, {"--series": {"choices": names, "default": names[0]}})


def add_others(parser: argparse.ArgumentParser) -> None:
    """Add the options for what others recorded: the period, and what the disks were sold as."""
    add_series(parser, of_disksla=False)
    add_period(parser)
    add_sold(parser)
    add_options(
        parser,
        """
--every TIME  with output of iostat without times (-t): the time between its reports, such as 5s
""",
        {"--every": {"type": duration_s}},
    )


def add_sold(parser: argparse.ArgumentParser) -> None:
    """Add what the disks were sold as that others recorded, and their machine."""
    add_options(
        parser,
        """
--terms ID   of disks that others recorded: what they were sold as, such as aws.gp3 (default: as
             the configuration and terms files say)
--size SIZE  with --terms: size as sold
""",
    )
    add_provision(parser)
    add_machine(parser, "of disks that others recorded")


def check_own(arguments: argparse.Namespace) -> None:
    """Raise DiskslaError for options of `explain` that mean nothing of what disksla itself saw."""
    if arguments.duration_s is not None and (arguments.url or arguments.recording):
        raise DiskslaError("found --for with --url or --recording; expected one of them")
    check_unused(arguments, "what disksla itself recorded", ("--every", "--last", *OF_SOLD))
    if arguments.start is not None or arguments.end is not None:
        raise DiskslaError("found --from or --to; expected them with --prometheus")


def is_of_others(arguments: argparse.Namespace) -> bool:
    """Return whether others recorded what is asked about. Raise DiskslaError.

    A pipe can be read once, and is a recording of disksla.
    """
    if arguments.recording is None or not arguments.recording.is_file():
        return arguments.prometheus is not None
    try:
        with arguments.recording.open("rb") as file:
            return is_sysstat(file.read(_HEAD_BYTES).decode(errors="replace"))
    except OSError as error:
        raise DiskslaError(f"cannot read {arguments.recording}: {error.strerror}") from None


def explain_others(arguments: argparse.Namespace) -> int:
    """Print what disks did that others recorded."""
    if arguments.recording is None:
        uses, period = from_prometheus(arguments, arguments.devices)
    else:
        uses, period = _from_file(arguments)
    print_uses(arguments, uses, period)
    return 0


def print_uses(arguments: argparse.Namespace, uses: Sequence[DiskUse], period: Period) -> None:
    """Print what disks did, as text or JSON."""
    if arguments.json:
        print(to_json({"period": period, "disks": uses}))
        return
    print_parts(means_page(uses, period, _MOST_DETAILED))
    at = next((each.title for each in uses if each.use.at_limit and each.terms), None)
    if arguments.prometheus is not None and at is not None:
        command = f"disksla advise {at.replace(' ', ':')} --series node_exporter"
        print_parts([Line(f"Which disk would have been enough: {command}, and the same options.")])


def from_prometheus(
    arguments: argparse.Namespace, patterns: Sequence[str], matchers: str = ""
) -> tuple[list[DiskUse], Period]:
    """Return what the selected disks did by the series of node_exporter. Raise DiskslaError.

    A device without an instance is that of every machine. One machine after the other is read.
    """
    period, server = period_of(arguments, time.time()), server_of(arguments)
    configuration = read_all(arguments)
    named = tuple(each for name in patterns for each in (name, f"*:{name}"))
    found = carry_out(find_node_disks(server, Selection(matchers, named), period), WITHIN_S)
    by_instance = sorted(found, key=lambda each: each[0].instance)
    uses: list[DiskUse] = []
    with progress_bar(len(found)) as progress:
        for instance, group in groupby(by_instance, key=lambda each: each[0].instance):
            disks = []
            for name, disk in group:
                progress(name.title, 0.0)
                means = carry_out(read_means(server, name, period), WITHIN_S)
                disks += [RecordedDisk(instance, disk, means)] if means else []
                progress(name.title, 1.0)
            uses += _uses_of(arguments, configuration, disks)
    if not uses:
        wanted = f" of {', '.join(patterns)}" if patterns else ""
        raise DiskslaError(
            f"{arguments.command} failed: the server has no two scrapes of node_disk_*{wanted} in"
            " this period; see that node_exporter is scraped every 10 minutes or more often, and"
            " the names and the period are right"
        )
    return _in_order(uses), period


def _from_file(arguments: argparse.Namespace) -> tuple[list[DiskUse], Period]:
    """Return what the named disks did, or all, by the output of sysstat. Raise DiskslaError."""
    file, names = arguments.recording, arguments.devices
    text = read_named(file, LARGEST_BYTES).decode(errors="replace")
    try:
        found = parse_sysstat(text, arguments.every)
    except DiskslaError as error:
        raise DiskslaError(f"cannot read {file}: {error}") from None
    disks = [
        RecordedDisk(host, Disk(device, 0, 0, size_bytes=0), means)
        for host, device, means in found
        if (device in names if names else not device.startswith(NOT_DISKS))
    ]
    if not disks:
        devices = ", ".join(dict.fromkeys(each.device for each in found))
        raise DiskslaError(f"found {devices} in {file}; expected {', '.join(names) or 'a disk'}")
    start_s = min(each.means[0].start_s for each in disks)
    end_s = max(each.means[-1].end_s for each in disks)
    uses = _uses_of(arguments, read_all(arguments), disks)
    return _in_order(uses), Period(math.floor(start_s), math.ceil(end_s))


def sold_by_files(configuration: Configuration, disk: Disk) -> tuple[Candidate, str]:
    """Return what a disk was sold as by the configuration and terms files, and why."""
    files, settings = configuration.terms_files, configuration.settings
    found = find_terms(disk, settings, files)
    assignment = assign(disk, settings, configuration.catalog, files)
    row = configuration.catalog.find(assignment.terms)
    candidate = Candidate(
        assignment.terms if row is None else row.id,
        assignment.size_bytes,
        Provision() if found is None else provision_of(found.entry),
        assignment.limits,
    )
    return candidate, assignment.reason


def sold_as(
    arguments: argparse.Namespace, configuration: Configuration, disk: Disk
) -> tuple[Candidate, str]:
    """Return what a disk was sold as by the options or else by files, and why. Raise DiskslaError.

    The reason is empty if the options say it.
    """
    if arguments.terms is None:
        check_alone(arguments)
        return sold_by_files(configuration, disk)
    if arguments.size is None:
        raise DiskslaError("--terms needs --size SIZE: limits depend on the size of the disk")
    terms = configuration.catalog[arguments.terms]
    size_bytes = parse_size_of_disk("--size", arguments.size, terms)
    return sold_by_options(arguments, terms, size_bytes), ""


def _uses_of(
    arguments: argparse.Namespace, configuration: Configuration, disks: Sequence[RecordedDisk]
) -> list[DiskUse]:
    """Return what disks of one machine did, relative to their limits and to its limits."""
    sold = [sold_as(arguments, configuration, each.disk) for each in disks]
    uses = [
        _use(each.title, candidate, reason, each.means)
        for each, (candidate, reason) in zip(disks, sold, strict=True)
    ]
    terms = [candidate.terms for candidate, _ in sold]
    row = next(filter(None, map(configuration.catalog.find, terms)), None)
    rules = None if row is None else load_machine_rules(row.provider)
    machine = None if row is None else chosen_machine(arguments, row, rules)
    if rules is None or machine is None:
        return uses
    for shared in shared_limits(MachineChoice(rules, machine), None):
        is_member = [name in (shared.covers or ()) and not shared.is_cache for name in terms]
        members = [*compress(disks, is_member)]
        if means := total_means([each.means for each in members]):
            names = ", ".join(each.disk.name for each in members)
            title = f"{members[0].instance} {shared.machine} ({names})".strip()
            together_sold = Candidate("", 0, Provision(), shared.limits)
            uses.append(_use(title, together_sold, shared.title, means))
    return uses


def _use(title: str, candidate: Candidate, reason: str, means: Sequence[Mean]) -> DiskUse:
    limits = candidate.limits
    return DiskUse(
        title=title,
        terms=TERMS_TITLES.get(candidate.terms, candidate.terms),
        size_bytes=candidate.size_bytes,
        reason=reason,
        limits=limits.rates,
        burst=None if limits.burst is None else limits.burst.rates,
        excess_ratio=limits.limiter.excess_ratio,
        use=use_of_limits(means, limits),
    )


def _in_order(uses: Sequence[DiskUse]) -> list[DiskUse]:
    """Return those that were longest at a limit first, then by their largest load."""

    def place(each: DiskUse) -> tuple[float, float, str]:
        return -each.use.at_limit_s, -(each.use.largest_load or 0.0), each.title

    return sorted(uses, key=place)
