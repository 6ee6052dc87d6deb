"""`disksla advise`: what would have been enough for a load, by a recording or by series."""

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from disksla.base.console import to_json
from disksla.base.errors import DiskslaError
from disksla.base.schema.yaml_file import parse_record, read_file
from disksla.commands._advise_series import advice_of_means, advice_of_series
from disksla.commands._context import add_device, recorded_context
from disksla.commands._means import add_series
from disksla.commands._option_table import add_options
from disksla.commands._options import add_config_file, parse_option, parse_size_of_disk
from disksla.commands._prometheus import add_period, add_server
from disksla.commands._provision import add_machine, add_provision, check_alone, sold_by_options
from disksla.commands.replay import RECORDED_CONFIG_FILE_HELP, replay
from disksla.measure.advice import Candidate, Needs, Served, demand_of, served_of, total_served
from disksla.measure.advice.advice import Advice, GroupOnMachine, advice_document, advice_of
from disksla.measure.advice.advice_text import advice_page
from disksla.measure.advice.search import PriceList
from disksla.promise.catalogue import Provision, SharedLimits
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.machine_tables import read_table
from disksla.promise.configuration import provision_of
from disksla.promise.configuration.settings_file import catalog_directory
from disksla.state.pipeline import DiskState, State, present_periods
from disksla.tell.api.daemon_client import ask_disks
from disksla.tell.printed_page import print_parts

_PERCENT = 100


