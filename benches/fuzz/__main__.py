"""`make fuzz`: fuzz the targets one after another with atheris, guided by coverage."""

import argparse
import importlib.util
import multiprocessing
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fuzz.mutation import MOST_BYTES
from fuzz.target import SEEDS, Target

CORPUS = Path(__file__).parent.parent.parent / ".cache" / "fuzz"
"""The corpus of libFuzzer, kept so that the next run continues where this one ended."""
SLOWEST_S = 20
"""Timeout of one input; input that takes longer is a finding. All others need a hundredth."""
MOST_MIB = 1024
"""Memory limit; input that needs more is a finding."""
_FORK = multiprocessing.get_context("fork")
_STATE = re.compile(r"^#(\d+)\s.*\bcov: (\d+) ", re.MULTILINE)
_ARTIFACT = re.compile(r"Test unit written to (\S+)")


class Outcome(NamedTuple):
    """The result of fuzzing one target."""

    name: str
    runs: int
    edges: int
    """Edges of the code of disksla that were covered."""
    finding: Path | None


def main(options: Sequence[str] | None = None) -> int:
    """Fuzz each target for its share of the time. Return 1 with a finding.

    Where atheris cannot be installed, say so, and succeed: `make check` has the same checks with
    mutations that are not guided.
    """
    if importlib.util.find_spec("atheris") is None:
        _print("fuzz: SKIPPED: atheris needs CPython 3.11 to 3.13 on x86-64 Linux")
        return 0
    import fuzz.guided  # noqa: PLC0415, F401 -- disksla is instrumented as it is imported
    from fuzz.targets import TARGETS  # noqa: PLC0415

    arguments = _arguments(options, tuple(TARGETS))
    names = arguments.only or list(TARGETS)
    share_s = max(1, round(60 * arguments.minutes / len(names)))
    width = max(map(len, ["target", *names]))
    _print(f"{'target':{width}} {'runs':>9} {'edges':>6}  ({share_s} s per target)")
    outcomes = []
    for name in names:
        outcome = _fuzz(TARGETS[name], share_s)
        outcomes.append(outcome)
        finding = f"  FAILED: {outcome.finding}" if outcome.finding else ""
        _print(f"{name:{width}} {outcome.runs:9} {outcome.edges:6}{finding}")
    failed = [outcome for outcome in outcomes if outcome.finding]
    _print(f"{sum(outcome.runs for outcome in outcomes)} runs, {len(failed)} targets failed")
    return 1 if failed else 0


def _fuzz(target: Target, seconds: int) -> Outcome:
    """Run one target in a process of its own, which ends at the first finding."""
    corpus = CORPUS / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    (SEEDS / target.name).mkdir(exist_ok=True)
    options = [
        *(f"-max_total_time={seconds}", f"-max_len={MOST_BYTES}", f"-timeout={SLOWEST_S}"),
        *(f"-rss_limit_mb={MOST_MIB}", f"-artifact_prefix={SEEDS / target.name}/"),
    ]
    with tempfile.TemporaryDirectory(prefix="disksla-fuzz-") as directory:
        log = Path(directory) / "log"
        process = _FORK.Process(target=_guide, args=(log, [target.name, str(corpus), *options]))
        process.start()
        process.join()
        output = log.read_text(encoding="utf-8", errors="replace")
    states = _STATE.findall(output)
    runs, edges = states[-1] if states else (0, 0)
    written = _ARTIFACT.search(output)
    finding = Path(written[1]) if written else None
    if process.exitcode and finding is None:
        raise SystemExit(
            f"fuzz: {target.name} failed with exit status {process.exitcode}:\n{output[-3000:]}"
        )
    if finding is not None:
        (CORPUS / f"{target.name}.log").write_text(output, encoding="utf-8")
    elif not any((SEEDS / target.name).iterdir()):
        (SEEDS / target.name).rmdir()
    return Outcome(target.name, int(runs), int(edges), finding)


def _guide(log: Path, arguments: list[str]) -> None:
    """Fuzz in this process, a copy of one that imported everything, which takes seconds."""
    from fuzz import guided  # noqa: PLC0415 -- imported by the first process

    os.nice(19)
    os.environ["TMPDIR"] = str(log.parent)  # the process may end without cleanup
    tempfile.tempdir = None
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT, 0o600)
    for output in (1, 2):
        os.dup2(descriptor, output)
    guided.main(arguments)


def _arguments(options: Sequence[str] | None, targets: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument(
        "--minutes",
        type=float,
        default=5.0,
        help="duration for all targets together, in minutes (default: %(default)s)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="TARGET",
        choices=targets,
        help=f"targets to fuzz (default: all): {', '.join(targets)}",
    )
    return parser.parse_args(options)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
