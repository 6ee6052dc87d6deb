"""Windows of a limiter: the curve of what was served rises in equal steps.

A limiter with windows admits the same amount in each. Where the time between two samples is no
multiple of them, samples count now one window more and now one less (34, 51, 34 of a limiter that
admits 17 every 40 ms): the curve is no straight line, but at each sample it is a whole number of
windows, and that number is in proportion to time.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import median
from typing import NamedTuple

from disksla.verdict.constant_rate import amounts_of
from disksla.verdict.interval import Interval
from disksla.verdict.parameters import P


class LimiterWindow(NamedTuple):
    """The window of a limiter, as it was found."""

    amount: float
    """What it admits in each, in requests."""
    seconds: float
    is_certain: bool
    """Not all releases have the same number of windows, or each has one that is longer than a
    sample. Otherwise, that number may be another."""


def is_due(releases: tuple[Interval, ...]) -> bool:
    """Return whether to look for a limiter after the last release: it costs as much as some ticks.

    Once one was found, it is looked for after each while requests wait.
    """
    return releases[-1].end_s % P.window_check_s < releases[-1].seconds


def limiter_window(releases: tuple[Interval, ...], tick_s: float) -> LimiterWindow | None:
    """Return the window of a limiter that has admitted all releases; None if there is none."""
    requests = sum(release.reads + release.writes for release in releases)
    if len(releases) < P.window_releases or requests < P.window_requests:
        return None
    lengths_s = [release.seconds for release in releases]
    for amounts in amounts_of(releases):
        for amount in _likely_amounts(amounts):
            if _may_be_window(amounts, amount, sum(lengths_s), tick_s):
                window = _window(amounts, lengths_s, amount, tick_s)
                if window is not None:
                    return window
    return None


def window_length_s(releases: tuple[Interval, ...], tick_s: float) -> float | None:
    """Return the time between two windows of a limiter; None if it is not certain."""
    window = limiter_window(releases, tick_s)
    return window.seconds if window is not None and window.is_certain else None


def _likely_amounts(amounts: Sequence[float]) -> list[float]:
    """Return what may be admitted in a window: all of a release, or the part in which two differ.

    The difference of two is a whole number, and what is admitted need not be.
    """
    ordered = sorted(amounts)
    gaps = [higher - lower for lower, higher in pairwise(ordered)]
    number = gaps.index(max(gaps)) + 1
    fewer, more = median(ordered[:number]), median(ordered[number:])
    likely = [median(ordered)]
    if more > fewer:
        likely.append(more / round(more / (more - fewer)))
    return [amount for amount in likely if amount >= P.window_requests]


def _may_be_window(amounts: Sequence[float], amount: float, seconds: float, tick_s: float) -> bool:
    """Return whether most amounts are near multiples of one: a first test, which costs little.

    One window in each sample is not evidence: any constant rate is like that, also if one sample
    is late.
    """
    if _is_near(round(sum(amounts) / amount) * tick_s, seconds, tick_s):
        return False
    near = sum(_beyond(each, amount) <= 2 * P.irregular_requests for each in amounts)
    return near >= (1 - 2 * P.straight_skipped_share) * len(amounts)


def _is_near(seconds: float, other_s: float, tick_s: float) -> bool:
    """Return whether two times are the same but for one sample that was late."""
    return abs(seconds - other_s) < 1.5 * tick_s


def _window(
    amounts: Sequence[float], lengths_s: Sequence[float], amount: float, tick_s: float
) -> LimiterWindow | None:
    """Return the window if the sums of amounts are whole numbers of it, at a constant rate.

    A few may not be: a sample was taken while the limiter let requests pass. So the sums begin
    with an amount that is one.
    """
    off = (_beyond(each, amount) for each in amounts[: P.straight_releases])
    first = next((at for at, each in enumerate(off) if each <= P.irregular_requests), 0)
    amounts, lengths_s = amounts[first:], lengths_s[first:]
    totals = [0.0, *accumulate(amounts)]
    windows = _windows(totals, amount)
    amount, window_s = totals[-1] / windows[-1], sum(lengths_s) / windows[-1]
    if not _has_steps(amounts, lengths_s, amount, tick_s):
        return None
    beyond = [total - amount * number for total, number in zip(totals, windows, strict=True)]
    start = median(beyond)
    between = sum(abs(each - start) > P.irregular_requests for each in beyond)
    if amount < P.window_requests or between > P.straight_skipped_share * len(amounts):
        return None
    late_s = [
        at_s - number * window_s
        for at_s, number in zip(accumulate(lengths_s, initial=0.0), windows, strict=True)
    ]
    if max(late_s) - min(late_s) > P.window_late_ratio * window_s:
        return None
    is_certain = _is_certain(windows, sum(lengths_s), tick_s)
    return LimiterWindow(amount, window_s, is_certain)


def _has_steps(
    amounts: Sequence[float], lengths_s: Sequence[float], amount: float, tick_s: float
) -> bool:
    """Return whether some release has more or less than its time explains, by half a window.

    Samples that are as late as each other would have windows at any constant rate. Where requests
    were silent for a sample, there are steps.
    """
    rate = sum(amounts) / sum(lengths_s)
    return max(lengths_s) > 1.5 * tick_s or any(
        abs(each - rate * length_s) > amount / 2
        for each, length_s in zip(amounts, lengths_s, strict=True)
    )


def _is_certain(windows: Sequence[int], seconds: float, tick_s: float) -> bool:
    """Return whether no other number of windows explains the releases.

    Where their number is the same in nearly all, or is that of samples on average, each may be two
    windows, or half of one.
    """
    numbers = Counter(later - earlier for earlier, later in pairwise(windows))
    [(usual, times)] = numbers.most_common(1)
    in_each = round(windows[-1] * tick_s / seconds)
    if in_each and _is_near(windows[-1] * tick_s, in_each * seconds, tick_s):
        return False
    return usual == 1 or times < P.window_same_share * (len(windows) - 1)


def _beyond(total: float, amount: float) -> float:
    """Return by how much a number of requests differs from the nearest multiple of an amount."""
    return abs(total - amount * round(total / amount))


def _windows(totals: Sequence[float], amount: float) -> list[int]:
    """Return how many windows each total has; what is left of one counts with the next."""
    windows = [0]
    for total in totals[1:]:
        windows.append(windows[-1] + max(0, round((total - amount * windows[-1]) / amount)))
        if windows[-1]:
            amount = total / windows[-1]
    windows[-1] = max(1, windows[-1])
    return windows