class _Observed(NamedTuple):
    """A recording: its last state, and what each disk served."""

    state: State
    served: dict[str, list[Served]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the disk, the recording, and what the disk was sold as."""
    add_device(parser, "; with --prometheus, INSTANCE:DEVICE, a serial or a mount point")
    add_options(parser, "--recording FILE  recording of the load, written by `disksla record`")
    add_server(parser)
    add_series(parser, of_disksla=True)
    add_period(parser)
    add_options(
        parser,
        """
--terms ID   what the disk was sold as, such as aws.gp3 (default: as in the recording, the series
             or, with --series node_exporter, the configuration and terms files)
--size SIZE  with --terms: size as sold (default: as in the recording or the series)
""",
    )
    add_provision(parser)
    add_machine(parser, "with --prometheus (default: the machine whose limits were monitored)")
    add_options(
        parser,
        """
--tolerance PERCENT  share of the time for which the load may be throttled (default: %(default)s)
--prices FILE        YAML file of what disks cost per month (default: no prices)
--json               print a JSON object, in base units
""",
        {"--tolerance": {"default": "0.1"}},
    )
    add_config_file(parser, RECORDED_CONFIG_FILE_HELP)


def run(arguments: argparse.Namespace) -> int:
    """Print what would have been enough, or the next step. Return 0 if there is one, else 1."""
    prices = None
    if arguments.prices is not None:
        prices = parse_record(read_file(arguments.prices), str(arguments.prices), PriceList, {})
        catalog = load_catalog(catalog_directory(arguments.config_file))
        for terms in prices.prices:
            catalog[terms]  # an unknown one is an error
    tolerated_share = parse_option("--tolerance", arguments.tolerance, _share)
    if (arguments.recording is None) == (arguments.prometheus is None):
        raise DiskslaError(_ways(arguments.device))
    advice = _of_source(arguments, tolerated_share)._replace(prices=prices)
    if arguments.json:
        print(to_json(advice_document(advice)))
    else:
        print_parts(advice_page(advice))
    return 0 if advice.is_answered else 1


def _of_source(arguments: argparse.Namespace, tolerated_share: float) -> Advice:
    """Return the advice by a recording or by series. Raise DiskslaError."""
    if arguments.prometheus is None:
        return _of_recording(arguments, tolerated_share)
    if arguments.device is None:
        raise DiskslaError(
            "--prometheus needs DEVICE (INSTANCE:DEVICE, a serial or a mount point)"
        )
    if arguments.series == "node_exporter":
        return advice_of_means(arguments, tolerated_share)
    return advice_of_series(arguments, tolerated_share)


def _ways(device: str | None) -> str:
    """Return the commands that advise on a disk; by default, on that which needs it most."""
    if device is None:
        document = ask_disks(None, lambda _: None)
        worst = (
            max(document.disks, key=lambda disk: disk.bad_s, default=None) if document else None
        )
        device = "DISK" if worst is None else worst.device
    return f"""cannot advise without the load of the disk: expected one of
  disksla record load.jsonl.gz --for 10m && disksla advise {device} --recording load.jsonl.gz
  disksla advise {os.uname().nodename}:{device} --last 7d --prometheus http://localhost:9090"""


def _of_recording(arguments: argparse.Namespace, tolerated_share: float) -> Advice:
    """Return the advice for a disk of a recording. Raise DiskslaError."""
    if arguments.machine is not None or arguments.vcpus is not None:
        raise DiskslaError(
            "found a machine; expected it with --prometheus: a recording has it in its"
            " configuration"
        )
    observed = _observed(replay(arguments.recording, arguments.config_file))
    disk_state = _disk(observed, arguments.device)
    present = _present(arguments, observed.state, disk_state)
    advice = _advice(observed, disk_state, present, tolerated_share)
    if present.limits.budget is None and advice.needs.demand.loop is None:
        raise DiskslaError(
            f"cannot advise on {disk_state.disk.name}: its type is not known; say what it was sold"
            " as, with --terms and --size"
        )
    return advice


def _observed(states: Iterator[State]) -> _Observed:
    """Return what the disks of a recording served, since they are these with these terms.

    Raise DiskslaError if it has no sample.
    """
    found = present_periods(states)
    if found is None or not any(each.window_s for rows in found.records.values() for each in rows):
        raise DiskslaError("found no window in the recording; expected a second of samples")
    served = {
        name: served_of(found.records.get(name, ()))
        for name, disk_state in found.last.monitored.items()
        if not disk_state.disk.is_mount
    }
    if not served:
        raise DiskslaError("found NFS mounts only in the recording; expected a block device")
    return _Observed(found.last, served)


def _disk(observed: _Observed, name: str | None) -> DiskState:
    """Return the disk of a name, or the one that was throttled most. Raise DiskslaError."""
    state = observed.state
    if name is None:
        most = max(
            observed.served,
            key=lambda each: (
                demand_of(observed.served[each]).throttled_share,
                sum(window.requests for window in observed.served[each]),
            ),
        )
        return state.monitored[most]
    host = recorded_context(state)
    disk = host.find_block_device(name, "what another file storage would do is not simulated")
    if disk.name not in state.monitored:
        raise DiskslaError(f"{disk.name} is not monitored: {host.why_not_monitored(disk)}")
    return state.monitored[disk.name]


def _present(arguments: argparse.Namespace, state: State, disk_state: DiskState) -> Candidate:
    """Return the disk as it was sold. Raise DiskslaError if the options do not say it."""
    disk, assignment = disk_state.disk, disk_state.assignment
    if arguments.terms is not None:
        terms = state.configuration.catalog[arguments.terms]
        size_bytes = assignment.size_bytes
        if arguments.size is not None:
            size_bytes = parse_size_of_disk("--size", arguments.size, terms)
        return sold_by_options(arguments, terms, size_bytes)
    check_alone(arguments)
    found = state.configuration.catalog.find(assignment.terms)
    terms_id = assignment.terms if found is None else found.id
    entry = recorded_context(state).entry(disk)
    provision = Provision() if entry is None else provision_of(entry)
    return Candidate(terms_id, assignment.size_bytes, provision, assignment.limits)


def _advice(
    observed: _Observed, disk_state: DiskState, present: Candidate, tolerated_share: float
) -> Advice:
    """Return what would have been enough for the load of a disk, and of its groups."""
    state, name = observed.state, disk_state.disk.name
    tolerance_ratio = state.settings.assessment.tolerance_ratio

    def needs_of(devices: Sequence[str]) -> Needs:
        served = total_served(observed.served[each] for each in devices)
        demand = demand_of(served, disk_state.assignment.limits)
        return Needs(demand, tolerated_share, tolerance_ratio)

    groups = [group for group in state.groups.values() if name in group.devices]
    of_type = [group.devices for group in groups if group.shared.of_type]
    on_machine = [
        _on_machine(state, group.devices, group.shared)
        for group in groups
        if not group.shared.of_type
    ]
    names = of_type[0] if of_type else (name,)
    return advice_of(state.configuration.catalog, present, names, needs_of, on_machine)


def _on_machine(state: State, devices: Sequence[str], shared: SharedLimits) -> GroupOnMachine:
    """Return a group of disks with the machine that is configured."""
    choices = tuple(
        choice
        for choice in state.configuration.machines
        if any(rule.name == shared.name for rule in choice.rules.groups)
    )
    table = read_table(choices[0].rules) if choices else ""
    return GroupOnMachine(devices, shared, choices, table)


def _share(text: str) -> float:
    """Parse a percentage. Raise ValueError if it is none."""
    try:
        share = float(text.removesuffix("%")) / _PERCENT
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"found '{text}'; expected a percentage from 0 to 100, such as 0.1")
    return share
