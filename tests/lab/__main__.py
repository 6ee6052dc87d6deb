"""`make lab`: run scenarios on throttled disks, and compare the verdicts with the truth."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from lab import probe_cost
from lab.disk import BLKIO
from lab.experiment import as_it_ran, run
from lab.postgresql import programs
from lab.report import report
from lab.scenario import PARTS, SEED, Scenario, all_scenarios, read_scenario
from lab.table import headings, row
from lab.verdict import Verdict, verdicts

TRACEPOINT = Path("/sys/kernel/tracing/events/block/block_rq_complete/id")
_TERMINATED = 128 + signal.SIGTERM


def missing() -> str | None:
    """Return why the lab cannot run on this machine; None if it can."""
    if os.geteuid() != 0:
        return "needs root to create disks"
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not Path(device).exists():
            return f"needs {device} to create disks"
    for program in ("chrt", "fio", "losetup", "mkfs.ext4"):
        if shutil.which(program) is None:
            return f"needs {program}"
    return None


def missing_for(scenario: Scenario) -> str | None:
    """Return why a scenario cannot run on this machine; None if it can."""
    file = BLKIO / "blkio.throttle.read_iops_device"
    if scenario.exact and not TRACEPOINT.exists():
        return f"needs {TRACEPOINT} (tracefs), to count data writes exactly"
    for disk in scenario.disks:
        if disk.kind != "served" and not file.exists():
            return f"needs {file} (cgroup v1)"
        if disk.file_system is not None and shutil.which(f"mkfs.{disk.file_system}") is None:
            return f"needs mkfs.{disk.file_system}"
        if disk.postgresql is not None and programs() is None:
            return "needs PostgreSQL (initdb, pgbench)"
    return None


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lab", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=all_scenarios(), help="scenarios to run"
    )
    parser.add_argument(
        "--part", nargs="+", choices=PARTS, default=PARTS, help="parts to run (default: all)"
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help="seed of the random numbers (default: %(default)s)"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="directory for recordings and logs"
    )
    parser.add_argument(
        "--judge", type=Path, metavar="DIR", help="directory of recordings to judge; run nothing"
    )
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="file for the results, in Markdown"
    )
    parser.add_argument(
        "--probe-cost",
        type=int,
        nargs="?",
        const=15,
        metavar="PAIRS",
        help="measure the cost of a probe instead, in pairs of runs (default: 15)",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and judge scenarios; return 1 if a requirement is not met, else 0."""
    options = _parse(arguments)
    reason = None if options.judge else missing()
    if reason is not None:
        _print(f"lab: SKIPPED: {reason}")
        return 0
    if options.probe_cost is not None:
        return probe_cost.main(options.probe_cost, _print)
    judged: list[tuple[str, Scenario, Verdict]] = []
    _print(headings())
    with ExitStack() as undo:
        home = options.judge or options.keep
        if home is None:
            home = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-")))
        for name, path in _chosen(options):
            scenario = read_scenario(path, options.seed)
            if options.judge:
                scenario = as_it_ran(scenario, home / name)
            if not options.judge:
                if (reason := missing_for(scenario)) is not None:
                    _print(f"{name}: SKIPPED: {reason}")
                    continue
                run(path, home / name, options.seed)
            for verdict in verdicts(name, scenario, home / name):
                _print(row(verdict))
                judged.append((path.parent.name, scenario, verdict))
    if options.report is not None:
        file: Path = options.report
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        file.write_text(report(before, judged, options.seed), encoding="utf-8")
    failed = sum(bool(verdict.problems) for *_, verdict in judged)
    _print(f"{failed} of {len(judged)} failed")
    return 1 if failed else 0


def _chosen(options: argparse.Namespace) -> list[tuple[str, Path]]:
    return [
        (name, path)
        for name, path in all_scenarios().items()
        if (path.parent.name in options.part if options.only is None else name in options.only)
        and (options.judge is None or (options.judge / name).is_dir())
    ]


if __name__ == "__main__":
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(_TERMINATED)
    )  # unwind, which removes the disks
    sys.exit(main())
