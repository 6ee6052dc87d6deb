"""What means say of the population: disks whose counters are read every 15 or 60 s.

    PYTHONPATH=tests:benches .venv/bin/python -m population.means --seed 1 --disks 80

prints, for each interval, the seconds at the limit that are found of disks that were throttled for
more than half of the time, beside the truth; and of disks without a limiter, with limits that are
multiples of their load, the share of the time that is at a limit.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from disksla.kernel.procfs import SECTOR_BYTES
from disksla.measure.means import Mean, use_of_limits
from disksla.promise.configuration.custom_terms import custom_limits
from disksla.verdict.interval import Interval
from population.draws import Draw, draw
from population.judging import terms_of

EVERY_S = (15, 60)
_READS, _READ_SECTORS, _READ_MS, _WRITES, _WRITTEN_SECTORS, _WRITE_MS = 3, 5, 6, 7, 9, 10
_INFLIGHT, _WEIGHTED_MS, _FLUSHES = 11, 13, 18
_TICKS_PER_S = 10


def means_of(draw: Draw, every_s: int) -> list[Mean]:
    """Return the intervals between ticks that are so far apart, as node_exporter shows them."""
    ticks = draw.ticks[:: every_s * _TICKS_PER_S]
    samples = [
        (tick.clocks.monotonic_s, [*map(_number, (tick.diskstats or "").split())])
        for tick in ticks
    ]
    return [_mean(*before, *after) for before, after in pairwise(samples)]


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else 0


def _mean(start_s: float, before: list[int], end_s: float, after: list[int]) -> Mean:
    rise = [last - first for first, last in zip(before, after, strict=True)]
    interval = Interval(
        reads=rise[_READS],
        writes=rise[_WRITES],
        read_bytes=rise[_READ_SECTORS] * SECTOR_BYTES,
        written_bytes=rise[_WRITTEN_SECTORS] * SECTOR_BYTES,
        end_s=end_s,
        seconds=end_s - start_s,
        read_ms=rise[_READ_MS],
        write_ms=rise[_WRITE_MS],
        inflight=after[_INFLIGHT],
        flushes=rise[_FLUSHES],
    )
    return Mean(interval, rise[_WEIGHTED_MS] / 1000 / (end_s - start_s))


def truth_of(draw: Draw, every_s: int) -> float:
    """Return the seconds in the intervals in which a request waited for the limiter."""
    ticks = every_s * _TICKS_PER_S
    return sum(draw.truth[1 : (len(draw.ticks) - 1) // ticks * ticks + 1])


def found_of(draw: Draw, every_s: int) -> Iterator[tuple[str, float, float]]:
    """Yield for each of the terms the time that is in intervals, and that at a limit."""
    means = means_of(draw, every_s)
    for name, terms in terms_of(draw).items():
        if terms is not None:
            use = use_of_limits(means, custom_limits(terms))
            yield name, use.seconds, use.at_limit_s


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disks", type=int, default=80)
    parser.add_argument("--seconds", type=float, default=301.0)
    arguments = parser.parse_args()
    sums: defaultdict[tuple[int, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for number in range(arguments.disks):
        each = draw(arguments.seed, number, arguments.seconds)
        share = sum(each.truth) / arguments.seconds
        kind = "" if each.spec.limit is None else "much " if share > 0.5 else "little "
        for every_s in EVERY_S:
            for name, seconds, at_limit_s in found_of(each, every_s):
                numbers = seconds, truth_of(each, every_s), at_limit_s
                row = sums[every_s, kind + name]
                row[:] = [old + new for old, new in zip(row, numbers, strict=True)]
    sys.stdout.write("interval  limits            seconds   throttled   at a limit\n")
    for (every_s, name), (seconds, truth_s, at_limit_s) in sorted(sums.items()):
        sys.stdout.write(
            f"{every_s:7} s  {name:15} {seconds:9.0f} {truth_s:11.0f} {at_limit_s:12.0f}\n"
        )


if __name__ == "__main__":
    main()
