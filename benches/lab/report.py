"""Results of `make lab` as a section of a document: docs/accuracy.md."""

import platform
from collections.abc import Iterator, Sequence

from lab.negatives import FACTORS, Negative
from lab.table import HEADINGS, cells
from lab.verdict import Verdict

HEADING = "## Results"
SHOWN = (
    "postgresql-1-write-through",
    "postgresql-8-fdatasync",
    "postgresql-8-write-through",
    "postgresql-32-fsync",
    "postgresql-rate-limited",
    "sqlite-wal",
    "mariadb-4",
    "mariadb-16-xfs",
    "redis-always-1",
    "redis-everysec",
    "etcd-8-xfs",
    "rocksdb-read",
    "deep-queue",
    "leaky-bucket",
    "burst-then-base",
    "below-held",
    "machine-two-busy",
    "window-deep",
    "no-terms-window",
)
"""Scenarios in the table, in its order; those without a limiter are one row more."""
_FIRST_DISK = " 1"
_INTRODUCTION = """
Seed {seed}, Linux {kernel}. `truth s` and `found s` are throttled seconds, in truth and by the
verdicts. `window ms` is the window of the limiter, as it was found and in truth; 0 is a leaky
bucket.

"""

Result = tuple[str, str, Verdict | Negative]
"""A part of the lab, the caption of a scenario, and the verdict on one disk of it."""


def report(document: str, results: Sequence[Result], seed: int) -> str:
    """Return a document in which the results of scenarios are its last section.

    The table has SHOWN. What failed is listed below it, whether it is in the table or not.
    """
    before, _, _ = document.partition(HEADING)
    kernel = platform.release().partition("-")[0]
    passed = sum(not result.problems for *_, result in results)
    return "".join(
        [
            before,
            f"{HEADING}\n",
            _INTRODUCTION.format(seed=seed, kernel=kernel),
            *_table(results),
            f"\nOf {len(results)} results, {passed} meet all requirements.",
            *_failures(results),
        ]
    )


def _table(results: Sequence[Result]) -> Iterator[str]:
    _, *heads = HEADINGS
    yield f"| load and limit | {' | '.join(heads)} |\n|:--|--:|--:|--:|:--|:--|\n"
    for name in SHOWN:
        for _, caption, result in results:
            if result.name in {name, name + _FIRST_DISK}:
                yield f"| {caption} | {' | '.join(cells(result))} |\n"
    free = [result for *_, result in results if isinstance(result, Negative)]
    if free:
        yield _row_of_negatives(free)


def _row_of_negatives(free: Sequence[Negative]) -> str:
    """Return the row of all programs without a limiter, with the seconds of all promises."""
    what = f"{len(free)} programs on disks without a limiter, without and with terms"
    loaded_s = len(FACTORS) * sum(each.loaded_s for each in free)
    found_s = sum(sum(each.throttled_s) for each in free)
    failed = sum(bool(each.problems) for each in free)
    passed = f"{failed} FAIL" if failed else "pass"
    return f"| {what}, {loaded_s:.0f} s | 0.0 | {found_s:.1f} | -/- | - | {passed} |\n"


def _failures(results: Sequence[Result]) -> Iterator[str]:
    failed = [result for *_, result in results if result.problems]
    yield " These do not:\n\n" if failed else "\n"
    for result in failed:
        yield f"- `{result.name}`: {'; '.join(result.problems)}\n"
