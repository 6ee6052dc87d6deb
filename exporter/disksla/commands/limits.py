"""`disksla limits`: work out what terms promise for a size."""

import argparse
import math
from typing import Any

import msgspec

from disksla.commands._console import to_json
from disksla.commands._limits_text import LimitsQuery, Mix, burst_document, print_limits
from disksla.commands._options import parse_option, parse_optional
from disksla.limits import EffectiveIops, Limits, Provision, Terms, derive_limits, effective_iops
from disksla.limits.catalog import load_catalog
from disksla.units import KIB, parse_bandwidth_bytes_per_second, parse_size_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add TERMS, SIZE, and the options of the calculator."""
    parser.add_argument("terms", metavar="TERMS", help="id in the catalogue, as vk.ceph-ssd")
    parser.add_argument("size", metavar="SIZE", help="size of the disk, as 500GiB")
    for option, metavar, what in (
        ("--iops", "N", "IOPS chosen (provisioned types only)"),
        ("--bandwidth", "B", "bandwidth chosen, as 250MiB/s (provisioned types only)"),
        ("--request-size", "B", "add the IOPS that requests of this size can have"),
        ("--write-share", "A", "share of writes among them, from 0 to 1 (default: 0)"),
    ):
        parser.add_argument(option, metavar=metavar, help=what)
    parser.add_argument("--json", action="store_true", help="print a JSON object, in base units")


def run(arguments: argparse.Namespace) -> int:
    """Print the limits of a disk."""
    terms = load_catalog()[arguments.terms]
    asked = _read(arguments, terms)
    limits = derive_limits(terms, asked.size_bytes, asked.provision)
    band = effective_iops(limits, *asked.mix, terms.promised_shares) if asked.mix else None
    if arguments.json:
        print(to_json(_document(limits, band, with_band=asked.mix is not None)))
    else:
        print_limits(terms, limits, asked, band)
    return 0


def _read(arguments: argparse.Namespace, terms: Terms) -> LimitsQuery:
    """Take the arguments for what they mean, or refuse them."""
    bandwidth = parse_optional("--bandwidth", arguments.bandwidth, _bandwidth)
    return LimitsQuery(
        arguments.size,
        parse_option("SIZE", arguments.size, _size),
        Provision(parse_optional("--iops", arguments.iops, _iops), bandwidth),
        _mix(arguments, terms),
    )


def _mix(arguments: argparse.Namespace, terms: Terms) -> Mix | None:
    """Give the load asked about; what was left out is as the promise has it, or reads only."""
    request_bytes = parse_optional("--request-size", arguments.request_size, _size)
    write_share = parse_optional("--write-share", arguments.write_share, _share)
    if request_bytes is None and write_share is None:
        return None
    usual = terms.iops_conditions.request_bytes if terms.iops_conditions else 4 * KIB
    return Mix(request_bytes or usual, write_share or 0.0)


def _size(text: str) -> int:
    size_bytes = parse_size_bytes(text)
    if not size_bytes:
        raise ValueError(f"expected a size above zero, such as 500GiB, not '{text}'")
    return size_bytes


def _bandwidth(text: str) -> float:
    bytes_per_second = parse_bandwidth_bytes_per_second(text)
    if not bytes_per_second:
        raise ValueError(f"expected a bandwidth above zero, such as 250MiB/s, not '{text}'")
    return bytes_per_second


def _iops(text: str) -> float:
    iops = _number(text)
    if not 0 < iops < math.inf:
        raise ValueError(f"expected a number above zero, such as 4000, not '{text}'")
    return iops


def _share(text: str) -> float:
    share = _number(text)
    if not 0 <= share <= 1:
        raise ValueError(f"expected a share from 0 (reads only) to 1, such as 0.3, not '{text}'")
    return share


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _document(limits: Limits, band: EffectiveIops | None, *, with_band: bool) -> dict[str, Any]:
    document = {
        **msgspec.structs.asdict(limits.rates),
        "latency_seconds": limits.latency_s,
        "latency_kind": limits.latency_kind,
        "burst": burst_document(limits.burst) if limits.burst else None,
    }
    if with_band:
        document["effective_iops"] = band and band.promise
        document["effective_iops_enforced"] = band and band.enforced
    return document
