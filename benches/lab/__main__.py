"""`make lab`: run scenarios on throttled disks, and compare the verdicts with the truth."""

import argparse
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.databases import missing_program
from lab.disk import BLKIO
from lab.experiment import as_it_ran, run_until_quiet
from lab.negatives import PART as NEGATIVES
from lab.negatives import negative
from lab.options import chosen, finish, parser_of, recordings, start, write
from lab.report import Result, report
from lab.scenario import DEFAULT_PARTS, PARTS, Scenario, all_scenarios, read_scenario
from lab.table import headings, row
from lab.verdict import verdicts

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
        if (program := missing_program(disk)) is not None:
            return f"needs {program}"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and judge scenarios; return 1 if a requirement is not met, else 0."""
    parser = parser_of("lab", __doc__, all_scenarios())
    parser.add_argument(
        "--part",
        nargs="+",
        choices=PARTS,
        default=DEFAULT_PARTS,
        help=f"parts to run (default: {' '.join(DEFAULT_PARTS)})",
    )
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="document whose last section are the results"
    )
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="another length of each phase of the negatives"
    )
    options = parser.parse_args(arguments)
    reason = None if options.judge else missing()
    if reason is not None:
        write(f"lab: SKIPPED: {reason}")
        return 0
    judged: list[Result] = []
    shown = None
    with recordings(options) as home:
        for name, path in chosen(options, all_scenarios()).items():
            if options.only is None and path.parent.name not in options.part:
                continue
            for result in _results(name, path, home, options):
                if type(result[-1]) is not shown:
                    shown = type(result[-1])
                    write(headings(shown))
                write(row(result[-1]))
                judged.append(result)
    failed = sum(bool(verdict.problems) for *_, verdict in judged)
    if options.report is not None:
        before = options.report.read_text(encoding="utf-8")
        options.report.write_text(report(before, judged, options.seed), encoding="utf-8")
    return finish(failed, len(judged))


def _results(name: str, path: Path, home: Path, options: argparse.Namespace) -> Iterator[Result]:
    """Run a scenario, unless only its recordings are to be judged, and yield its results."""
    part, directory = path.parent.name, home / name
    scenario = read_scenario(path, options.seed)
    if options.judge:
        scenario = as_it_ran(scenario, directory)
    elif (reason := missing_for(scenario)) is not None:
        write(f"{name}: SKIPPED: {reason}")
        return
    else:
        phase_s = options.seconds if part == NEGATIVES else None
        run_until_quiet(path, directory, options.seed, write, phase_s)
    if part == NEGATIVES:
        yield part, scenario.caption, negative(name, directory)
    else:
        for verdict in verdicts(name, scenario, directory):
            yield part, scenario.caption, verdict


if __name__ == "__main__":
    start(main)
