"""Advice for a disk whose series a Prometheus server has, of disksla or of node_exporter."""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from disksla.base.errors import DiskslaError
from disksla.clouds.http_client.transport import carry_out
from disksla.commands._context import read_all
from disksla.commands._means import WITHIN_S, sold_as, sold_by_files
from disksla.commands._options import parse_size_of_disk
from disksla.commands._prometheus import period_of, server_of
from disksla.commands._provision import check_alone, chosen_machine, sold_by_options
from disksla.measure.advice import (
    Candidate,
    Needs,
    demand_of_means,
    demand_of_scrapes,
    provision_by_limits,
)
from disksla.measure.advice.advice import Advice, GroupOnMachine, advice_of
from disksla.measure.advice.scrapes import SCRAPED
from disksla.measure.means import is_at_limit, total_means
from disksla.measure.means.node_exporter import find_node_disks, read_means
from disksla.measure.prometheus import (
    FACTS,
    DiskName,
    Facts,
    Period,
    Selection,
    Series,
    Server,
    Step,
    facts_of,
    find_disks,
    read_increases,
    read_steps,
    selector,
)
from disksla.promise.catalogue import (
    NO_LIMITS,
    Catalog,
    MachineChoice,
    Terms,
    derive_limits,
    shared_limits,
)
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.machine import Machine, MachineRules, find_machine, machine_of_vcpus
from disksla.promise.catalogue.machine_tables import load_machine_rules, read_table
from disksla.promise.configuration.settings import AssessmentSettings
from disksla.promise.configuration.settings_file import catalog_directory

_TOLERANCE = AssessmentSettings().tolerance_ratio
_MOST_STEPS, _LEAST_STEP_S = 1000, 60
_DISK_INFO, _MACHINE_INFO = "disksla_disk_info", "disksla_machine_info"


class ScrapedMachine(NamedTuple):
    """The disks of one machine, as they were described last."""

    name: DiskName
    """The disk in question."""
    disks: Mapping[str, Facts]
    """By device; that of the disk in question is among them."""
    machine: str
    """Machine type, or the number of vCPUs, whose limits are monitored; empty if not known."""

    def titles(self, devices: Iterable[str]) -> list[str]:
        """Return the instance with each device."""
        return [f"{self.name.instance} {device}".strip() for device in devices]


def advice_of_series(arguments: argparse.Namespace, tolerated_share: float) -> Advice:
    """Return the advice for the disk of the options. Raise DiskslaError."""
    period = period_of(arguments, time.time())
    server = server_of(arguments)
    catalog = load_catalog(catalog_directory(arguments.config_file))
    scraped = _find_machine_of_disk(server, arguments.device, period)
    present = _present(arguments, catalog, scraped)
    known_limits = present.limits if arguments.terms is None else NO_LIMITS

    def needs_of(devices: Iterable[str]) -> Needs:
        steps = (_read_steps(server, scraped.name, device, period) for device in devices)
        demand = demand_of_scrapes(*steps, limits=known_limits)
        return Needs(demand, tolerated_share, _TOLERANCE)

    return advice_on(arguments, catalog, scraped, present, needs_of)


def advice_on(
    arguments: argparse.Namespace,
    catalog: Catalog,
    scraped: ScrapedMachine,
    present: Candidate,
    needs_of: Callable[[Iterable[str]], Needs],
) -> Advice:
    """Return the advice for a disk by what disks of its machine need. Raise DiskslaError."""
    terms = catalog[present.terms]
    groups = _groups(arguments, scraped, terms)
    advice = advice_of(catalog, present, _sharing(scraped, terms), needs_of, groups)
    if not advice.needs.demand.windows:
        raise DiskslaError(
            f"advise failed: found no two scrapes of {scraped.name.title} in this period"
        )
    return advice._replace(
        devices=scraped.titles(advice.devices),
        machine=[each._replace(devices=scraped.titles(each.devices)) for each in advice.machine],
    )


