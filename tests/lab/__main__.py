"""`make lab`: run scenarios on throttled disks, and compare the verdicts with the truth."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from lab import probe_cost
from lab.disk import BLKIO
from lab.experiment import as_it_ran, run_until_quiet
from lab.options import chosen, finish, parser_of, recordings, start, write
from lab.postgresql import programs
from lab.report import report
from lab.scenario import PARTS, Scenario, all_scenarios, read_scenario
from lab.table import headings, row
from lab.verdict import Verdict, verdicts

TRACEPOINT = Path("/sys/kernel/tracing/events/block/block_rq_complete/id")


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and judge scenarios; return 1 if a requirement is not met, else 0."""
    parser = parser_of("lab", __doc__, all_scenarios())
    parser.add_argument(
        "--part", nargs="+", choices=PARTS, default=PARTS, help="parts to run (default: all)"
    )
    parser.add_argument(
        "--probe-cost",
        type=int,
        nargs="?",
        const=15,
        metavar="PAIRS",
        help="measure the cost of a probe instead, in pairs of runs (default: 15)",
    )
    options = parser.parse_args(arguments)
    reason = None if options.judge else missing()
    if reason is not None:
        write(f"lab: SKIPPED: {reason}")
        return 0
    if options.probe_cost is not None:
        return probe_cost.main(options.probe_cost, write)
    judged: list[tuple[str, Scenario, Verdict]] = []
    write(headings())
    with recordings(options) as home:
        for name, path in chosen(options, all_scenarios()).items():
            if options.only is None and path.parent.name not in options.part:
                continue
            scenario = read_scenario(path, options.seed)
            if options.judge:
                scenario = as_it_ran(scenario, home / name)
            elif (reason := missing_for(scenario)) is not None:
                write(f"{name}: SKIPPED: {reason}")
                continue
            else:
                run_until_quiet(path, home / name, options.seed, write)
            for verdict in verdicts(name, scenario, home / name):
                write(row(verdict))
                judged.append((path.parent.name, scenario, verdict))
    failed = sum(bool(verdict.problems) for *_, verdict in judged)
    return finish(
        options, failed, len(judged), lambda document: report(document, judged, options.seed)
    )


if __name__ == "__main__":
    start(main)
