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

from disksla.commands.json_text import json_text
from disksla.commands.machine import add_machine_arguments, read_machine
from disksla.commands.options import paths_of
from disksla.commands.promise_words import facts_table
from disksla.commands.sampling import prepare_sampler
from disksla.commands.terminal import Terminal
from disksla.core.fio import FioJob, fio_arguments
from disksla.core.look import look_at
from disksla.core.probeoutcome import ProbeOutcome, Skip, quantile_s
from disksla.core.probeplan import ProbePlan, plan_probe
from disksla.core.probeskip import Sight, look_for_s, why_skip
from disksla.core.refusal import Refusal
from disksla.core.settings import PROBE_KINDS, ProbeEntry, ProbeKind, Settings
from disksla.core.units import format_count, format_duration, format_size
from disksla.runtime.fio import Fio, find_fio
from disksla.runtime.probing import Surroundings, file_directory, is_asleep, run_probe
from disksla.runtime.testfile import OUR_DIRECTORY

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
    add_machine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Probe, and print how it went: 0 if latencies were measured (or would be), 1 if not."""
    machine = read_machine(arguments)
    disk = machine.find(arguments.device)
    if why := machine.why_unwatched(disk):
        raise Refusal(f"{disk.name} is not watched ({why}), so nobody knows whether it is busy")
    fio = find_fio()
    entry = entry_for(machine.settings, disk.name, arguments.kind)
    sight = _look(arguments, disk.name)
    now = sight.now or sight.before
    if now is None:
        raise Refusal(f"{disk.name} went away")
    plan = plan_probe(entry, disk.name, now.assignment.limits)
    skips = why_skip(plan, sight, time.time())
    around = Surroundings(
        disk, machine.disks, Path(machine.settings.state.directory), paths_of(arguments)
    )
    console = Terminal(quiet=arguments.json)
    console.print(facts_table(_facts(plan, sight)))
    _print_skips(console, skips)
    outcome: ProbeOutcome | None = None
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
        print(json_text(_document(plan, fio, jobs, skips, outcome)))
    if outcome is None:
        return 1 if skips else 0
    return 0 if outcome.is_success else 1


def _would_be_target(plan: ProbePlan, around: Surroundings) -> str:
    """Give the target of a probe that is not run; the file is not made, so it has no name."""
    if plan.entry.uses_file:
        return str(file_directory(around) / OUR_DIRECTORY / "FILE")
    return f"/dev/{plan.device}"


def entry_for(settings: Settings, device: str, kind: ProbeKind) -> ProbeEntry:
    """Give the first probe of this kind and disk that is configured, or one as by default."""
    return next(
        (entry for entry in settings.probes if entry.kind == kind and entry.covers(device)),
        ProbeEntry(kind=kind),
    )


def _look(arguments: argparse.Namespace, device: str) -> Sight:
    sampler = prepare_sampler(arguments)
    interval_s = sampler.state.settings.sampling.interval_s
    sampler.run_for(_SETTLING_TICKS * interval_s)
    before, begun_s = look_at(sampler.state, device), time.monotonic()
    sampler.run_for(look_for_s(interval_s))
    elapsed_s = time.monotonic() - begun_s
    asleep = is_asleep(paths_of(arguments), device)
    return Sight(before, look_at(sampler.state, device), elapsed_s, asleep)


def _facts(plan: ProbePlan, sight: Sight) -> Iterator[tuple[str, str]]:
    """Say what is asked of the disk, what that is of the promise, and what the disk does now."""
    view = sight.now or sight.before
    if view is None:
        return
    yield "disk", f"{view.disk.name}, {format_size(view.disk.size_bytes)}"
    yield "terms", view.assignment.terms
    yield "probe", plan.in_words()
    load = "" if view.present_load is None else f", {view.present_load:.0%} of the promise in use"
    rate = view.present.read_iops + view.present.write_iops
    yield "disk now", f"{view.verdict or 'not judged'}, {format_count(rate)} IOPS{load}"


def _print_skips(console: Console, skips: tuple[Skip, ...]) -> None:
    if skips:
        console.print()
        console.print(facts_table(("skipped", f"{skip.reason}: {skip.words}") for skip in skips))


def _print_command(console: Console, fio: Fio, job: FioJob) -> None:
    console.print()
    console.print(_command(fio, job), soft_wrap=True)


def _command(fio: Fio, job: FioJob) -> str:
    return shlex.join((str(fio.path), *fio_arguments(job)))


def _print_outcome(console: Console, outcome: ProbeOutcome) -> None:
    console.print()
    if not outcome.is_success:
        what = "skipped" if outcome.skipped else "failed"
        reason = outcome.skipped or outcome.failure
        console.print(facts_table([(what, f"{reason}: {outcome.words}")]))
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
    outcome: ProbeOutcome | None,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "device": plan.device,
        "kind": plan.entry.kind,
        "command": _command(fio, jobs[0]) if jobs else None,
        "target_iops": plan.rate_iops,
        "promise_share": plan.promise_share,
        "skips": [{"reason": skip.reason, "words": skip.words} for skip in skips],
        "result": None,
    }
    if outcome is not None:
        document["result"] = {
            "success": outcome.is_success,
            "skipped": outcome.skipped,
            "failure": outcome.failure,
            "words": outcome.words,
            "duration_seconds": outcome.duration_s,
            "requests": outcome.requests,
            "bytes": outcome.transferred_bytes,
            "achieved_iops": outcome.achieved_iops,
            "latency_seconds": {
                name: quantile_s(outcome.bins, share) for name, share in _SHARES.items()
            },
        }
    return document
