"""`make fuzz`: look for what breaks a law, guided by coverage, target by target."""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fuzz.mutation import LONGEST
from fuzz.target import FOUND, Target
from fuzz.targets import TARGETS

CORPUS = Path(__file__).parent.parent.parent / ".cache" / "fuzz"
"""What was found worth keeping, so that the next run begins where this one ended."""
SLOWEST_S = 20
"""What takes longer is a finding; it is a hundred times what anything here needs."""
MOST_MIB = 1024
"""What takes more is a finding."""
_COULD_NOT = 2
_STATE = re.compile(r"^#(\d+)\s.*\bcov: (\d+) ", re.MULTILINE)
_ARTIFACT = re.compile(r"Test unit written to (\S+)")


class Outcome(NamedTuple):
    """What became of one target."""

    name: str
    runs: int
    edges: int
    """Of the code of disksla, that were passed."""
    finding: Path | None


def main(words: Sequence[str] | None = None) -> int:
    """Try each target for its share of the time; 1 if a law was broken, 2 without atheris."""
    arguments = _arguments(words)
    if importlib.util.find_spec("atheris") is None:
        _say("fuzz: atheris is missing; it has wheels for CPython 3.11 to 3.13 on x86-64 Linux")
        return _COULD_NOT
    names = arguments.only or list(TARGETS)
    share_s = max(1, round(60 * arguments.minutes / len(names)))
    _say(f"{'target':16} {'runs':>9} {'edges':>6}  for {share_s} s each")
    outcomes = []
    for name in names:
        outcome = _try(TARGETS[name], share_s)
        outcomes.append(outcome)
        found = f"  BROKEN: {outcome.finding}" if outcome.finding else ""
        _say(f"{name:16} {outcome.runs:9} {outcome.edges:6}{found}")
    broken = [outcome for outcome in outcomes if outcome.finding]
    _say(f"{sum(outcome.runs for outcome in outcomes)} runs, {len(broken)} laws broken")
    return 1 if broken else 0


def _try(target: Target, seconds: int) -> Outcome:
    """Run one target in a process of its own, which a broken law ends."""
    corpus = CORPUS / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    (FOUND / target.name).mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="disksla-fuzz-") as room:
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "fuzz.guided", target.name, str(corpus)),
                *(f"-max_total_time={seconds}", f"-max_len={LONGEST}", f"-timeout={SLOWEST_S}"),
                *(f"-rss_limit_mb={MOST_MIB}", f"-artifact_prefix={FOUND / target.name}/"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            env={**os.environ, "TMPDIR": room},  # it may end without tidying up
            preexec_fn=lambda: os.nice(19) and None,
        )
    said = ended.stdout.decode(errors="replace")
    states = _STATE.findall(said)
    runs, edges = states[-1] if states else (0, 0)
    written = _ARTIFACT.search(said)
    finding = Path(written[1]) if written else None
    if ended.returncode and finding is None:
        raise SystemExit(f"fuzz: {target.name} ended with {ended.returncode}:\n{said[-3000:]}")
    if finding is not None:
        (CORPUS / f"{target.name}.log").write_text(said, encoding="utf-8")
    elif not any((FOUND / target.name).iterdir()):
        (FOUND / target.name).rmdir()
    return Outcome(target.name, int(runs), int(edges), finding)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=5.0, help="for all together (default: %(default)s)"
    )
    parser.add_argument("--only", nargs="+", metavar="TARGET", choices=TARGETS)
    return parser.parse_args(words)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
