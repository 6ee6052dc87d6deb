"""`disksla verify --latency`: a probe of a disk now, under the same rules as the daemon's."""

import argparse
import shlex
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from disksla.base.console import SafeConsole, to_json
from disksla.base.errors import DiskslaError
from disksla.base.text import command_lines
from disksla.base.units import format_count, format_duration, format_size
from disksla.commands._context import prepare_sampler, read_context
from disksla.commands._options import roots_of
from disksla.measure.fio import FioJob, fio_arguments
from disksla.measure.fio.runner import Fio, find_fio
from disksla.measure.fio.scratch_file import SCRATCH_DIRECTORY
from disksla.measure.probes import ProbePlan, SnapshotPair, observation_s, plan_probe, skip_reasons
from disksla.measure.probes.probe_runner import (
    ProbeContext,
    file_directory,
    is_suspended,
    run_probe,
)
from disksla.promise.configuration import ProbeEntry
from disksla.state.pipeline import ProbeResult, Skip, disk_snapshot
from disksla.state.pipeline.probe_results import quantile_s
from disksla.tell.explanation import SHOWN_TEXT, describe_load
from disksla.tell.page import DataTable, FactList
from disksla.tell.printed_page import print_parts

_FIRST_TICKS = 2
"""Ticks until the state contains the disk."""
_SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def measure_latency(arguments: argparse.Namespace) -> int:
    """Run and print a probe. Return 0 if latencies were measured (or would be), 1 if not."""
    host = read_context(arguments)
    disk = host.find_block_device(arguments.device)
    if why := host.why_not_monitored(disk):
        raise DiskslaError(
            f"cannot probe {disk.name}: it is not monitored ({why}), so its load is unknown"
        )
    fio = find_fio()
    entry = next(
        (
            each
            for each in host.settings.probes
            if each.kind == arguments.kind and each.covers(disk.name)
        ),
        ProbeEntry(kind=arguments.kind),
    )
    observation = _observe(arguments, disk.name)
    now = observation.now or observation.before
    if now is None:
        raise DiskslaError(f"cannot probe {disk.name}: it was removed")
    plan = plan_probe(entry, disk.name, now.assignment.limits)
    skips = skip_reasons(plan, observation, time.time())
    context = ProbeContext(
        disk, host.disks, Path(host.settings.state.directory), roots_of(arguments)
    )
    console = SafeConsole(quiet=arguments.json)
    print_parts([FactList([*_facts(plan, observation)])], console)
    if skips:
        console.print()
        reasons = tuple(f"{skip.reason}: {skip.message}" for skip in skips)
        print_parts([FactList([("skipped", reasons)])], console)
    result: ProbeResult | None = None
    jobs: list[FioJob] = []

    def on_start(job: FioJob) -> None:
        jobs.append(job)
        console.print()
        console.print(command_lines((str(fio.path), *fio_arguments(job))), soft_wrap=True)

    if not arguments.dry_run and not skips:
        stop = threading.Event()  # never set: Ctrl-C raises KeyboardInterrupt
        result = run_probe(fio, plan, context, stop, on_start)
        _print_result(console, result)
    elif plan.rate_iops and (disk.mount_points or not entry.uses_file):
        target = Path("/dev") / plan.device
        if entry.uses_file:  # the scratch file has no name yet
            target = file_directory(context) / SCRATCH_DIRECTORY / "FILE"
        on_start(plan.job(str(target)))
    if arguments.json:
        print(to_json(_document(plan, fio, jobs, skips, result)))
    if result is None:
        return 1 if skips else 0
    return 0 if result.is_success else 1


def _observe(arguments: argparse.Namespace, device: str) -> SnapshotPair:
    sampler = prepare_sampler(arguments)
    interval_s = sampler.state.settings.sampling.interval_s
    sampler.run_for(_FIRST_TICKS * interval_s)
    before, started_s = disk_snapshot(sampler.state, device), time.monotonic()
    sampler.run_for(observation_s(interval_s))
    elapsed_s = time.monotonic() - started_s
    suspended = is_suspended(roots_of(arguments), device)
    return SnapshotPair(before, disk_snapshot(sampler.state, device), elapsed_s, suspended)


def _facts(plan: ProbePlan, observation: SnapshotPair) -> Iterator[tuple[str, str]]:
    """Yield the disk, its terms, the rate of the probe and the present load."""
    snapshot = observation.now or observation.before
    if snapshot is None:
        return
    yield "disk", f"{snapshot.disk.name}, {format_size(snapshot.disk.size_bytes)}"
    yield "terms", snapshot.assignment.title
    yield "probe", plan.describe()
    load = (
        ""
        if snapshot.present_load is None
        else f", load {describe_load(snapshot.present_load, 'the limit')}"
    )
    rate = snapshot.present.read_iops + snapshot.present.write_iops
    verdict = "not known" if snapshot.verdict is None else SHOWN_TEXT[snapshot.verdict].words
    yield "disk now", f"{verdict}, {format_count(rate)} IOPS{load}"


def _print_result(console: Console, result: ProbeResult) -> None:
    console.print()
    if not result.is_success:
        what = "skipped" if result.skipped else "failed"
        reason = result.skipped or result.failure
        print_parts([FactList([(what, f"{reason}: {result.message}")])], console)
        return
    columns = ("requests", "IOPS", *_SHARES)
    latencies = (quantile_s(result.bins, share) for share in _SHARES.values())
    row = (
        str(result.requests),
        "-" if result.achieved_iops is None else format_count(result.achieved_iops),
        *("-" if latency is None else format_duration(latency) for latency in latencies),
    )
    print_parts([DataTable(columns, [row], numbers=columns)], console)


def _document(
    plan: ProbePlan,
    fio: Fio,
    jobs: list[FioJob],
    skips: tuple[Skip, ...],
    result: ProbeResult | None,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "device": plan.device,
        "kind": plan.entry.kind,
        "command": shlex.join((str(fio.path), *fio_arguments(jobs[0]))) if jobs else None,
        "target_iops": plan.rate_iops,
        "promise_share": plan.limit_share,
        "skips": [{"reason": skip.reason, "words": skip.message} for skip in skips],
        "result": None,
    }
    if result is not None:
        document["result"] = {
            "success": result.is_success,
            "skipped": result.skipped,
            "failure": result.failure,
            "words": result.message,
            "duration_seconds": result.duration_s,
            "requests": result.requests,
            "bytes": result.transferred_bytes,
            "achieved_iops": result.achieved_iops,
            "latency_seconds": {
                name: quantile_s(result.bins, share) for name, share in _SHARES.items()
            },
        }
    return document
