"""Long runs under several recorders: the truth of each phase, and what they say of the same time.

A verdict depends on nothing older than ten seconds, so recorders that start at any two times agree
ten seconds after the later one has started. Pure functions.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise

from disksla.state.pipeline.window_records import WindowRecord
from lab.judge import SETTLED_S, rows_within, throttled_seconds
from lab.requirements import time_problems
from lab.scenario import Recorders, Throttled
from lab.truth import Window

AGREEMENT = 0.03
"""Of the time that two recorders share."""
_RESTART_S = 1.0
_SHORTEST_S = 5.0
"""Of a phase that is compared."""


def spans_of(recorders: Recorders | None, load_s: float, seed: str) -> list[tuple[float, float]]:
    """Return when recorders run, from the start of the load; the first starts with it."""
    generator = random.Random(seed)
    spans: list[tuple[float, float]] = []
    if recorders is None:
        return spans
    for number in range(recorders.count):
        start_s = generator.uniform(0.0, load_s / 2) if number else 0.0
        if number < recorders.count - recorders.restarted:
            spans.append((start_s, load_s))
        else:
            restart_s = generator.uniform(0.4, 0.6) * (load_s - start_s) + start_s
            spans += [(start_s, restart_s), (restart_s + _RESTART_S, load_s)]
    return spans


def seen_truth(truth: Sequence[Window], rows: Sequence[WindowRecord]) -> list[Window]:
    """Return the truth from ten seconds after the start of a recorder to its last verdict."""
    begin_s, end_s = _seen(rows)
    return [window for window in truth if begin_s <= window.start_s and window.end_s <= end_s]


def _seen(rows: Sequence[WindowRecord]) -> tuple[float, float]:
    return rows[0].monotonic_s + SETTLED_S, rows[-1].monotonic_s


def phase_problems(
    begun_s: float,
    truth: Sequence[Window],
    rows: Sequence[WindowRecord],
    changes_s: Sequence[float],
    kind: Throttled | None,
) -> Iterable[str]:
    """Yield a message for each time between two changes that is judged otherwise than required.

    It begins SETTLED_S after the first of them. Where nothing is throttled in truth, two points of
    the time may be. Messages have the time since `begun_s`.
    """
    first_s, last_s = truth[0].start_s, truth[-1].end_s
    within = sorted(at_s for at_s in changes_s if first_s < at_s < last_s)
    for change_s, end_s in pairwise([first_s, *within, last_s]):
        before_s = [at_s + SETTLED_S for at_s in changes_s if at_s <= change_s]
        begin_s = max([change_s, *before_s])
        if end_s - begin_s < _SHORTEST_S:
            continue
        own = rows_within(rows, begin_s, end_s)
        truth_s = sum(each.throttled_s for each in truth if begin_s < each.end_s <= end_s)
        required = kind if truth_s else "unknown"
        what = f"{begin_s - begun_s:.0f} to {end_s - begun_s:.0f} s: "
        found_s = throttled_seconds(own)
        loaded_s = end_s - begin_s
        yield from time_problems(required, found_s, truth_s, loaded_s, what, is_settled=True)


def disagreements(
    rows: Sequence[WindowRecord], others: Sequence[Sequence[WindowRecord]]
) -> Iterable[str]:
    """Yield a message for each other recorder that found more or less in the time of both."""
    for number, other in enumerate(others, start=1):
        (begin_s, end_s), (other_begin_s, other_end_s) = _seen(rows), _seen(other)
        begin_s, end_s = max(begin_s, other_begin_s), min(end_s, other_end_s)
        if end_s - begin_s < _SHORTEST_S:
            continue
        found, others_found = (
            throttled_seconds(rows_within(each, begin_s, end_s)) / (end_s - begin_s)
            for each in (rows, other)
        )
        if abs(found - others_found) > AGREEMENT:
            yield f"throttled for {found:.1%}, {others_found:.1%} by {number} in the same time"
