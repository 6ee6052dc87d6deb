"""Verdict on a scenario from the files of its run; needs no disk."""

import gzip
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from disksla.pipeline.window_records import WindowRecord
from disksla.procfs import parse_line, to_counters
from lab.experiment import (
    CONFIG,
    TICKS,
    DiskResult,
    machine_truth_file,
    read_results,
    read_truth,
    truth_file,
)
from lab.judge import Facts, Findings, judge
from lab.limiter import RESOURCES
from lab.load import PhaseResult
from lab.model import Meter
from lab.replay import group_records, replay_records
from lab.requirements import is_saturated, unmet_requirements
from lab.scenario import LabDisk, Machine, Scenario
from lab.truth import Window

_AGREEMENT = 0.01
"""Difference between the log and fio that is allowed."""


class Verdict(msgspec.Struct, frozen=True):
    """The result of one disk of a scenario."""

    name: str
    findings: Findings
    problems: list[str]
    flush_share: float | None = None
    """Flushes, as a share of the writes that the kernel counted."""
    steal_s: float = 0.0
    """Time in which the hypervisor ran something else on the CPUs of this machine."""
    is_open: bool = False
    """Samples cannot tell how long the disk was throttled."""
    is_slow: bool = False
    """The disk of the lab was too slow for the limit to matter."""


def verdicts(name: str, scenario: Scenario, directory: Path) -> Iterator[Verdict]:
    """Yield the verdict on each disk of a scenario whose files are in a directory."""
    rows = replay_records(directory / TICKS, directory / CONFIG)
    for number, (disk, result) in enumerate(
        zip(scenario.disks, read_results(directory), strict=True)
    ):
        if not disk.is_monitored:
            continue
        own = [row for row in rows if row.device == result.device]
        log = truth_file(directory, number)
        truth = read_truth(log) if log.exists() else assumed_truth(own, disk)
        facts = facts_of(disk, scenario.machine, result.machine_iowait_s)
        if log.exists():
            slower_s = slower_before_s(truth, result.phases)
            facts = msgspec.structs.replace(
                facts, slower_before_s=slower_s, unlearned_s=unlearned_s(truth, result.phases)
            )
        findings = judge(truth, own, facts, disk.expect)
        is_slow = disk.expect.saturated and not is_saturated(findings)
        problems = [] if is_slow else unmet_requirements(findings, disk.expect)
        if log.exists():
            problems += disagreements_with_fio(truth, result)
        shown = name if len(scenario.disks) == 1 else f"{name} {number + 1}"
        flushes = flush_share(directory / TICKS, result.device)
        yield Verdict(
            shown,
            findings,
            problems,
            flushes,
            result.machine_steal_s,
            disk.expect.is_open,
            is_slow,
        )
    if scenario.machine is not None:
        yield machine_verdict(name, scenario.machine, directory)


def machine_verdict(name: str, machine: Machine, directory: Path) -> Verdict:
    """Return the verdict on all disks of a scenario together."""
    log = machine_truth_file(directory)
    truth = read_truth(log) if log.exists() else unthrottled(read_truth(truth_file(directory, 0)))
    rows = group_records(directory / TICKS, directory / CONFIG)
    is_smooth = any(not meter.window for meter in machine.meters)
    facts = Facts(is_smooth=is_smooth, capacities=capacities(machine.meters))
    findings = judge(truth, rows, facts, machine.expect)
    [result, *_] = read_results(directory)
    problems = unmet_requirements(findings, machine.expect)
    return Verdict(f"{name} all", findings, problems, steal_s=result.machine_steal_s)


def unthrottled(truth: list[Window]) -> list[Window]:
    """Return the truth of a limiter that does not exist, for the time of another truth."""
    return [
        msgspec.structs.replace(window, waiting=0, wait_s=0.0, throttled_s=0.0, credits={})
        for window in truth
    ]


def assumed_truth(rows: list[WindowRecord], disk: LabDisk) -> list[Window]:
    """Return the truth about a disk limited by the kernel: throttled while loaded, or never."""
    is_throttled = disk.kind == "stacked"
    return [
        Window(
            row.monotonic_s - (row.window_s or 0.0),
            row.monotonic_s,
            row.reads or 0,
            row.writes or 0,
            0,
            0,
            row.inflight or 0,
            waiting=(row.inflight or 0) if is_throttled else 0,
            wait_s=0.0,
            throttled_s=(row.window_s or 0.0) if is_throttled and row.inflight else 0.0,
        )
        for row in rows
        if row.window_s
    ]


