"""What disksla said, held against what really happened. Values in, values out."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from disksla.pipeline.window_records import WindowRecord
from lab.account import is_loaded
from lab.scenario import Expectation
from lab.truth import WINDOW_S, Window

BELOW_WITHIN_S = 2.0
LEAST_LEFT_S = 1.0
"""Of less, a tenth is no more than a window."""
_SHORTEST_EPISODE_S = 0.5
_SAME_EPISODE_S = 0.25


class Facts(msgspec.Struct, frozen=True):
    """What the lab knows of one disk beyond its log."""

    held_rate: float | None = None
    """At which it was held in the end, in requests or bytes per second."""
    is_bandwidth: bool = False
    """It was bytes."""
    drips: bool = False
    """Its bucket has no windows."""
    capacities: dict[str, float] = {}
    """Of credits, by resource."""
    machine_iowait_s: float | None = None
    """What all CPUs were in iowait, for whatever reason."""


class Episode(msgspec.Struct, frozen=True):
    """A time for which a disk was held without a break worth the name."""

    start_s: float
    end_s: float


class Findings(msgspec.Struct, frozen=True):
    """How near disksla came; None where there is nothing to compare."""

    truth_s: float
    """Throttled, really."""
    said_s: float
    episodes: int
    loaded_s: float
    share_error: float
    """Of throttled windows among those under load."""
    verdict_s: dict[str, float]
    loaded_verdict_s: dict[str, float]
    """Of windows in which the disk had anything to do."""
    limits: dict[str, float]
    """Throttled seconds by the limit that was named."""
    onset_delay_s: float | None = None
    """Longest time from the onset of an episode to the end of the first window called so."""
    end_delay_s: float | None = None
    """Longest time between the end of an episode and that of the last window called so."""
    ceiling_error: float | None = None
    stalled_truth_s: float = 0.0
    wait_truth_s: float = 0.0
    wait_said_s: float | None = None
    below_delay_s: float | None = None
    below_early_s: float = 0.0
    below_share: float | None = None
    credit_violation_share: float | None = None
    """By how much of the capacity a bound missed the truth, at worst."""
    credit_width_share: float | None = None
    """Distance of the bounds in the end."""
    credit_estimate_error_share: float | None = None
    empty_error: float | None = None
    """Of the time to exhaustion, relative to what was really left: the worst."""
    iowait_said_s: float | None = None
    iowait_machine_s: float | None = None


def is_throttled(window: Window, *, drips: bool) -> bool:
    """Tell whether the limiter held a request at the close, which is what throttled means.

    A bucket that drips lets somebody go all the time, so that whether one is held at the very
    moment is chance: there, it must have held for half of the window.
    """
    return window.holding_s >= WINDOW_S / 2 if drips else window.held > 0


def episodes_of(windows: Sequence[Window], *, drips: bool) -> list[Episode]:
    """Give the times for which the disk was held; breaks of two windows do not count."""
    episodes: list[Episode] = []
    for window in windows:
        if not is_throttled(window, drips=drips):
            continue
        if episodes and window.start_s - episodes[-1].end_s < _SAME_EPISODE_S:
            episodes[-1] = Episode(episodes[-1].start_s, window.end_s)
        else:
            episodes.append(Episode(window.end_s - window.holding_s, window.end_s))
    return episodes


def judge(
    truth: Sequence[Window], rows: Iterable[WindowRecord], facts: Facts, expectation: Expectation
) -> Findings:
    """Compare what was said of one disk with the truth about it."""
    begun_s = truth[0].start_s
    said = [
        row
        for row in rows
        if row.window_s is not None and begun_s < row.monotonic_s <= truth[-1].end_s
    ]
    throttled = [row for row in said if row.verdict == "throttled"]
    episodes = episodes_of(truth, drips=facts.drips)
    truth_s = sum(
        window.end_s - window.start_s
        for window in truth
        if is_throttled(window, drips=facts.drips)
    )
    said_s = _seconds(throttled)
    loaded_s = _seconds(row for row in said if is_loaded(row))
    onset_delay_s, end_delay_s = _delays(episodes, throttled)
    below = _below(said, begun_s, expectation.below_since)
    credit = _credits(truth, said, facts.capacities)
    return Findings(
        truth_s,
        said_s,
        len(episodes),
        loaded_s,
        (said_s - truth_s) / loaded_s if loaded_s else 0.0,
        _by(said, lambda row: row.verdict),
        _by([row for row in said if is_loaded(row)], lambda row: row.verdict),
        _by(throttled, lambda row: row.limit),
        onset_delay_s,
        end_delay_s,
        _ceiling_error(said, facts),
        sum(window.end_s - window.start_s for window in truth if window.stalled),
        sum(window.wait_s for window in truth),
        _total(row.throttle_wait_s for row in said),
        *below,
        *credit,
        _empty_error(truth, said, expectation.empty_since),
        _total(row.throttled_iowait_s for row in said),
        facts.machine_iowait_s,
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
        later = episodes[number + 1].start_s if number + 1 < len(episodes) else float("inf")
        own = [row.monotonic_s for row in throttled if episode.start_s < row.monotonic_s <= later]
        if not own:
            return None, None
        onsets.append(own[0] - episode.start_s)
        ends.append(abs(own[-1] - episode.end_s))
    return max(onsets, default=None), max(ends, default=None)


def _ceiling_error(said: Sequence[WindowRecord], facts: Facts) -> float | None:
    ceilings = [
        ceiling
        for row in said
        if (ceiling := row.ceiling_bytes_per_second if facts.is_bandwidth else row.ceiling_iops)
        is not None
    ]
    if facts.held_rate is None or not ceilings:
        return None
    return ceilings[-1] / facts.held_rate - 1


def _below(
    said: Sequence[WindowRecord], begun_s: float, since_s: float | None
) -> tuple[float | None, float, float | None]:
    if since_s is None:
        return None, 0.0, None
    loaded = [row for row in said if is_loaded(row)]
    after = [row for row in loaded if row.monotonic_s > begun_s + since_s]
    early_s = _seconds(
        row for row in said if row.verdict == "below" and row.monotonic_s <= begun_s + since_s
    )
    if not after:
        return None, early_s, None
    onset_s = max(begun_s + since_s, after[0].monotonic_s - WINDOW_S)
    first = next((row.monotonic_s for row in after if row.verdict == "below"), None)
    late = [row for row in after if row.monotonic_s > onset_s + BELOW_WITHIN_S]
    share = _seconds(row for row in late if row.verdict == "below") / (_seconds(late) or 1.0)
    return None if first is None else first - onset_s, early_s, share


def _credits(
    truth: Sequence[Window], said: Sequence[WindowRecord], capacities: dict[str, float]
) -> tuple[float | None, float | None, float | None]:
    """Hold bounds against the levels around their time: the log has levels at closes only.

    One request may overdraw a bucket: it is empty then, and its level in the log below nothing.
    """
    worst = width = error = None
    for row in said:
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
    truth: Sequence[Window], said: Sequence[WindowRecord], since_s: float | None
) -> float | None:
    """Hold the time to exhaustion against when the disk was held at its base in the end."""
    if since_s is None:
        return None
    from_s = truth[0].start_s + since_s
    gone = (window.end_s for window in truth if window.end_s > from_s and window.rate == "base")
    gone_s = next(gone, from_s)
    errors = [
        credit.exhaustion_s / (gone_s - row.monotonic_s) - 1
        for row in said
        if from_s <= row.monotonic_s <= gone_s - LEAST_LEFT_S
        for credit in row.credits
    ]
    return max(errors, key=abs, default=None)


def relative(said: float | None, truth: float) -> float | None:
    """Give by how much of the truth something is off; None if nothing is to be compared."""
    return None if said is None or not truth else said / truth - 1
