"""`disksla probe`: measure the latency of a disk once, as gently as the daemon does."""

import argparse
import shlex
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from disksla.commands._console import SafeConsole, to_json
from disksla.commands._context import add_context_arguments, prepare_sampler, read_context
from disksla.commands._limits_text import facts_table
from disksla.commands._options import roots_of
from disksla.config import PROBE_KINDS, ProbeEntry, ProbeKind, Settings
from disksla.errors import DiskslaError
from disksla.fio import FioJob, fio_arguments
from disksla.fio.runner import Fio, find_fio
from disksla.fio.scratch_file import SCRATCH_DIRECTORY
from disksla.pipeline import ProbeResult, Skip, disk_snapshot
from disksla.pipeline.probe_results import quantile_s
from disksla.probes import Observation, ProbePlan, observation_s, plan_probe, skip_reasons
from disksla.probes.runner import ProbeContext, file_directory, is_suspended, run_probe
from disksla.units import format_count, format_duration, format_size

_SETTLING_TICKS = 2
"""After so many ticks a disk is known, and looking at it can begin."""
_SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEVICE, --kind, --dry-run, --json and where to look."""
    parser.add_argument(
        "device", metavar="DEVICE", help="vda, /dev/vda, or a name under /dev/disk/by-id"
    )
    parser.add_argument(
        "--kind",
        choices=PROBE_KINDS,
        default=PROBE_KINDS[0],
        help="what to measure (default: %(default)s); as the configuration has it, if it does",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="look at the disk and say what would be done, and do nothing",
    )
    parser.add_argument("--json", action="store_true", help="print one document, in base units")
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Probe, and print how it went: 0 if latencies were measured (or would be), 1 if not."""
    host = read_context(arguments)
    disk = host.find(arguments.device)
    if why := host.why_unwatched(disk):
        raise DiskslaError(
            f"{disk.name} is not watched ({why}), so nobody knows whether it is busy"
        )
    fio = find_fio()
    entry = entry_for(host.settings, disk.name, arguments.kind)
    sight = _look(arguments, disk.name)
    now = sight.now or sight.before
    if now is None:
        raise DiskslaError(f"{disk.name} went away")
    plan = plan_probe(entry, disk.name, now.assignment.limits)
    skips = skip_reasons(plan, sight, time.time())
    around = ProbeContext(
        disk, host.disks, Path(host.settings.state.directory), roots_of(arguments)
    )
    console = SafeConsole(quiet=arguments.json)
    console.print(facts_table(_facts(plan, sight)))
    _print_skips(console, skips)
    outcome: ProbeResult | None = None
    jobs: list[FioJob] = []

    def begun(job: FioJob) -> None:
        jobs.append(job)
        _print_command(console, fio, job)

    if not arguments.dry_run and not skips:
        stop = threading.Event()  # nobody sets it: Ctrl-C is what ends this
        outcome = run_probe(fio, plan, around, stop, begun)
        _print_outcome(console, outcome)
    elif plan.rate_iops and (disk.mount_points or not entry.uses_file):
        begun(plan.job(_would_be_target(plan, around)))
    if arguments.json:
        print(to_json(_document(plan, fio, jobs, skips, outcome)))
    if outcome is None:
        return 1 if skips else 0
    return 0 if outcome.is_success else 1


def _would_be_target(plan: ProbePlan, around: ProbeContext) -> str:
    """Give the target of a probe that is not run; the file is not made, so it has no name."""
    if plan.entry.uses_file:
        return str(file_directory(around) / SCRATCH_DIRECTORY / "FILE")
    return f"/dev/{plan.device}"


def entry_for(settings: Settings, device: str, kind: ProbeKind) -> ProbeEntry:
    """Give the first probe of this kind and disk that is configured, or one as by default."""
    return next(
        (entry for entry in settings.probes if entry.kind == kind and entry.covers(device)),
        ProbeEntry(kind=kind),
    )


def _look(arguments: argparse.Namespace, device: str) -> Observation:
    sampler = prepare_sampler(arguments)
    interval_s = sampler.state.settings.sampling.interval_s
    sampler.run_for(_SETTLING_TICKS * interval_s)
    before, begun_s = disk_snapshot(sampler.state, device), time.monotonic()
    sampler.run_for(observation_s(interval_s))
    elapsed_s = time.monotonic() - begun_s
    asleep = is_suspended(roots_of(arguments), device)
    return Observation(before, disk_snapshot(sampler.state, device), elapsed_s, asleep)


def _facts(plan: ProbePlan, sight: Observation) -> Iterator[tuple[str, str]]:
    """Say what is asked of the disk, what that is of the promise, and what the disk does now."""
    snapshot = sight.now or sight.before
    if snapshot is None:
        return
    yield "disk", f"{snapshot.disk.name}, {format_size(snapshot.disk.size_bytes)}"
    yield "terms", snapshot.assignment.terms
    yield "probe", plan.in_words()
    load = (
        ""
        if snapshot.present_load is None
        else f", {snapshot.present_load:.0%} of the promise in use"
    )
    rate = snapshot.present.read_iops + snapshot.present.write_iops
    yield "disk now", f"{snapshot.verdict or 'not judged'}, {format_count(rate)} IOPS{load}"


def _print_skips(console: Console, skips: tuple[Skip, ...]) -> None:
    if skips:
        console.print()
        console.print(facts_table(("skipped", f"{skip.reason}: {skip.message}") for skip in skips))


def _print_command(console: Console, fio: Fio, job: FioJob) -> None:
    console.print()
    console.print(_command(fio, job), soft_wrap=True)


def _command(fio: Fio, job: FioJob) -> str:
    return shlex.join((str(fio.path), *fio_arguments(job)))


def _print_outcome(console: Console, outcome: ProbeResult) -> None:
    console.print()
    if not outcome.is_success:
        what = "skipped" if outcome.skipped else "failed"
        reason = outcome.skipped or outcome.failure
        console.print(facts_table([(what, f"{reason}: {outcome.message}")]))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("requests", "IOPS", *_SHARES):
        table.add_column(heading, justify="right", no_wrap=True)
    latencies = (quantile_s(outcome.bins, share) for share in _SHARES.values())
    table.add_row(
        str(outcome.requests),
        "-" if outcome.achieved_iops is None else format_count(outcome.achieved_iops),
        *("-" if latency is None else format_duration(latency) for latency in latencies),
    )
    console.print(table)


def _document(
    plan: ProbePlan,
    fio: Fio,
    jobs: list[FioJob],
    skips: tuple[Skip, ...],
    outcome: ProbeResult | None,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "device": plan.device,
        "kind": plan.entry.kind,
        "command": _command(fio, jobs[0]) if jobs else None,
        "target_iops": plan.rate_iops,
        "promise_share": plan.limit_share,
        "skips": [{"reason": skip.reason, "words": skip.message} for skip in skips],
        "result": None,
    }
    if outcome is not None:
        document["result"] = {
            "success": outcome.is_success,
            "skipped": outcome.skipped,
            "failure": outcome.failure,
            "words": outcome.message,
            "duration_seconds": outcome.duration_s,
            "requests": outcome.requests,
            "bytes": outcome.transferred_bytes,
            "achieved_iops": outcome.achieved_iops,
            "latency_seconds": {
                name: quantile_s(outcome.bins, share) for name, share in _SHARES.items()
            },
        }
    return document
