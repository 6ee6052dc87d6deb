"""Options for what a disk was sold as: provisioned values and options beside type and size."""

import argparse
import math

from disksla.advice import Candidate
from disksla.commands._options import parse_option, parse_optional
from disksla.errors import DiskslaError
from disksla.limits import Provision, Terms, derive_limits
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
