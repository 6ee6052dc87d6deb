"""From a kept scenario to what is said of it: no disk is needed for that."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from disksla.pipeline.window_records import WindowRecord
from lab.account import replayed
from lab.experiment import CONFIG, TICKS, Loaded, read_seen, read_truth, truth_file
from lab.judge import Facts, Findings, judge
from lab.limiter import RESOURCES
from lab.requirement import shortcomings
from lab.scenario import LabDisk, Scenario
from lab.truth import Window

_AGREEMENT = 0.01
"""Of the log with fio."""


class Verdict(msgspec.Struct, frozen=True):
    """How disksla did on one disk."""

    name: str
    findings: Findings
    problems: list[str]


def verdicts(name: str, scenario: Scenario, directory: Path) -> Iterator[Verdict]:
    """Judge every disk of a scenario that was kept in a directory."""
    rows = replayed(directory / TICKS, directory / CONFIG)
    for number, (disk, loaded) in enumerate(
        zip(scenario.disks, read_seen(directory), strict=True)
    ):
        own = [row for row in rows if row.device == loaded.device]
        log = truth_file(directory, number)
        truth = read_truth(log) if log.exists() else assumed(own, disk)
        facts = facts_of(disk, loaded.machine_iowait_s)
        findings = judge(truth, own, facts, disk.expect)
        problems = shortcomings(findings, disk.expect)
        if log.exists():
            problems += disagreements(truth, loaded)
        shown = name if len(scenario.disks) == 1 else f"{name} {number + 1}"
        yield Verdict(shown, findings, problems)


def assumed(rows: list[WindowRecord], disk: LabDisk) -> list[Window]:
    """Give the truth about a disk of the kernel's: held whenever loaded, or never."""
    is_held = disk.kind == "stacked"
    return [
        Window(
            row.monotonic_s - (row.window_s or 0.0),
            row.monotonic_s,
            row.reads or 0,
            row.writes or 0,
            0,
            0,
            row.inflight or 0,
            held=(row.inflight or 0) if is_held else 0,
            wait_s=0.0,
            holding_s=(row.window_s or 0.0) if is_held and row.inflight else 0.0,
        )
        for row in rows
        if row.window_s
    ]


def facts_of(disk: LabDisk, machine_iowait_s: float | None) -> Facts:
    """Give what the scenario and the machine say of the truth."""
    changed = (meter for change in disk.disk.changes for meter in change.meters or ())
    meters = [*disk.disk.meters, *changed]
    held_rate = float(disk.iops) if disk.kind == "stacked" and disk.iops else None
    is_bandwidth = disk.expect.limit == "bandwidth"
    for meter in meters:
        if (meter.limit == "bandwidth") == is_bandwidth:
            held_rate = meter.iops or meter.bandwidth
    return Facts(
        held_rate,
        is_bandwidth,
        any(not meter.window for meter in meters),
        {RESOURCES[meter.limit]: meter.credits for meter in meters if meter.credits is not None},
        machine_iowait_s,
    )


def disagreements(truth: list[Window], loaded: Loaded) -> list[str]:
    """Hold the log itself against fio, which counted the same bytes and felt the same waiting."""
    problems = []
    for phase in loaded.phases:
        if phase.transferred_bytes is None or phase.mean_latency_s is None:
            continue
        windows = [
            window
            for window in truth
            if phase.begun_s <= window.end_s and window.start_s <= phase.ended_s
        ]
        logged = [window.read_bytes + window.written_bytes for window in windows]
        least, most = sum(logged[1:-1]), sum(logged)  # others may have had part of the outermost
        if not least * (1 - _AGREEMENT) <= phase.transferred_bytes <= most * (1 + _AGREEMENT):
            problems.append(f"the log has {most} bytes, fio {phase.transferred_bytes}")
        requests = sum(window.reads + window.writes for window in windows)
        mean_wait_s = sum(window.wait_s for window in windows) / max(requests, 1)
        if mean_wait_s > phase.mean_latency_s * (1 + _AGREEMENT):
            problems.append(
                f"requests were held for {mean_wait_s * 1e3:.2f} ms by the log,"
                f" by fio they took {phase.mean_latency_s * 1e3:.2f} ms"
            )
    return problems
