"""Verdict on a scenario from the files of its run; needs no virtual machine."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from disksla.pipeline import Tick
from disksla.pipeline.recording import RecordingHeader, decode_header, decode_tick
from lab.experiment import CONFIG, TICKS
from lab.judge import Facts, judge
from lab.limiter import RESOURCES
from lab.replay import replay_records
from lab.scenario import Expectation
from lab.truth import WINDOW_S, Window
from lab.verdict import Verdict
from vm.clocks import Clocks, counts_of_guest, counts_of_host, matched_clocks, matches
from vm.daemon import DiskMetrics, disk_metrics
from vm.experiment import RESULTS, TRACE, Results, as_it_ran, devices_of
from vm.limits import Change
from vm.requirements import (
    clock_problems,
    credit_problems,
    daemon_problems,
    unmet_requirements,
)
from vm.scenario import Scenario
from vm.trace import Trace, read_trace
from vm.truth import truth_of


class Judged(NamedTuple):
    """A scenario that was run, and its verdict."""

    scenario: Scenario
    results: Results
    verdict: Verdict
    kernel: str
    """Of the virtual machine."""
    clock_error_s: float


def verdict_on(name: str, directory: Path) -> Judged:
    """Return the verdict on a scenario whose files are in a directory.

    Raise ValueError if the clocks of its files cannot be matched.
    """
    header, ticks = read_recording(directory)
    trace = read_trace(gzip.decompress((directory / TRACE).read_bytes()).decode().splitlines())
    results = msgspec.json.decode((directory / RESULTS).read_bytes(), type=Results)
    scenario = as_it_ran(name, directory)
    devices = devices_of(ticks, name)
    clocks = clocks_of(ticks, devices, trace, results)
    first_s = clocks.to_guest(results.changes[0].at_s)
    last_s = ticks[-1].clocks.monotonic_s
    truth = truth_of(trace, results.changes, clocks, first_s, last_s)
    rows = replay_records(directory / TICKS, directory / CONFIG)
    rate, is_bandwidth = limit_rate(trace, results.changes[-1])
    capacity = results.changes[-1].limits.capacity
    resource = RESOURCES["bandwidth" if is_bandwidth else "iops"]
    facts = Facts(
        rate, is_bandwidth, is_smooth=True, capacities={resource: capacity} if capacity else {}
    )
    findings = judge(truth, [row for row in rows if row.device in devices], facts, scenario.expect)
    daemon = disk_metrics(results.after.metrics)
    problems = [
        *unmet_requirements(findings, scenario.expect),
        *_daemon_problems(daemon, results, trace, clocks, truth, facts, scenario.expect),
        *clock_problems(clocks.error_s),
        *_terms_problems(scenario, daemon.limit_iops),
        *_count_problems(ticks, devices, trace),
    ]
    verdict = Verdict(name, findings, problems, steal_s=results.steal_s)
    return Judged(scenario, results, verdict, header.kernel, clocks.error_s)


def read_recording(directory: Path) -> tuple[RecordingHeader, list[Tick]]:
    """Return the header and the ticks of a recording."""
    first, *lines = gzip.decompress((directory / TICKS).read_bytes()).splitlines()
    ticks = [decode_tick(line, number) for number, line in enumerate(lines, start=2)]
    return decode_header(first), ticks


def clocks_of(
    ticks: Sequence[Tick], devices: Sequence[str], trace: Trace, results: Results
) -> Clocks:
    """Return the clocks that all counts of bytes give."""
    host = counts_of_host(trace, results.pauses)
    guest = counts_of_guest(ticks, devices)
    found = [
        match
        for of_host, of_guest in zip(host, guest, strict=True)
        for match in matches(of_host, of_guest)
    ]
    return matched_clocks(found, results.pauses)


def limit_rate(trace: Trace, last: Change) -> tuple[float, bool]:
    """Return the last limit in requests or bytes per second, and whether it is in bytes.

    QEMU may count a large request as several, so that fewer are served.
    """
    sizes = [
        admission.size_bytes for admission in trace.admissions if admission.arrived_s > last.at_s
    ]
    limits = last.limits
    if limits.is_bandwidth or not sizes:
        return limits.rate, limits.is_bandwidth
    return limits.rate * len(sizes) / sum(map(limits.cost, sizes)), False


def _daemon_problems(
    daemon: DiskMetrics,
    results: Results,
    trace: Trace,
    clocks: Clocks,
    truth: Sequence[Window],
    facts: Facts,
    expected: Expectation,
) -> list[str]:
    """Compare the daemon with the truth since the disk was plugged in: its counters begin then."""
    since_s = clocks.to_guest(trace.plugged_s[-1])
    is_first = len(trace.plugged_s) == 1
    before_s = disk_metrics(results.before.metrics).throttled_s if is_first else 0.0
    scraped = [
        window
        for window in truth
        if results.after.begun_s - 3 * WINDOW_S <= window.end_s <= results.after.ended_s + WINDOW_S
    ]
    own = [window for window in truth if window.start_s >= since_s]
    return [
        *daemon_problems(daemon, before_s, own, facts, expected),
        *credit_problems(daemon, scraped),
    ]


def _terms_problems(scenario: Scenario, limit_iops: float | None) -> list[str]:
    """Return a message if the daemon compares the disk with other terms."""
    sold = scenario.terms.get("iops") if isinstance(scenario.terms, dict) else None
    return [] if limit_iops == sold else [f"/metrics: limit {limit_iops}, expected {sold}"]


def _count_problems(ticks: Sequence[Tick], devices: Sequence[str], trace: Trace) -> list[str]:
    """Return a message if the guest has counted other bytes than QEMU.

    After the last tick, QEMU may have served more.
    """
    guest = counts_of_guest(ticks, devices)[-1][-1].total_bytes
    host = counts_of_host(trace, ())[-1]
    if guest in {count.total_bytes for count in host}:
        return []
    return [f"bytes: the guest has {guest}, the trace {host[-1].total_bytes if host else 0}"]
