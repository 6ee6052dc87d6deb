"""Advice for a disk whose series a Prometheus server has."""

import argparse
import time
from collections.abc import Collection, Iterable

from disksla.advice import (
    Candidate,
    Needs,
    demand_of_scrapes,
    machine_outcomes,
    provision_by_limits,
)
from disksla.advice.advice import Advice, MachineAdvice
from disksla.advice.scraped_machine import ScrapedMachine, find_machine_of_disk, read_scrapes
from disksla.commands._machine_options import chosen_machine
from disksla.commands._options import parse_size_of_disk
from disksla.commands._prometheus import period_of, server_of
from disksla.commands._sold import check_alone, outcomes_of_provider, sold_by_options
from disksla.config.settings import AssessmentSettings
from disksla.config.settings_file import catalog_directory
from disksla.errors import DiskslaError
from disksla.limits import (
    NO_LIMITS,
    Catalog,
    MachineChoice,
    SharedLimits,
    Terms,
    derive_limits,
    shared_limits,
)
from disksla.limits.catalog import load_catalog
from disksla.limits.machine import Machine, MachineRules, find_machine, machine_of_vcpus
from disksla.limits.machine_tables import load_machine_rules, read_table

_TOLERANCE = AssessmentSettings().tolerance_ratio


def advice_of_series(arguments: argparse.Namespace, tolerated_share: float) -> Advice:
    """Return the advice for the disk of the options. Raise DiskslaError."""
    if arguments.device is None:
        raise DiskslaError(
            "--prometheus needs DEVICE (INSTANCE:DEVICE, a serial or a mount point)"
        )
    period = period_of(arguments, time.time())
    server = server_of(arguments)
    catalog = load_catalog(catalog_directory(arguments.config_file))
    scraped = find_machine_of_disk(server, arguments.device, period)
    present = _present(arguments, catalog, scraped)
    terms = catalog[present.terms]

    known_limits = present.limits if arguments.terms is None else NO_LIMITS

    def needs_of(devices: Iterable[str]) -> Needs:
        demand = demand_of_scrapes(
            *(read_scrapes(server, scraped, device, period) for device in devices),
            limits=known_limits,
        )
        return Needs(demand, tolerated_share, _TOLERANCE)

    devices = _sharing(scraped, terms)
    needs = needs_of(devices)
    if not needs.demand.windows:
        raise DiskslaError(
            f"advise failed: found no two scrapes of {scraped.name.title} in this period"
        )
    found = outcomes_of_provider(catalog, present, needs)
    machine = []
    for choice, shared, table in _groups(arguments, scraped, terms):
        members = _members(scraped, shared.covers or ())
        of_group = needs if members == devices else needs_of(members)
        machine.append(
            MachineAdvice(
                tuple(map(scraped.title, members)),
                machine_outcomes(shared, (choice,), table, of_group),
                needs.performance_iops(shared.limits),
            )
        )
    titles = tuple(map(scraped.title, devices))
    return Advice(
        devices=titles,
        needs=needs,
        present=found.disks[0],
        outcomes=found.disks[1:],
        machine=machine,
        left_out=found.left_out,
    )


def _present(
    arguments: argparse.Namespace, catalog: Catalog, scraped: ScrapedMachine
) -> Candidate:
    """Return the disk as it was sold, by the options or by its series. Raise DiskslaError."""
    facts, title = scraped.facts, scraped.name.title
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
) -> list[tuple[MachineChoice, SharedLimits, str]]:
    """Return the limits of the machine that the disk is under, with the table of its provider.

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
        (choice, shared, table)
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
