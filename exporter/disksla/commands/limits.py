"""`disksla limits`: list the disk types, or print the limits of one for a size.

With --textfile, write the limits of the disks of this host for node_exporter.
"""

import argparse
import math
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from disksla.base.console import SafeConsole, to_json
from disksla.base.errors import DiskslaError
from disksla.base.units import parse_size_bytes
from disksla.commands._option_table import add_options
from disksla.commands._options import (
    add_config_file,
    add_paths,
    check_unused,
    parse_optional,
    parse_size_of_disk,
)
from disksla.commands._provision import add_machine, add_provision, chosen_machine, read_provision
from disksla.promise.catalogue import (
    USUAL_IOPS_CONDITIONS,
    Catalog,
    EffectiveIops,
    Limits,
    Terms,
    derive_limits,
    effective_iops,
)
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.machine import MachineRules, machine_groups
from disksla.promise.catalogue.machine_tables import load_machine_rules
from disksla.promise.catalogue.options import client_of, effective_options, with_options
from disksla.promise.configuration.settings_file import catalog_directory
from disksla.tell.limits_text import LimitsQuery, Mix, limits_document, limits_page, notes_on
from disksla.tell.machine_text import DiskOnMachine, machine_document, machine_note, machine_page
from disksla.tell.printed_page import print_parts

_DATE = "2026-11-22"
_OF_A_SIZE = (
    "--iops", "--bandwidth", "--option", "--request-size", "--write-share", "--machine", "--vcpus",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add TERMS, SIZE, the provisioned values and the load."""
    add_options(
        parser,
        """
TERMS?  type of the catalogue, such as vk.ceph-ssd; without SIZE, also a provider
SIZE?   size of the disk, such as 500GiB (default: list the types)
""",
    )
    add_provision(parser)
    add_options(
        parser,
        """
--request-size B  request size of a load, to print its effective IOPS
--write-share A   share of writes in that load, from 0 to 1 (default: 0)
""",
    )
    add_machine(parser, "to print its limits over its disks too")
    add_options(
        parser,
        """
--json           print JSON, in base units
--textfile FILE  write the limits of the disks of this host to a file of node_exporter's textfile
                 collector, such as /var/lib/prometheus/node-exporter/disksla.prom
""",
    )
    add_config_file(
        parser,
        "YAML configuration, read for --textfile; catalog.d/ beside it is always read"
        " (default: /etc/disksla/disksla.yml and catalog.d)",
    )
    add_paths(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the limits of a disk, or the types; or write those of this host."""
    if arguments.textfile is not None:
        check_unused(arguments, "--textfile", ("terms", "--json", *_OF_A_SIZE))
        # The pipeline takes as long to load as all the rest.
        from disksla.commands._textfile import write_textfile  # noqa: PLC0415

        return write_textfile(arguments)
    catalog = load_catalog(catalog_directory(arguments.config_file))
    if arguments.size is None:
        check_unused(arguments, "a list of types", _OF_A_SIZE)
        _list_types(catalog, arguments)
        return 0
    terms = catalog[arguments.terms]
    query = LimitsQuery(
        arguments.size,
        parse_size_of_disk("SIZE", arguments.size, terms),
        read_provision(arguments),
        _mix(arguments, terms),
    )
    limits = derive_limits(terms, query.size_bytes, query.provision)
    iops = effective_iops(limits, *query.mix, terms.promised_shares) if query.mix else None
    rules = load_machine_rules(terms.provider)
    machine = _machine(arguments, terms, rules, limits)
    if arguments.json:
        document = _document(terms, query, limits, iops)
        print(to_json(document | ({"machine": machine_document(machine)} if machine else {})))
        return 0
    note = machine_note(rules, terms) if machine is None and rules is not None else None
    print_parts(limits_page(terms, limits, query, iops, note))
    if machine is not None:
        print()
        print_parts(machine_page(machine))
    return 0


def _list_types(catalog: Catalog, arguments: argparse.Namespace) -> None:
    """Print all types, those of a provider, or one. Raise DiskslaError."""
    name = arguments.terms
    rows = [row for row in catalog.rows if name in {None, row.provider}]
    if not rows and "." in name:
        rows = [catalog[name]]
    if not rows:
        providers = sorted({row.provider for row in catalog.rows})
        raise DiskslaError(f"unknown provider '{name}'; expected {', '.join(providers)}")
    if arguments.json:
        print(to_json(rows))
        return
    console = SafeConsole()
    id_width = max(len(row.id) for row in rows)
    title_width = max(10, console.width - id_width - len(_DATE) - 4)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("id", no_wrap=True)
    table.add_column("as of", no_wrap=True)
    table.add_column("title", no_wrap=True, overflow="ellipsis", max_width=title_width)
    for row in rows:
        newest = max((str(source.date) for source in row.sources), default="-")
        table.add_row(row.id, newest, row.title)
    console.print(table)


def _machine(
    arguments: argparse.Namespace, terms: Terms, rules: MachineRules | None, limits: Limits
) -> DiskOnMachine | None:
    """Return the disk on the machine of the arguments; None without a machine."""
    machine = chosen_machine(arguments, terms, rules)
    if machine is None or rules is None:
        return None
    return DiskOnMachine(terms, limits, machine, rules, machine_groups(rules, machine))


def _mix(arguments: argparse.Namespace, terms: Terms) -> Mix | None:
    """Return the requested load; by default reads of the size for which the promise holds."""
    request_bytes = parse_optional("--request-size", arguments.request_size, _size)
    write_share = parse_optional("--write-share", arguments.write_share, _share)
    if request_bytes is None and write_share is None:
        return None
    conditions = terms.iops_conditions or USUAL_IOPS_CONDITIONS
    return Mix(request_bytes or conditions.request_bytes, write_share or 0.0)


def _size(text: str) -> int:
    size_bytes = parse_size_bytes(text)
    if not size_bytes:
        raise ValueError(f"found '{text}'; expected a size above zero, such as 500GiB")
    return size_bytes


def _share(text: str) -> float:
    share = _number(text)
    if not 0 <= share <= 1:
        raise ValueError(f"found '{text}'; expected a share from 0 (reads only) to 1, such as 0.3")
    return share


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _document(
    terms: Terms, query: LimitsQuery, limits: Limits, iops: EffectiveIops | None
) -> dict[str, Any]:
    chosen, _ = with_options(terms, query.size_bytes, query.provision.options)
    document: dict[str, Any] = {
        "terms": terms.id,
        "provider": terms.provider,
        "title": terms.title,
        "scope": terms.scope,
        "shared_by": chosen.shared_by,
        "client": client_of(chosen, query.size_bytes),
        "allocation_unit_bytes": terms.allocation_unit_bytes,
        "size_bytes": query.size_bytes,
        "provisioned": {
            "iops": query.provision.iops,
            "bytes_per_second": query.provision.bytes_per_second,
        },
        "options": effective_options(terms, query.provision.options),
        "notes": notes_on(terms, query),
        "limits": limits_document(limits),
        "conditions": {
            "iops": terms.iops_conditions,
            "bandwidth": terms.bandwidth_conditions,
            "promised_shares": terms.promised_shares,
        },
        "limiter": terms.limiter
        and {
            "excess_ratio": terms.limiter.excess_ratio,
            "about": terms.limiter.about,
            "sources": terms.limiter.sources,
        },
        "confidence": terms.confidence,
        "not_known": terms.not_known,
        "sources": terms.sources,
    }
    if query.mix is not None:
        document["effective_iops"] = iops and iops.promise
        document["effective_iops_enforced"] = iops and iops.enforced
    return document
