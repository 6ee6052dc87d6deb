"""Verdict on a scenario from the files of its run; needs no disk."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from disksla.state.pipeline.window_records import WindowRecord
from lab.experiment import (
    CONFIG,
    TICKS,
    DiskResult,
    machine_truth_file,
    read_results,
    read_truth,
    recordings_in,
    truth_file,
)
from lab.judge import LONG_LOAD_S, Facts, Findings, judge
from lab.limiter import RESOURCES
from lab.long import disagreements, phase_problems, seen_truth
from lab.model import Meter
from lab.replay import group_records, replay_records
from lab.requirements import unmet_requirements
from lab.scenario import Expectation, LabDisk, Machine, Scenario
from lab.truth import Window

_AGREEMENT = 0.01
"""Difference between the log and fio that is allowed."""


class Verdict(msgspec.Struct, frozen=True):
    """The result of one disk of a scenario."""

    name: str
    findings: Findings
    problems: list[str]
    steal_s: float = 0.0
    """Time in which the hypervisor ran something else on the CPUs of this machine."""


def verdicts(name: str, scenario: Scenario, directory: Path) -> Iterator[Verdict]:
    """Yield the verdict on each disk of a scenario whose files are in a directory.

    Of several recordings, there is one for each.
    """
    if scenario.recorders is not None:
        yield from long_verdicts(name, scenario, directory)
        return
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
        expected = expectation_of(disk, facts)
        findings = judge(truth, own, facts, expected, long_load_begun_s(disk, result))
        problems = unmet_requirements(findings, expected)
        if log.exists():
            problems += disagreements_with_fio(truth, result)
        shown = name if len(scenario.disks) == 1 else f"{name} {number + 1}"
        yield Verdict(shown, findings, problems, result.machine_steal_s)
    if scenario.machine is not None:
        yield machine_verdict(name, scenario, scenario.machine, directory)


def long_load_begun_s(disk: LabDisk, result: DiskResult) -> list[float]:
    """Return when the load of a disk began, if it is long."""
    begun_s = [
        phase.begun_s
        for load, phase in zip(disk.load, result.phases, strict=True)
        if load.is_loaded
    ]
    is_long = begun_s and result.phases[-1].ended_s - begun_s[0] >= LONG_LOAD_S
    return begun_s[:1] if is_long else []


def machine_verdict(name: str, scenario: Scenario, machine: Machine, directory: Path) -> Verdict:
    """Return the verdict on all disks of a scenario together, from when the last load began."""
    log = machine_truth_file(directory)
    truth = read_truth(log) if log.exists() else unthrottled(read_truth(truth_file(directory, 0)))
    rows = group_records(directory / TICKS, directory / CONFIG)
    window_s = machine.meters[-1].window if machine.meters else None
    expected = machine.expect.at(window_s, has_terms=True)
    results = read_results(directory)
    begun_s = [
        long_load_begun_s(disk, result)
        for disk, result in zip(scenario.disks, results, strict=True)
    ]
    # Records of a group have no window of its limiter, so it is no fact to compare.
    facts = Facts(capacities=capacities(machine.meters))
    findings = judge(truth, rows, facts, expected, max(begun_s))
    problems = unmet_requirements(findings, expected)
    return Verdict(f"{name} all", findings, problems, results[0].machine_steal_s)


def long_verdicts(name: str, scenario: Scenario, directory: Path) -> Iterator[Verdict]:
    """Yield the verdict on each disk by each of several recorders (lab/long.py)."""
    recordings = [replay_records(ticks, directory / CONFIG) for ticks in recordings_in(directory)]
    for number, (disk, result) in enumerate(
        zip(scenario.disks, read_results(directory), strict=True)
    ):
        by_recorder = [[row for row in rows if row.device == result.device] for rows in recordings]
        log = read_truth(truth_file(directory, number))
        facts = facts_of(disk, scenario.machine, result.machine_iowait_s)
        expected = expectation_of(disk, facts)
        for recorder, rows in enumerate(by_recorder):
            truth = seen_truth(log, rows)
            if not truth:
                continue
            changes_s = [
                *(log[0].start_s + change.at for change in disk.disk.changes),
                *(phase.begun_s for phase in result.phases),
                result.phases[-1].ended_s,
            ]
            findings = judge(truth, rows, facts, expected, changes_s)
            problems = [
                *unmet_requirements(findings, expected),
                *phase_problems(log[0].start_s, truth, rows, changes_s, expected.throttled),
                *disagreements(rows, by_recorder[:recorder]),
            ]
            shown = f"{name} {number + 1} by {recorder + 1}"
            yield Verdict(shown, findings, problems, result.machine_steal_s)


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


def expectation_of(disk: LabDisk, facts: Facts) -> Expectation:
    """Return what is required at the limiter of a disk."""
    return disk.expect.at(facts.limiter_window_s, has_terms=disk.terms is not None)


def facts_of(disk: LabDisk, machine: Machine | None, machine_iowait_s: float | None) -> Facts:
    """Return the facts that the scenario and the machine contain."""
    limit = disk.expect.limit or ""
    changed = [meter for change in disk.disk.changes for meter in change.meters or ()]
    meters = [*disk.disk.meters, *changed]
    limit_rate = float(disk.iops) if disk.kind == "stacked" and disk.iops else None
    is_bandwidth = limit == "bandwidth"
    for meter in meters:
        if (meter.limit == "bandwidth") == (limit == "bandwidth"):
            limit_rate, is_bandwidth = meter.iops or meter.bandwidth, meter.iops is None
    is_of_machine = machine is not None and limit.startswith("machine_")
    limiters = machine.meters if machine is not None and is_of_machine else meters
    return Facts(
        limit_rate,
        is_bandwidth,
        limiters[-1].window if limiters else None,
        capacities(meters),
        any(change.meters is not None for change in disk.disk.changes),
        machine_iowait_s,
    )


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
