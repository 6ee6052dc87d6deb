"""Verdict on a scenario from the files of its run; needs no virtual machine."""

import gzip
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from disksla.state.pipeline import Tick
from disksla.state.pipeline.tick import decode_tick
from disksla.state.pipeline.window_records import WindowRecord
from lab.experiment import CONFIG, TICKS, without_exact_counts
from lab.judge import Facts, judge
from lab.limiter import RESOURCES
from lab.replay import group_records, replay_records
from lab.requirements import CEILING_TOLERANCE, time_problems, unmet_requirements
from lab.scenario import Expectation
from lab.truth import WINDOW_S, Window
from lab.verdict import Verdict, unthrottled
from vm.experiment import RESULTS, TRACE, Results, as_it_ran, devices_of
from vm.guest import MACHINE_PREFIX, DiskMetrics, disk_metrics
from vm.limits import Change
from vm.scenario import Disk, SharedLimits
from vm.truth import (
    Clocks,
    Trace,
    by_disk,
    counts_of_guest,
    counts_of_host,
    matched_clocks,
    matches,
    read_trace,
    truth_of,
)

CLOCK_TOLERANCE_S = 0.02


def daemon_problems(
    daemon: DiskMetrics,
    before: DiskMetrics,
    truth: Sequence[Window],
    facts: Facts,
    expected: Expectation,
    loaded_s: float,
) -> Iterable[str]:
    """Yield a message for each requirement that the metrics of the daemon do not meet.

    `before` are those when the truth begins.
    """
    truth_s = sum(window.throttled_s for window in truth)
    reported_s = daemon.throttled_s - before.throttled_s
    yield from time_problems(expected.throttled, reported_s, truth_s, loaded_s, "/metrics: ")
    for name, seconds in daemon.limits.items():
        other_s = seconds - before.limits.get(name, 0.0)
        if name in expected.never and other_s:
            yield f"/metrics: {name} for {other_s:.1f} s, expected never"
        if expected.limit not in {None, name} and other_s > 2 * WINDOW_S:
            yield f"/metrics: {name} for {other_s:.1f} s, expected {expected.limit}"
    limit, is_bandwidth = facts.limit_rate or float("inf"), facts.is_bandwidth
    ceiling = daemon.ceiling_bytes_per_second if is_bandwidth else daemon.ceiling_iops
    if expected.ceiling and (ceiling is None or abs(ceiling / limit - 1) > CEILING_TOLERANCE):
        yield f"/metrics: ceiling {ceiling}, expected {limit:g}"


def credit_problems(daemon: DiskMetrics, truth: Sequence[Window]) -> Iterable[str]:
    """Yield a message if the bounds of the daemon do not contain the level of any window."""
    for resource in truth[0].credits if truth else ():
        lower, upper = daemon.credits.get(resource, (float("inf"), float("-inf")))
        levels = [window.credits[resource] for window in truth]
        if lower > max(levels) or upper < min(levels):
            yield (
                f"/metrics: credits from {lower:g} to {upper:g},"
                f" truth {min(levels):.0f} to {max(levels):.0f}"
            )


def clock_problems(error_s: float) -> Iterable[str]:
    """Yield a message if the clocks cannot be matched well enough to compare windows."""
    if error_s > CLOCK_TOLERANCE_S:
        yield f"clocks: error {error_s * 1e3:.0f} ms, allowed {CLOCK_TOLERANCE_S * 1e3:.0f} ms"


class _Run(NamedTuple):
    """The files of a run, read, and the clocks that they give."""

    results: Results
    ticks: list[Tick]
    trace: Trace
    """Of all disks."""
    traces: list[Trace]
    """Of each disk."""
    clocks: Clocks

    def truth(self, trace: Trace, changes: Sequence[Change]) -> list[Window]:
        """Return the windows since the limits were set."""
        first_s = self.clocks.to_guest(changes[0].at_s)
        last_s = self.ticks[-1].clocks.monotonic_s
        return truth_of(trace, changes, self.clocks, first_s, last_s)


def verdicts_on(name: str, directory: Path) -> list[Verdict]:
    """Return the verdicts on a scenario whose files are in a directory.

    There is one for each disk, and one for all together if the scenario has limits of the machine.
    Raise ValueError if the clocks of its files cannot be matched.
    """
    scenario = as_it_ran(name, directory)
    serials = scenario.serials(name)
    ticks = read_recording(directory)
    devices = [devices_of(ticks, serial) for serial in serials]
    run = _read_run(directory, ticks, devices)
    with _without_exact_counts(directory / TICKS) as recording:
        rows = replay_records(recording, directory / CONFIG)
        groups = group_records(recording, directory / CONFIG) if scenario.machine else []
    exact = replay_records(directory / TICKS, directory / CONFIG)
    verdicts = []
    for number, disk in enumerate(scenario.disks):
        shown = name if len(serials) == 1 else f"{name} {number + 1}"
        own = [[row for row in each if row.device in devices[number]] for each in (rows, exact)]
        is_shared = scenario.machine is not None and scenario.machine.throttle is not None
        verdict = _verdict_on_disk(run, number, disk, *own, is_shared=is_shared)
        problems = [
            *verdict.problems,
            *_count_problems(ticks, devices[number], run.traces[number]),
        ]
        verdicts.append(msgspec.structs.replace(verdict, name=shown, problems=problems))
    if scenario.machine is not None:
        verdict = _verdict_on_machine(run, scenario.machine, groups)
        verdicts.append(msgspec.structs.replace(verdict, name=f"{name} all"))
    return verdicts


