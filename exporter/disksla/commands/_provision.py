"""Options for what a disk was sold as beside type and size, and for its machine."""

import argparse
import math
import re

from disksla.base.errors import DiskslaError
from disksla.base.units import parse_bandwidth_bytes_per_second
from disksla.commands._option_table import add_options
from disksla.commands._options import parse_option, parse_optional
from disksla.measure.advice import Candidate
from disksla.promise.catalogue import Provision, Terms, derive_limits
from disksla.promise.catalogue.machine import Machine, MachineRules
from disksla.promise.catalogue.machine_tables import read_machine


def add_provision(parser: argparse.ArgumentParser) -> None:
    """Add --iops, --bandwidth (AWS and Terraform say throughput) and --option."""
    add_options(
        parser,
        """
--iops N                       provisioned IOPS
--bandwidth, --throughput B    provisioned bandwidth, such as 250MiB/s
--option NAME=VALUE            value of an option of the type, such as tier=P30; may be repeated
""",
        {"--throughput": {"dest": "bandwidth"}, "--option": {"action": "append", "default": []}},
    )


def read_provision(arguments: argparse.Namespace) -> Provision:
    """Return the values in base units. Raise DiskslaError if one is invalid."""
    return Provision(
        parse_optional("--iops", arguments.iops, _iops),
        parse_optional("--bandwidth", arguments.bandwidth, _bandwidth),
        dict(parse_option("--option", each, _name_and_value) for each in arguments.option),
    )


def sold_by_options(arguments: argparse.Namespace, terms: Terms, size_bytes: int) -> Candidate:
    """Return the disk of the options. Raise DiskslaError if a value is invalid or missing."""
    chosen = read_provision(arguments)
    return Candidate(terms.id, size_bytes, chosen, derive_limits(terms, size_bytes, chosen))


def check_alone(arguments: argparse.Namespace) -> None:
    """Raise DiskslaError if a size or a provisioned value is there without --terms."""
    if arguments.size is not None or read_provision(arguments) != Provision():
        raise DiskslaError("found --size or provisioned values; expected them with --terms")


def _name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ValueError(f"found '{text}'; expected NAME=VALUE, such as tier=P30")
    return name, value


def _bandwidth(text: str) -> float:
    bytes_per_second = parse_bandwidth_bytes_per_second(text)
    if not bytes_per_second:
        raise ValueError(f"found '{text}'; expected a bandwidth above zero, such as 250MiB/s")
    return bytes_per_second


def _iops(text: str) -> float:
    try:
        iops = float(text)
    except ValueError:
        iops = math.nan
    if not 0 < iops < math.inf:
        raise ValueError(f"found '{text}'; expected a number above zero, such as 4000")
    return iops


def add_machine(parser: argparse.ArgumentParser, what_for: str) -> None:
    """Add --machine and --vcpus."""
    add_options(
        parser.add_mutually_exclusive_group(),
        f"""
--machine TYPE  machine type, such as m5.large, {what_for}
--vcpus N       vCPUs of the machine, where its limits follow from them (yandex)
""",
    )


def chosen_machine(
    arguments: argparse.Namespace, terms: Terms, rules: MachineRules | None
) -> Machine | None:
    """Return the machine of the options; None without one. Raise DiskslaError if it is unknown."""
    name, vcpus = arguments.machine, parse_optional("--vcpus", arguments.vcpus, _vcpus)
    if name is None and vcpus is None:
        return None
    if rules is None:
        raise DiskslaError(
            "found a machine; expected none: limits of the machines of"
            f" {terms.provider_name} are not known"
        )
    return read_machine(rules, name, vcpus)


def _vcpus(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,4}", text):
        raise ValueError(f"found '{text}'; expected a whole number above zero, such as 4")
    return int(text)
