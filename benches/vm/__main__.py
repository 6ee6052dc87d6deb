"""`make vm`: compare verdicts in a virtual machine with the trace of QEMU, which throttles."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from lab.options import chosen, finish, parser_of, recordings, start, write
from lab.table import headings, row
from lab.verdict import Verdict
from vm import build
from vm.experiment import install, run
from vm.machine import QEMU, booted
from vm.scenario import all_scenarios, read_scenario
from vm.verdict import verdicts_on


def missing() -> str | None:
    """Return why no virtual machine can run here; None if it can."""
    for program in (QEMU, "mmdebstrap", "mke2fs", "dh"):
        if shutil.which(program) is None:
            return f"needs {program}"
    if os.geteuid() != 0:
        return "needs root to create a root file system"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and judge scenarios; return 1 if a requirement is not met, else 0."""
    options = parser_of("vm", __doc__, all_scenarios()).parse_args(arguments)
    reason = None if options.judge else missing()
    if reason is not None:
        write(f"vm: SKIPPED: {reason}")
        return 0
    judged: list[Verdict] = []
    unmatched = 0
    scenarios = chosen(options, all_scenarios())
    write(headings())
    with recordings(options) as home:
        for name in scenarios if options.judge else _runs(scenarios, options.seed, home):
            try:
                results = verdicts_on(name, home / name)
            except ValueError as error:
                write(f"{name}: FAIL: {error}")
                unmatched += 1
            else:
                judged += results
                write("\n".join(map(row, results)))
    failed = unmatched + sum(bool(result.problems) for result in judged)
    count = unmatched + len(judged)
    return finish(failed, count)


def _runs(scenarios: dict[str, Path], seed: int, home: Path) -> Iterator[str]:
    """Run scenarios in one virtual machine; yield the name of each when it is recorded."""
    for path in scenarios.values():
        read_scenario(path, seed)
    # Minutes the first time, and after a change of their sources.
    image, package = build.image(), build.package()
    with ExitStack() as undo:
        files = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-vm-")))
        machine = undo.enter_context(booted(image, package, files))
        recording = install(machine.guest, package)
        for name, path in scenarios.items():
            run(path, seed, machine, recording, home / name)
            yield name


if __name__ == "__main__":
    start(main)