def _read_run(directory: Path, ticks: list[Tick], devices: Sequence[Sequence[str]]) -> _Run:
    lines = gzip.decompress((directory / TRACE).read_bytes()).decode().splitlines()
    results = msgspec.json.decode((directory / RESULTS).read_bytes(), type=Results)
    traces = [read_trace(own) for own in by_disk(lines, len(devices))]
    clocks = clocks_of(ticks, devices, traces, results)
    return _Run(results, ticks, read_trace(lines), traces, clocks)


@contextmanager
def _without_exact_counts(recording: Path) -> Iterator[Path]:
    """Create a recording as a daemon sees it that cannot count data writes exactly."""
    with tempfile.TemporaryDirectory(prefix="disksla-vm-") as directory:
        file = Path(directory) / "ticks.jsonl"
        file.write_bytes(without_exact_counts(gzip.decompress(recording.read_bytes())))
        yield file


def _verdict_on_disk(
    run: _Run,
    number: int,
    disk: Disk,
    rows: Sequence[WindowRecord],
    exact: Sequence[WindowRecord],
    *,
    is_shared: bool,
) -> Verdict:
    """Return the verdict on one disk, without its name.

    It is that of a daemon without the helper that opens events. `exact` is what one finds that
    counts data writes exactly, and must meet the same requirements.
    """
    trace, results = run.traces[number], run.results.disks[number]
    truth = run.truth(trace, results.changes)
    facts = Facts(limiter_window_s=0.0)
    if is_shared:
        truth = [msgspec.structs.replace(window, credits={}) for window in truth]
    else:
        facts = _facts(trace, results.changes)
        if any(phase.pgbench for phase in disk.load):  # it was copied before the limit was set
            facts = msgspec.structs.replace(facts, is_changed=True)
    findings = judge(truth, rows, facts, disk.expect)
    daemon = disk_metrics(results.after.metrics)
    problems = [
        *unmet_requirements(findings, disk.expect),
        *(
            f"counted exactly: {problem}"
            for problem in unmet_requirements(judge(truth, exact, facts, disk.expect), disk.expect)
        ),
        *_daemon_problems(daemon, run, number, truth, facts, disk.expect, findings.loaded_s),
        *clock_problems(run.clocks.error_s),
        *_terms_problems(disk, daemon.limit_iops),
    ]
    return Verdict("", findings, problems, run.results.steal_s)


def _verdict_on_machine(run: _Run, shared: SharedLimits, rows: Sequence[WindowRecord]) -> Verdict:
    """Return the verdict on all disks together, without its name."""
    results = run.results.machine
    if results is None:
        raise ValueError("found no metrics of the machine; expected them in the results")
    truth = run.truth(run.trace, run.results.changes)
    if shared.throttle is None:
        truth = unthrottled(truth)
    facts = Facts(limiter_window_s=0.0)
    findings = judge(truth, rows, facts, shared.expect)
    after = disk_metrics(results.after.metrics, MACHINE_PREFIX)
    before = disk_metrics(results.before.metrics, MACHINE_PREFIX)
    problems = [
        *unmet_requirements(findings, shared.expect),
        *daemon_problems(after, before, truth, facts, shared.expect, findings.loaded_s),
    ]
    return Verdict("", findings, problems, run.results.steal_s)


def _facts(trace: Trace, changes: Sequence[Change]) -> Facts:
    """Return the facts about the limiter of one disk."""
    last = changes[-1]
    rate, is_bandwidth = limit_rate(trace, last)
    capacity = last.limits.capacity
    resource = RESOURCES["bandwidth" if is_bandwidth else "iops"]
    capacities = {resource: capacity} if capacity else {}
    return Facts(rate, is_bandwidth, 0.0, capacities, len(changes) > 1)


def read_recording(directory: Path) -> list[Tick]:
    """Return the ticks of a recording."""
    _, *lines = gzip.decompress((directory / TICKS).read_bytes()).splitlines()
    return [decode_tick(line, number) for number, line in enumerate(lines, start=2)]


def clocks_of(
    ticks: Sequence[Tick],
    devices: Sequence[Sequence[str]],
    traces: Sequence[Trace],
    results: Results,
) -> Clocks:
    """Return the clocks that all counts of bytes give, of each disk with its names."""
    found = [
        match
        for names, trace in zip(devices, traces, strict=True)
        for of_host, of_guest in zip(
            counts_of_host(trace, results.pauses), counts_of_guest(ticks, names), strict=True
        )
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
    run: _Run,
    number: int,
    truth: Sequence[Window],
    facts: Facts,
    expected: Expectation,
    loaded_s: float,
) -> list[str]:
    """Compare the daemon with the truth since the disk was plugged in: its counters begin then."""
    results, plugged_s = run.results.disks[number], run.traces[number].plugged_s
    since_s = run.clocks.to_guest(plugged_s[-1])
    before = disk_metrics(results.before.metrics if len(plugged_s) == 1 else "")
    scraped = [
        window
        for window in truth
        if results.after.begun_s - 3 * WINDOW_S <= window.end_s <= results.after.ended_s + WINDOW_S
    ]
    own = [window for window in truth if window.start_s >= since_s]
    return [
        *daemon_problems(daemon, before, own, facts, expected, loaded_s),
        *(credit_problems(daemon, scraped) if expected.credits else ()),
    ]


def _terms_problems(disk: Disk, limit_iops: float | None) -> list[str]:
    """Return a message if the daemon compares the disk with other terms."""
    sold = disk.terms.get("iops") if isinstance(disk.terms, dict) else None
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
