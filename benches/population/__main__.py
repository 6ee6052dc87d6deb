"""Judge a population of simulated disks by the real code, and compare with the truth.

    PYTHONPATH=tests:benches .venv/bin/python -m population --seed 1 --disks 200 --seconds 60

prints tables by class of disk, and each run that is wrong; `--only 17` repeats one disk, and
`--signs` prints what each sign of the detector gives and costs.

Columns: throttled seconds in truth and found; runs within 8 points of the time; disks without a
limiter that are accused for more than 0.5 % of it. Of runs that were throttled, and seen, for 5 %
of the time: windows right within 2 %, rates within 5 %, and right limits for 90 % of the seconds.
Credits: samples whose bounds contain the truth.
"""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterable
from functools import partial

from disksla.verdict.throttling import SIGNS
from population.draws import draw
from population.judging import Judged, Signs, judge
from population.tables import report, sign_table


def sign_sets(every: Signs) -> list[Signs]:
    """Return all signs, all but each, and each alone."""
    ordered = sorted(every)
    return [every, *(every - {sign} for sign in ordered), *(frozenset({s}) for s in ordered)]


def judged_draw(
    number: int, *, seed: int, seconds: float, sets: list[Signs]
) -> list[list[Judged]]:
    """Draw one disk, and judge it with each set of signs."""
    drawn = draw(seed, number, seconds)
    return [judge(drawn, signs) for signs in sets]


def show_one(seed: int, number: int, seconds: float) -> Iterable[str]:
    """Yield the parameters of one disk, and what each configuration says of it."""
    drawn = draw(seed, number, seconds)
    yield drawn.describe()
    yield f"  throttled in truth: {sum(drawn.truth):.2f} s"
    for run in judge(drawn):
        found = {name: round(found_s, 2) for name, found_s in run.found_s.items()}
        yield (
            f"  terms {run.terms}: found {found or 'nothing'}, window {run.window_s}, rate"
            f" {run.rate}, credits wrong at {run.wrong_credits} of {run.credit_samples} samples"
        )


def say(lines: Iterable[str]) -> None:
    """Print lines."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(
        prog="population", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0, help="simulated time of each")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one disk of the population")
    parser.add_argument("--signs", action="store_true", help="also leave out each sign")
    options = parser.parse_args()
    if options.only is not None:
        say(show_one(options.seed, options.only, options.seconds))
        return
    sets = sign_sets(SIGNS) if options.signs else [SIGNS]
    judge_one = partial(judged_draw, seed=options.seed, seconds=options.seconds, sets=sets)
    with multiprocessing.Pool(options.jobs) as pool:
        by_draw = pool.map(judge_one, range(options.disks), chunksize=1)
    by_signs = [[run for runs in column for run in runs] for column in zip(*by_draw, strict=True)]
    say(report(by_signs[0], options.seed))
    if options.signs:
        say(sign_table(dict(zip(sets, by_signs, strict=True))))


if __name__ == "__main__":
    main()
