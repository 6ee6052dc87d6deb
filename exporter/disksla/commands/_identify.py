"""`disksla sweep --identify`: find out the medium of a disk by its latencies."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from disksla.base.console import to_json
from disksla.base.errors import DiskslaError
from disksla.base.histogram import quantile_s
from disksla.base.schema import duration
from disksla.base.schema.yaml_file import read_named
from disksla.base.units import format_bandwidth, format_count, format_duration, format_size
from disksla.commands._context import HostContext, read_context
from disksla.commands._exclusive import exclusive_measurement
from disksla.commands._options import parse_option
from disksla.kernel.disks import Disk
from disksla.measure.benchmark import Evidence, IdentifiedMedium, identify, throughput
from disksla.measure.benchmark.identify import Claim
from disksla.measure.benchmark.identify_evidence import (
    MAX_BYTES_PER_SECOND,
    RequestStats,
    identify_jobs,
    request_stats,
)
from disksla.measure.benchmark.sweep_journal import LARGEST_BYTES
from disksla.measure.benchmark.sweep_matrix import evidence_of, read_csv
from disksla.measure.fio.runner import find_fio
from disksla.promise.catalogue import CUSTOM_TERMS
from disksla.tell.page import FactList, Heading, Line
from disksla.tell.printed_page import print_parts

_GRACE_S = 30.0
_RUNTIME = duration("100ms", "10s", "3s")
_NOT_SOLD = {CUSTOM_TERMS, "generic"}
_QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)


def identify_medium(arguments: argparse.Namespace) -> int:
    """Measure a disk or read a table, and print the medium. Return 1 if it is unknown, else 0."""
    if arguments.table is not None:
        name, evidence, claim = str(arguments.table), _read(arguments.table), None
    else:
        host = read_context(arguments)
        disk = host.find_block_device(arguments.device)
        name, assignment = disk.name, host.assignment(disk)
        is_sold = assignment.source != "none" and assignment.provider not in _NOT_SOLD
        sold_as = assignment.terms if is_sold else None
        claim = Claim(disk.name, disk.rotational, disk.model, sold_as)
        evidence = _measure(arguments, host, disk)
    finding = identify(evidence, claim)
    if arguments.json:
        print(to_json(_document(name, evidence, finding)))
    else:
        _print(name, evidence, finding)
    return 1 if finding.medium == "unknown" else 0


def _read(table: Path) -> Evidence:
    content = read_named(table, LARGEST_BYTES)
    try:
        return evidence_of(read_csv(content.decode()))
    except UnicodeDecodeError:
        raise DiskslaError(f"{table}: not UTF-8 text") from None
    except DiskslaError as error:
        raise DiskslaError(f"{table}: {error}") from error


def _measure(arguments: argparse.Namespace, host: HostContext, disk: Disk) -> Evidence:
    """Print what will be read, then read it."""
    runtime_s = parse_option("--runtime", arguments.runtime or "3s", _RUNTIME.parse)
    device = Path("/dev") / disk.name
    jobs = list(identify_jobs(str(device), disk.size_bytes, runtime_s))
    seconds = (len(jobs) + 1) * (runtime_s + 1)
    max_bytes = len(jobs) * runtime_s * MAX_BYTES_PER_SECOND + throughput.MAX_BYTES
    print(
        f"Reading {disk.name} for {format_duration(seconds)}, at most {format_size(max_bytes)};"
        " nothing is written.",
        file=sys.stderr,
    )
    fio = find_fio()
    with exclusive_measurement(arguments, host, disk):
        found: dict[str, Any] = {}
        for job in jobs:  # first, because fio can be stopped if the disk stalls
            found[job.name] = request_stats(job, fio.run(job, limit_s=runtime_s + _GRACE_S))
        return Evidence(
            buffered_bytes_per_second=throughput.buffered_bytes_per_second(
                device, disk.size_bytes, runtime_s
            ),
            **found,
        )


def _print(name: str, evidence: Evidence, finding: IdentifiedMedium) -> None:
    print_parts([Heading(f"{name}: {finding.title}", level=1)])
    print()
    print_parts(
        [
            *map(Line, (*finding.observations, finding.conclusion)),
            *(Line(f"Contradiction: {each}", "strong") for each in finding.contradictions),
            FactList([*_facts(evidence)]),
        ]
    )


def _facts(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Yield the measured numbers, in the terms of hdparm and ioping."""
    if evidence.buffered_bytes_per_second is not None:
        yield "buffered reads", format_bandwidth(evidence.buffered_bytes_per_second)
    for what, requests in _measurements(evidence):
        yield what, _requests_text(requests)


def _measurements(evidence: Evidence) -> Iterator[tuple[str, RequestStats]]:
    for what, requests in (
        ("random", evidence.random),
        ("random, near", evidence.near),
        ("sequential", evidence.sequential),
        ("streamed", evidence.streamed),
        ("random, deep", evidence.deep),
        ("written", evidence.written),
    ):
        if requests is not None:
            yield what, requests


def _requests_text(requests: RequestStats) -> str:
    text = (
        f"{format_size(requests.request_bytes)}, queue depth {requests.queue_depth}:"
        f" {format_count(requests.iops)} IOPS, mean {format_duration(requests.mean_s)}"
    )
    if requests.bins:
        low, median, high = (
            format_duration(quantile_s(requests.bins, share)) for share in (0.01, 0.5, 0.99)
        )
        text += f", p1/p50/p99 {low}, {median}, {high}"
    return text


def _document(name: str, evidence: Evidence, finding: IdentifiedMedium) -> dict[str, Any]:
    return {
        "device": name,
        "title": finding.title,
        **msgspec.structs.asdict(finding),
        "evidence": {
            "buffered_bytes_per_second": evidence.buffered_bytes_per_second,
            **{
                what.replace(", ", "_"): _requests_document(requests)
                for what, requests in _measurements(evidence)
            },
        },
    }


def _requests_document(requests: RequestStats) -> dict[str, Any]:
    return {
        "request_bytes": requests.request_bytes,
        "queue_depth": requests.queue_depth,
        "requests": requests.requests,
        "iops": requests.iops,
        "mean_seconds": requests.mean_s,
        "quantiles_seconds": {
            f"{share:g}": quantile_s(requests.bins, share) for share in _QUANTILES
        }
        if requests.bins
        else None,
    }
