"""Comparison of window records with the truth. Pure functions."""

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from disksla.pipeline.window_records import WindowRecord
from lab.replay import is_loaded
from lab.scenario import Expectation
from lab.truth import WINDOW_S, Window

BELOW_WITHIN_S = 2.0
LEAST_LEFT_S = 1.0
"""Shortest time to exhaustion that is compared: a tenth of less is within one window."""
_SHORTEST_EPISODE_S = 0.5
_SAME_EPISODE_S = 0.25
_SMOOTH_SHARE = 0.5
"""Share of a window in which requests wait at a smooth bucket, in truth and by the verdicts."""


class Facts(msgspec.Struct, frozen=True):
    """Facts about one disk that are not in its log."""

    limit_rate: float | None = None
    """Rate of the last limit, in requests or bytes per second."""
    is_bandwidth: bool = False
    """Whether the rate is in bytes."""
    is_smooth: bool = False
    """Whether tokens are added continuously, not once per window."""
    capacities: dict[str, float] = {}
    """Capacity of the credits, by resource."""
    machine_iowait_s: float | None = None
    """iowait of all CPUs, for any reason."""
    limiter_window_s: float | None = None
    """0 if tokens are added continuously; None without a limiter."""
    is_changed: bool = False
    """Whether the limit was changed: a lowered limit looks like the end of a burst."""
    slower_before_s: float = 0.0
    """I/O-seconds by which all requests would take longer at the service time of a lighter load
    before."""
    unlearned_s: float = 0.0
    """I/O-seconds that the first requests needed of the disk, if they waited from the start."""


class Episode(msgspec.Struct, frozen=True):
    """Time in which a disk was throttled, without a break longer than two windows."""

    start_s: float
    end_s: float


class Findings(msgspec.Struct, frozen=True):
    """Differences between the records and the truth; None if there is nothing to compare."""

    truth_s: float
    """Seconds in which at least one request waited for the limiter."""
    truth_windows_s: float
    """Seconds of the windows at whose end one waited."""
    reported_s: float
    """Throttled seconds by the verdicts."""
    episodes: int
    loaded_s: float
    share_error: float
    """Error of the throttled share of the time under load."""
    verdict_s: dict[str, float]
    loaded_verdict_s: dict[str, float]
    """Seconds by verdict, of windows under load."""
    limits: dict[str, float]
    """Throttled seconds by reported limit."""
    onset_delay_s: float | None = None
    """Longest time from the start of an episode to the end of its first throttled window."""
    end_delay_s: float | None = None
    """Longest time between the end of an episode and the end of its last throttled window."""
    ceiling_error: float | None = None
    true_stalled_s: float = 0.0
    true_wait_s: float = 0.0
    reported_wait_s: float | None = None
    slower_before_s: float = 0.0
    """I/O-seconds of waiting that samples of a leaky bucket need not show (`Facts`)."""
    unlearned_s: float = 0.0
    """I/O-seconds without waiting that samples may show as waiting (`Facts`)."""
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
    machine_iowait_s: float | None = None
    limiter_window_s: float | None = None
    """As it was found; None if it was not."""
    true_limiter_window_s: float | None = None
    burst_depth: float | None = None
    """As it was found, in requests or in bytes; None if it was not."""
    true_burst_depth: float | None = None
    """Capacity of the credits; None without."""


def is_throttled(window: Window, *, is_smooth: bool) -> bool:
    """Return whether a request waited for the limiter at the end of a window.

    A smooth bucket admits requests all the time, so whether one waits at the end is chance: there,
    requests must have waited for half of the window.
    """
    return window.throttled_s >= _SMOOTH_SHARE * WINDOW_S if is_smooth else window.waiting > 0


def episodes_of(windows: Sequence[Window], *, is_smooth: bool) -> list[Episode]:
    """Return the times in which the disk was throttled; breaks of two windows do not count."""
    episodes: list[Episode] = []
    for window in windows:
        if not is_throttled(window, is_smooth=is_smooth):
            continue
        if episodes and window.start_s - episodes[-1].end_s < _SAME_EPISODE_S:
            episodes[-1] = Episode(episodes[-1].start_s, window.end_s)
        else:
            episodes.append(Episode(window.end_s - window.throttled_s, window.end_s))
    return episodes


