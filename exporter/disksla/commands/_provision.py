"""Options for what is chosen beside type and size of a disk: provisioned values and options."""

import argparse
import math

from disksla.commands._options import parse_option, parse_optional
from disksla.limits import Provision
from disksla.units import parse_bandwidth_bytes_per_second


def add_provision(parser: argparse.ArgumentParser) -> None:
    """Add --iops, --bandwidth (AWS and Terraform say throughput) and --option."""
    parser.add_argument("--iops", metavar="N", help="provisioned IOPS")
    parser.add_argument(
        "--bandwidth", "--throughput", metavar="B", help="provisioned bandwidth, such as 250MiB/s"
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of an option of the type, such as tier=P30; may be repeated",
    )


def read_provision(arguments: argparse.Namespace) -> Provision:
    """Return the values in base units. Raise DiskslaError if one is invalid."""
    return Provision(
        parse_optional("--iops", arguments.iops, _iops),
        parse_optional("--bandwidth", arguments.bandwidth, _bandwidth),
        dict(parse_option("--option", each, _name_and_value) for each in arguments.option),
    )


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