def _find_machine_of_disk(server: Server, name: str, period: Period) -> ScrapedMachine:
    """Return the one disk of a name, with the others of its machine. Raise DiskslaError."""
    found = carry_out(find_disks(server, Selection(patterns=(name,)), period), WITHIN_S)
    disk = the_only([disk for disk, _ in found], name)
    matching = selector((*FACTS, _MACHINE_INFO), _of_host(disk))
    step_s = max(_LEAST_STEP_S, -(-period.seconds // _MOST_STEPS))
    asked = read_steps(server, matching, period.start_timestamp_s, period.end_timestamp_s, step_s)
    found_series = [each for each in carry_out(asked, WITHIN_S) if each.values]
    by_age = sorted(found_series, key=lambda each: each.values[-1][0])
    machines = [each.metric.get("machine") for each in by_age]
    disks = {disk.device: Facts(), **_facts_by_device(by_age)}
    return ScrapedMachine(disk, disks, next(filter(None, reversed(machines)), ""))


def the_only(found: Sequence[DiskName], name: str) -> DiskName:
    """Return the one disk of a name. Raise DiskslaError."""
    if len(found) != 1:
        titles = ", ".join(disk.title for disk in found) or "none"
        raise DiskslaError(f"advise failed: found {titles} for '{name}'; expected one disk")
    return found[0]


def _read_steps(server: Server, disk: DiskName, device: str, period: Period) -> list[Step]:
    """Return the steps of a disk of the same machine. Raise DiskslaError."""
    labels = _of_host(disk) | {"device": device}
    start_s, end_s = period.start_timestamp_s, period.end_timestamp_s
    return carry_out(read_increases(server, SCRAPED, labels, start_s, end_s), WITHIN_S)


def _of_host(disk: DiskName) -> dict[str, str]:
    return {name: value for name, value in disk.labels if name != "device"}


def _facts_by_device(by_age: Iterable[Series]) -> dict[str, Facts]:
    """Return the last facts of each disk that has an info."""
    infos: dict[str, Mapping[str, str]] = {}
    gauges: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for each in by_age:
        device = each.metric.get("device", "")
        if each.name == _DISK_INFO:
            infos[device] = each.metric
        else:
            gauges[device].update((each.name, value) for _, value in each.samples())
    return {device: facts_of(info, gauges[device]) for device, info in infos.items()}


def _present(
    arguments: argparse.Namespace, catalog: Catalog, scraped: ScrapedMachine
) -> Candidate:
    """Return the disk as it was sold, by the options or by its series. Raise DiskslaError."""
    facts, title = scraped.disks[scraped.name.device], scraped.name.title
    if arguments.terms is None:
        check_alone(arguments)
    terms = catalog.find(facts.terms) if arguments.terms is None else catalog[arguments.terms]
    if terms is None or terms.budget is None:
        raise DiskslaError(
            f"cannot advise on {title}: its series do not say of which type of the catalogue it"
            " is; say what it was sold as, with --terms"
        )
    sizes = [scraped.disks[device].size_bytes for device in _sharing(scraped, terms)]
    if arguments.size is not None:
        size_bytes = parse_size_of_disk("--size", arguments.size, terms)
    elif None in sizes:
        raise DiskslaError(
            f"cannot advise on {title}: the server has no disksla_disk_size_bytes in this period;"
            " say what it was sold as, with --terms and --size"
        )
    else:
        size_bytes = sum(size or 0 for size in sizes)
    if arguments.terms is not None:
        return sold_by_options(arguments, terms, size_bytes)
    provision = provision_by_limits(terms, size_bytes, facts.promised)
    if provision is None:
        raise DiskslaError(
            f"cannot advise on {title}: its limits do not follow from {terms.id} and its size;"
            " say what it was sold as, with --terms, --size, --iops, --bandwidth and --option"
        )
    limits = derive_limits(terms, size_bytes, provision)
    return Candidate(terms.id, size_bytes, provision, limits)


def _sharing(scraped: ScrapedMachine, terms: Terms) -> list[str]:
    """Return the disks that share the limits of a type: the disk in question, and perhaps more."""
    return _members(scraped, (terms.id,) if terms.scope == "machine" else ())


def _groups(
    arguments: argparse.Namespace, scraped: ScrapedMachine, terms: Terms
) -> list[GroupOnMachine]:
    """Return the groups of the machine that the disk is in, of which each has a limit.

    The machine is that of the options or, without them, the one whose limits were monitored.
    """
    rules = load_machine_rules(terms.provider)
    machine = chosen_machine(arguments, terms, rules)
    if rules is None:
        return []
    table = read_table(rules)
    machine = machine or _monitored(rules, table, scraped.machine)
    if machine is None:
        return []
    choice = MachineChoice(rules, machine)
    return [
        GroupOnMachine(_members(scraped, shared.covers or ()), shared, (choice,), table)
        for shared in shared_limits(choice, None)
        if terms.id in (shared.covers or ()) and not shared.is_cache
    ]


def _monitored(rules: MachineRules, table: str, name: str) -> Machine | None:
    """Return the machine that series name; None if they name none that is in the table."""
    if rules.key == "vcpus":
        number = name.partition(" ")[0]
        return machine_of_vcpus(int(number)) if number.isdecimal() else None
    try:
        return find_machine(rules, table, name) if name else None
    except DiskslaError:
        return None


def _members(scraped: ScrapedMachine, types: Collection[str]) -> list[str]:
    """Return the monitored disks in a group: the disk in question, and those of these types."""
    return [
        device
        for device, facts in sorted(scraped.disks.items())
        if device == scraped.name.device or facts.terms in types
    ]


def advice_of_means(arguments: argparse.Namespace, tolerated_share: float) -> Advice:
    """Return the advice for the disk of the options. Raise DiskslaError."""
    period, server = period_of(arguments, time.time()), server_of(arguments)
    configuration = read_all(arguments)
    wanted = Selection(patterns=(arguments.device, f"*:{arguments.device}"))
    named = dict(carry_out(find_node_disks(server, wanted, period), WITHIN_S))
    name = the_only([*named], arguments.device)
    present, reason = sold_as(arguments, configuration, named[name])
    if configuration.catalog.find(present.terms) is None or present.limits.budget is None:
        raise DiskslaError(
            f"cannot advise on {name.title}: {reason}; say what it was sold as, with --terms and"
            " --size"
        )
    names = {name.device: name}
    candidates = {name.device: present}
    for other, disk in carry_out(find_node_disks(server, Selection(), period), WITHIN_S):
        if other.instance == name.instance and disk.name not in names:
            names[disk.name] = other
            candidates[disk.name] = sold_by_files(configuration, disk)[0]
    facts = {
        device: Facts(terms=each.terms, size_bytes=each.size_bytes)
        for device, each in candidates.items()
    }

    def needs_of(devices: Iterable[str]) -> Needs:
        of_disks = [
            (carry_out(read_means(server, names[each], period), WITHIN_S), candidates[each].limits)
            for each in devices
        ]
        at_ends = {
            mean.end_s
            for means, limits in of_disks
            for mean, is_at in zip(means, is_at_limit(means, limits), strict=True)
            if is_at
        }
        means = total_means([means for means, _ in of_disks])
        known = present.limits if len(of_disks) == 1 else NO_LIMITS
        demand = demand_of_means(means, [mean.end_s in at_ends for mean in means], known)
        return Needs(demand, tolerated_share, configuration.settings.assessment.tolerance_ratio)

    scraped = ScrapedMachine(name, facts, "")
    return advice_on(arguments, configuration.catalog, scraped, present, needs_of)
