"""`make lab`: run scenarios on real, throttled disks, and judge what disksla says of them."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from lab import probecost
from lab.disk import BLKIO
from lab.experiment import run
from lab.report import report
from lab.scenario import Scenario, all_scenarios, read_scenario
from lab.table import head, rows
from lab.verdict import Verdict, verdicts

_TERMINATED = 128 + signal.SIGTERM


def missing() -> str | None:
    """Say why the lab cannot run here; None if it can."""
    if os.geteuid() != 0:
        return "needs root, to make disks"
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not Path(device).exists():
            return f"needs {device}, to make disks"
    for program in ("chrt", "fio", "losetup", "mkfs.ext4"):
        if shutil.which(program) is None:
            return f"needs {program}"
    return None


def missing_for(scenario: Scenario) -> str | None:
    """Say why this scenario cannot run here; None if it can."""
    needs_blkio = any(disk.kind != "served" for disk in scenario.disks)
    file = BLKIO / "blkio.throttle.read_iops_device"
    return f"needs {file} (cgroup v1)" if needs_blkio and not file.exists() else None


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lab", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=all_scenarios())
    parser.add_argument("--short", action="store_true", help="those of make check")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep recordings and truth here")
    parser.add_argument(
        "--judge", type=Path, metavar="DIR", help="judge what was kept; run nothing"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write docs/accuracy.md there")
    parser.add_argument(
        "--probe-cost",
        type=int,
        nargs="?",
        const=15,
        metavar="PAIRS",
        help="measure what a probe costs the load beside it, instead (default: 15 pairs of runs)",
    )
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run and judge; 0 if all is as required, 1 if not."""
    arguments = _arguments(words)
    reason = None if arguments.judge else missing()
    if reason is not None:
        _say(f"lab: SKIPPED: {reason}")
        return 0
    if arguments.probe_cost is not None:
        return probecost.main(arguments.probe_cost, _say)
    judged: list[tuple[Scenario, Verdict]] = []
    _say(head())
    with ExitStack() as undo:
        home = arguments.judge or arguments.keep
        if home is None:
            home = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-")))
        for name, path in _chosen(arguments):
            scenario = read_scenario(path)
            if not arguments.judge:
                if (reason := missing_for(scenario)) is not None:
                    _say(f"{name}: SKIPPED: {reason}")
                    continue
                run(path, home / name)
            for verdict in verdicts(name, scenario, home / name):
                _say(rows(verdict))
                judged.append((scenario, verdict))
    if arguments.report is not None:
        arguments.report.write_text(report(judged), encoding="utf-8")
    failed = sum(bool(verdict.problems) for _, verdict in judged)
    _say(f"{failed} of {len(judged)} not as required")
    return 1 if failed else 0


def _chosen(arguments: argparse.Namespace) -> list[tuple[str, Path]]:
    return [
        (name, path)
        for name, path in all_scenarios().items()
        if (arguments.only is None or name in arguments.only)
        and (not arguments.short or read_scenario(path).short)
        and (arguments.judge is None or (arguments.judge / name).is_dir())
    ]


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that disks are undone
    sys.exit(main())