def judge(
    truth: Sequence[Window], rows: Iterable[WindowRecord], facts: Facts, expectation: Expectation
) -> Findings:
    """Compare the records of one disk with the truth."""
    begun_s = truth[0].start_s
    judged = [
        row
        for row in rows
        if row.window_s is not None and begun_s < row.monotonic_s <= truth[-1].end_s
    ]
    throttled = [row for row in judged if row.verdict == "throttled"]
    episodes = episodes_of(truth, is_smooth=facts.is_smooth)
    truth_s = sum(window.throttled_s for window in truth)
    truth_windows_s = sum(
        window.end_s - window.start_s
        for window in truth
        if is_throttled(window, is_smooth=facts.is_smooth)
    )
    reported_s = sum(row.throttled_s or 0.0 for row in throttled)
    loaded_s = _seconds(row for row in judged if is_loaded(row))
    least = _SMOOTH_SHARE if facts.is_smooth else 0.0
    lasting = [
        row for row in throttled if (row.throttled_s or 0.0) >= least * (row.window_s or 0.0)
    ]
    onset_delay_s, end_delay_s = _delays(episodes, lasting)
    below = _below(judged, begun_s, expectation.below_since)
    credit = _credits(truth, judged, facts.capacities)
    return Findings(
        truth_s,
        truth_windows_s,
        reported_s,
        len(episodes),
        loaded_s,
        (reported_s - truth_s) / loaded_s if loaded_s else 0.0,
        _by(judged, lambda row: row.verdict),
        _by([row for row in judged if is_loaded(row)], lambda row: row.verdict),
        _by(throttled, lambda row: row.limit),
        onset_delay_s,
        end_delay_s,
        _ceiling_error(judged, facts),
        sum(window.end_s - window.start_s for window in truth if window.stalled),
        sum(window.wait_s for window in truth),
        _total(row.throttle_wait_s for row in judged),
        facts.slower_before_s if facts.is_smooth else 0.0,
        facts.unlearned_s,
        *below,
        *credit,
        _empty_error(truth, judged, expectation.empty_since),
        _total(row.throttled_iowait_s for row in judged),
        facts.machine_iowait_s,
        next((row.limiter_window_s for row in reversed(judged) if row.limiter_window_s), None),
        facts.limiter_window_s,
        None if facts.is_changed else _burst_depth(judged, facts),
        next(iter(facts.capacities.values()), None),
    )


def _seconds(rows: Iterable[WindowRecord]) -> float:
    return sum(row.window_s or 0.0 for row in rows)


def _by(
    rows: Iterable[WindowRecord], key: Callable[[WindowRecord], str | None]
) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for row in rows:
        name = key(row) or "none"
        seconds[name] = seconds.get(name, 0.0) + (row.window_s or 0.0)
    return seconds


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _delays(
    episodes: Sequence[Episode], throttled: Sequence[WindowRecord]
) -> tuple[float | None, float | None]:
    onsets: list[float] = []
    ends: list[float] = []
    for number, episode in enumerate(episodes):
        if episode.end_s - episode.start_s < _SHORTEST_EPISODE_S:
            continue
        # The first window of the next episode may end before its start, which is not certain.
        later = [each.start_s - WINDOW_S for each in episodes[number + 1 : number + 2]]
        own = [
            row.monotonic_s
            for row in throttled
            if episode.start_s < row.monotonic_s <= min(later, default=math.inf)
        ]
        if not own:
            return None, None
        onsets.append(own[0] - episode.start_s)
        ends.append(abs(own[-1] - episode.end_s))
    return max(onsets, default=None), max(ends, default=None)


def _ceiling_error(judged: Sequence[WindowRecord], facts: Facts) -> float | None:
    ceilings = [
        ceiling
        for row in judged
        if (ceiling := row.ceiling_bytes_per_second if facts.is_bandwidth else row.ceiling_iops)
        is not None
    ]
    if facts.limit_rate is None or not ceilings:
        return None
    return ceilings[-1] / facts.limit_rate - 1


def _burst_depth(judged: Sequence[WindowRecord], facts: Facts) -> float | None:
    depths = (
        row.burst_depth_bytes if facts.is_bandwidth else row.burst_depth_requests
        for row in reversed(judged)
    )
    return next((depth for depth in depths if depth is not None), None)


def _below(
    judged: Sequence[WindowRecord], begun_s: float, since_s: float | None
) -> tuple[float | None, float, float | None]:
    if since_s is None:
        return None, 0.0, None
    loaded = [row for row in judged if is_loaded(row)]
    after = [row for row in loaded if row.monotonic_s > begun_s + since_s]
    early_s = _seconds(
        row for row in judged if row.verdict == "below" and row.monotonic_s <= begun_s + since_s
    )
    if not after:
        return None, early_s, None
    onset_s = max(begun_s + since_s, after[0].monotonic_s - WINDOW_S)
    first = next((row.monotonic_s for row in after if row.verdict == "below"), None)
    late = [row for row in after if row.monotonic_s > onset_s + BELOW_WITHIN_S]
    share = _seconds(row for row in late if row.verdict == "below") / (_seconds(late) or 1.0)
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


def relative_error(reported: float | None, truth: float) -> float | None:
    """Return the error as a share of the truth; None if there is nothing to compare."""
    return None if reported is None or not truth else reported / truth - 1
