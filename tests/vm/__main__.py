"""`make vm`: compare verdicts in a virtual machine with the trace of QEMU, which throttles."""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from lab.table import headings, row
from vm import build
from vm.experiment import install, run
from vm.machine import QEMU, booted
from vm.report import report
from vm.scenario import all_scenarios, choose
from vm.verdict import Judged, verdict_on

_TERMINATED = 128 + signal.SIGTERM


def missing() -> str | None:
    """Return why no virtual machine can run here; None if it can."""
    for program in (QEMU, "mmdebstrap", "mke2fs", "dh"):
        if shutil.which(program) is None:
            return f"needs {program}"
    if os.geteuid() != 0:
        return "needs root to create a root file system"
    return None


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="vm", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=all_scenarios(), help="scenarios to run"
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="seed of the limits and rates, to repeat a run (default: a random one)",
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="directory for recordings and traces"
    )
    parser.add_argument(
        "--judge", type=Path, metavar="DIR", help="directory of recordings to judge; run nothing"
    )
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="Markdown file whose section is replaced"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and judge scenarios; return 1 if a requirement is not met, else 0."""
    options = _parse(arguments)
    reason = None if options.judge else missing()
    if reason is not None:
        _print(f"vm: SKIPPED: {reason}")
        return 0
    judged: list[Judged] = []
    count = 0
    for name, directory in _recordings(options) if options.judge else _runs(options):
        count += 1
        try:
            judged.append(verdict_on(name, directory))
        except ValueError as error:
            _print(f"{name}: FAIL: {error}")
        else:
            _print(row(judged[-1].verdict))
    if options.report is not None:
        file: Path = options.report
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        file.write_text(report(before, judged), encoding="utf-8")
    failed = count - sum(not result.verdict.problems for result in judged)
    _print(f"{failed} of {count} failed")
    return 1 if failed else 0


def _chosen(options: argparse.Namespace) -> list[str]:
    return [name for name in all_scenarios() if options.only is None or name in options.only]


def _recordings(options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Yield the name and the directory of each recording."""
    _print(headings())
    for name in _chosen(options):
        if (options.judge / name).is_dir():
            yield name, options.judge / name


def _runs(options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Run scenarios in one virtual machine; yield each when its recording is in its directory."""
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    _print(f"seed {seed}")
    _print(headings())
    scenarios = [choose(name, seed) for name in _chosen(options)]
    # Minutes the first time, and after a change of their sources.
    image, package = build.image(), build.package()
    with ExitStack() as undo:
        files = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-vm-")))
        machine = undo.enter_context(booted(image, package, files))
        recording = install(machine.guest, package, scenarios)
        for chosen in scenarios:
            directory = (options.keep or files / "recordings") / chosen.name
            run(chosen, seed, machine, recording, directory)
            yield chosen.name, directory


if __name__ == "__main__":
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(_TERMINATED)
    )  # unwind, which ends the virtual machine
    sys.exit(main())
