"""Comparison of window records with the truth. Pure functions.

A verdict depends on ten seconds. So throttled seconds, limits and windows of the limiter are
compared from ten seconds after a load began, where it lasts for twenty or more, and not in the ten
seconds after a change of a long run. What must never be said is looked for at all times.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from disksla.state.pipeline.window_records import WindowRecord
from lab.replay import is_loaded
from lab.scenario import Expectation
from lab.truth import WINDOW_S, Window

SETTLED_S = 10.0
"""A verdict depends on nothing older."""
LONG_LOAD_S = 20.0
"""Of a load that is so long, the first SETTLED_S are not compared."""
BELOW_WITHIN_S = 2.0
BELOW_EARLY_S = 1.0
"""A second is below the promise as a whole, so its first windows may be too early."""
LEAST_LEFT_S = 1.0
"""Shortest time to exhaustion that is compared: a tenth of less is within one window."""


class Facts(msgspec.Struct, frozen=True):
    """Facts about one disk that are not in its log."""

    limit_rate: float | None = None
    """Rate of the last limit, in requests or bytes per second."""
    is_bandwidth: bool = False
    """Whether the rate is in bytes."""
    limiter_window_s: float | None = None
    """0 if tokens are added continuously; None without a limiter."""
    capacities: dict[str, float] = {}
    """Capacity of the credits, by resource."""
    is_changed: bool = False
    """Whether the limit was changed: a lowered limit looks like the end of a burst."""
    machine_iowait_s: float | None = None
    """iowait of all CPUs, for any reason."""


class Findings(msgspec.Struct, frozen=True):
    """Differences between the records and the truth; None if there is nothing to compare."""

    facts: Facts
    truth_s: float
    """Seconds in which at least one request waited for the limiter; of those that are compared."""
    reported_s: float
    """Throttled seconds by the verdicts; of those that are compared."""
    loaded_s: float
    """Of those that are compared."""
    verdict_s: dict[str, float]
    loaded_verdict_s: dict[str, float]
    """Seconds by verdict, of windows under load."""
    limits: dict[str, float]
    """Throttled seconds by reported limit; of those that are compared."""
    is_settled: bool = False
    """Whether those that are compared begin after a load has settled."""
    limits_ever: dict[str, float] = {}
    """The same, of all times."""
    limiter_window_s: float | None = None
    """As it was found; None if it was not."""
    ceiling_error: float | None = None
    true_stalled_s: float = 0.0
    below_delay_s: float | None = None
    below_early_s: float = 0.0
    below_share: float | None = None
    credit_violation_share: float | None = None
    """Worst distance of the truth from the bounds, as a share of the capacity; 0 if within."""
    credit_width_share: float | None = None
    """Distance of the bounds at the end, as a share of the capacity."""
    credit_estimate_error_share: float | None = None
    empty_error: float | None = None
    """Worst error of the time to exhaustion, relative to the true time."""
    attributed_iowait_s: float | None = None


def judge(
    truth: Sequence[Window],
    rows: Iterable[WindowRecord],
    facts: Facts,
    expectation: Expectation,
    changes_s: Sequence[float] = (),
) -> Findings:
    """Compare the records of one disk with the truth.

    The SETTLED_S after each of `changes_s` are not compared, unless nothing may be throttled.
    """
    begun_s = truth[0].start_s
    judged = rows_within(rows, begun_s, truth[-1].end_s)
    loaded = [row for row in judged if is_loaded(row)]
    if expectation.throttled == "never":
        changes_s = ()
    settled = [row for row in judged if is_settled(row.monotonic_s, changes_s)]
    iowait_s = [row.throttled_iowait_s for row in judged if row.throttled_iowait_s is not None]
    return Findings(
        facts,
        sum(window.throttled_s for window in truth if is_settled(window.end_s, changes_s)),
        throttled_seconds(settled),
        seconds_of(row for row in settled if is_loaded(row)),
        _by(judged, lambda row: row.verdict),
        _by(loaded, lambda row: row.verdict),
        _by_limit(settled),
        bool(changes_s),
        _by_limit(judged),
        _last(settled, lambda row: row.limiter_window_s or None),
        _ceiling_error(judged, facts),
        sum(window.end_s - window.start_s for window in truth if window.stalled),
        *_below(judged, begun_s, expectation.below_since),
        *_credits(truth, judged, facts.capacities),
        _empty_error(truth, judged, expectation.empty_since),
        sum(iowait_s) if iowait_s else None,
    )


def rows_within(rows: Iterable[WindowRecord], begin_s: float, end_s: float) -> list[WindowRecord]:
    """Return the records of windows that end in a time."""
    return [row for row in rows if row.window_s is not None and begin_s < row.monotonic_s <= end_s]


def is_settled(at_s: float, changes_s: Iterable[float]) -> bool:
    """Return whether nothing changed in the SETTLED_S before."""
    return not any(change_s < at_s <= change_s + SETTLED_S for change_s in changes_s)


def throttled_seconds(rows: Iterable[WindowRecord]) -> float:
    """Return the throttled seconds by the verdicts."""
    return sum(row.throttled_s or 0.0 for row in rows if row.verdict == "throttled")


def seconds_of(rows: Iterable[WindowRecord]) -> float:
    """Return the time of windows."""
    return sum(row.window_s or 0.0 for row in rows)


def _by_limit(rows: Iterable[WindowRecord]) -> dict[str, float]:
    return _by([row for row in rows if row.verdict == "throttled"], lambda row: row.limit)


def _by(
    rows: Iterable[WindowRecord], key: Callable[[WindowRecord], str | None]
) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for row in rows:
        name = key(row) or "none"
        seconds[name] = seconds.get(name, 0.0) + (row.window_s or 0.0)
    return seconds


def _last(
    rows: Sequence[WindowRecord], value: Callable[[WindowRecord], float | None]
) -> float | None:
    return next((found for row in reversed(rows) if (found := value(row)) is not None), None)


def _ceiling_error(judged: Sequence[WindowRecord], facts: Facts) -> float | None:
    if facts.is_bandwidth:
        ceiling = _last(judged, lambda row: row.ceiling_bytes_per_second)
    else:
        ceiling = _last(judged, lambda row: row.ceiling_iops)
    return None if ceiling is None or not facts.limit_rate else ceiling / facts.limit_rate - 1


def _below(
    judged: Sequence[WindowRecord], begun_s: float, since_s: float | None
) -> tuple[float | None, float, float | None]:
    if since_s is None:
        return None, 0.0, None
    loaded = [row for row in judged if is_loaded(row)]
    after = [row for row in loaded if row.monotonic_s > begun_s + since_s]
    early_s = seconds_of(
        row
        for row in judged
        if row.verdict == "below" and row.monotonic_s <= begun_s + since_s - BELOW_EARLY_S
    )
    if not after:
        return None, early_s, None
    onset_s = max(begun_s + since_s, after[0].monotonic_s - WINDOW_S)
    first = next((row.monotonic_s for row in after if row.verdict == "below"), None)
    late = [row for row in after if row.monotonic_s > onset_s + BELOW_WITHIN_S]
    share = seconds_of(row for row in late if row.verdict == "below") / (seconds_of(late) or 1.0)
    return None if first is None else first - onset_s, early_s, share


def _credits(
    truth: Sequence[Window], judged: Sequence[WindowRecord], capacities: dict[str, float]
) -> tuple[float | None, float | None, float | None]:
    """Compare bounds with the levels of the windows around them; the log has levels at ends only.

    One request may overdraw a bucket: it is empty then, and its level in the log is negative.
    """
    worst = width = error = None
    for row in judged:
        near = [
            window
            for window in truth
            if abs(window.end_s - row.monotonic_s) <= WINDOW_S + WINDOW_S / 2
        ]
        for credit in row.credits if near else ():
            levels = [max(0.0, window.credits[credit.resource]) for window in near]
            capacity = capacities[credit.resource]
            too_high = credit.lower_credits - max(levels)
            too_low = min(levels) - credit.upper_credits
            worst = max(worst or 0.0, too_high / capacity, too_low / capacity)
            width = (credit.upper_credits - credit.lower_credits) / capacity
            nearest = min(near, key=lambda window: abs(window.end_s - row.monotonic_s))
            level = max(0.0, nearest.credits[credit.resource])
            error = (credit.estimate_credits - level) / capacity
    return worst, width, error


def _empty_error(
    truth: Sequence[Window], judged: Sequence[WindowRecord], since_s: float | None
) -> float | None:
    """Compare the time to exhaustion with the time at which the disk was throttled at its base."""
    if since_s is None:
        return None
    from_s = truth[0].start_s + since_s
    empty = (window.end_s for window in truth if window.end_s > from_s and window.rate == "base")
    empty_s = next(empty, from_s)
    errors = [
        credit.exhaustion_s / (empty_s - row.monotonic_s) - 1
        for row in judged
        if from_s <= row.monotonic_s <= empty_s - LEAST_LEFT_S
        for credit in row.credits
    ]
    return max(errors, key=abs, default=None)