def capacities(meters: Iterable[Meter]) -> dict[str, float]:
    """Return the capacities of the credits of a limiter, by resource."""
    return {RESOURCES[meter.limit]: meter.credits for meter in meters if meter.credits is not None}


def facts_of(disk: LabDisk, machine: Machine | None, machine_iowait_s: float | None) -> Facts:
    """Return the facts that the scenario and the machine contain."""
    changed = [meter for change in disk.disk.changes for meter in change.meters or ()]
    meters = [*disk.disk.meters, *changed]
    limit_rate = float(disk.iops) if disk.kind == "stacked" and disk.iops else None
    is_bandwidth = disk.expect.limit == "bandwidth"
    for meter in meters:
        if (meter.limit == "bandwidth") == (disk.expect.limit == "bandwidth"):
            limit_rate, is_bandwidth = meter.iops or meter.bandwidth, meter.iops is None
    return Facts(
        limit_rate,
        is_bandwidth,
        any(not meter.window for meter in (*meters, *(machine.meters if machine else ()))),
        capacities(meters),
        machine_iowait_s,
        meters[-1].window if meters else None,
        bool(changed),
    )


def slower_before_s(truth: Sequence[Window], phases: Sequence[PhaseResult]) -> float:
    """Return by how much longer requests would take at the service time of a phase before.

    The sum over all requests, in I/O-seconds. The service time is the latency by fio less the
    waiting in the log.
    """
    shortest_s, slower_s = math.inf, 0.0
    for requests, latency_s, waited_s in latencies(truth, phases):
        service_s = latency_s - waited_s
        if shortest_s < math.inf:
            slower_s += requests * max(0.0, shortest_s - service_s)
        shortest_s = min(shortest_s, service_s)
    return slower_s


def unlearned_s(truth: Sequence[Window], phases: Sequence[PhaseResult]) -> float:
    """Return the I/O-seconds that requests of the first phase needed of the disk.

    No lighter load before shows how long that is. If they mostly did not wait, they show it.
    """
    requests, latency_s, waited_s = next(latencies(truth, phases), (0, 0.0, 0.0))
    return requests * max(0.0, latency_s - waited_s) if waited_s > latency_s / 2 else 0.0


def latencies(
    truth: Sequence[Window], phases: Sequence[PhaseResult]
) -> Iterator[tuple[int, float, float]]:
    """Yield the requests of each phase, their mean latency by fio, and their mean wait."""
    for phase in phases:
        own = [
            window
            for window in truth
            if phase.begun_s <= window.start_s and window.end_s <= phase.ended_s
        ]
        requests = sum(window.reads + window.writes for window in own)
        if phase.mean_latency_s is not None and requests:
            yield requests, phase.mean_latency_s, sum(each.wait_s for each in own) / requests


def flush_share(ticks: Path, device: str) -> float | None:
    """Return flushes as a share of the writes that the kernel counted; None without writes."""
    lines = [
        line
        for record in gzip.decompress(ticks.read_bytes()).splitlines()[1:]
        for line in (msgspec.json.decode(record).get("diskstats") or "").splitlines()
        if line.split()[2] == device
    ]
    first, last = (to_counters(parse_line(line).reading) for line in (lines[0], lines[-1]))
    writes = (last.writes or 0) - (first.writes or 0)
    flushes = (last.flushes or 0) - (first.flushes or 0)
    return flushes / writes if writes else None


def disagreements_with_fio(truth: list[Window], result: DiskResult) -> list[str]:
    """Compare the log with fio, which counted the same bytes and measured the same waiting."""
    problems = []
    for phase in result.phases:
        if phase.transferred_bytes is None or phase.mean_latency_s is None:
            continue
        windows = [
            window
            for window in truth
            if phase.begun_s <= window.end_s and window.start_s <= phase.ended_s
        ]
        logged = [window.read_bytes + window.written_bytes for window in windows]
        # The first and the last window may contain I/O of other phases.
        least, most = sum(logged[1:-1]), sum(logged)
        if not least * (1 - _AGREEMENT) <= phase.transferred_bytes <= most * (1 + _AGREEMENT):
            problems.append(f"bytes: the log has {most}, fio has {phase.transferred_bytes}")
        requests = sum(window.reads + window.writes for window in windows)
        mean_wait_s = sum(window.wait_s for window in windows) / max(requests, 1)
        if mean_wait_s > phase.mean_latency_s * (1 + _AGREEMENT):
            problems.append(
                f"mean wait in the log is {mean_wait_s * 1e3:.2f} ms,"
                f" mean latency of fio {phase.mean_latency_s * 1e3:.2f} ms"
            )
    return problems
