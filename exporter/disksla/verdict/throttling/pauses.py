"""The first sign of a limiter: pauses, whose ends are apart by the limiter's window.

A limiter with windows lets requests pass at the start of each, until its tokens are used. Then
requests are in flight and nothing completes, until the next window begins. A disk may pause, too:
but the ends of its pauses drift, while those of a limiter are those of a clock.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from disksla.verdict.interval import Interval
from disksla.verdict.throttling.observation import LATE_S, LONGEST_STEP_S

CHANCE = 1e-4
"""Probability by which pauses may end in time with a clock by chance."""
ON_TIME_SHARE = 0.7
"""Of the pauses. So many end in time with the clock, or it is not what makes requests wait."""
LONGEST_WINDOW_S = 1.1
"""Limiters have windows of up to a second."""
_TRIED = 4
"""The last pauses are tried as neighbours in time with the clock."""


class Pause(NamedTuple):
    """A time in which requests were in flight and no data was transferred."""

    begin_s: float
    """Likely time of the last completion before it."""
    last_s: float
    """The last sample within it."""
    end_s: float
    """The first sample after it; the same as `last_s` while it lasts."""
    at_s: float
    """Likely time of its end."""
    error_s: float
    """By how much that may be wrong."""
    steps: int
    """Silent ones."""
    flush_s: float
    """Time that flushes took which completed within it, or in the step that ended it."""
    inflight: int
    """Least requests in flight."""

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.end_s == self.last_s

    @property
    def seconds(self) -> float:
        """Its length, without a flush if no other request was in flight: none waited then."""
        flush_s = self.flush_s if self.inflight == 1 else 0.0
        return self.at_s - self.begin_s - flush_s


def find_pauses(steps: Iterable[Interval]) -> list[Pause]:
    """Return the pauses, but for those in which the disk flushed its cache for most of the time.

    The last one may not have ended.
    """
    found: list[Pause] = []
    silent: list[Interval] = []
    begin_s = before_s = half_s = 0.0
    for step in steps:
        start_s = step.end_s - step.seconds
        if start_s - before_s > LONGEST_STEP_S:
            silent, half_s = [], 0.0
        before_s = step.end_s
        if step.is_pause:
            begin_s = begin_s if silent else start_s - half_s
            silent.append(step)
            continue
        if silent and step.bytes:
            found.append(_pause(begin_s, silent, step))
        silent, half_s = [], step.seconds / 2
    if silent:
        found.append(_pause(begin_s, silent, None))
    return [pause for pause in found if pause.flush_s <= (pause.at_s - pause.begin_s) / 2]


def _pause(begin_s: float, silent: Sequence[Interval], ended_by: Interval | None) -> Pause:
    """Return the pause of silent steps, and of the step that ended it, if one did."""
    last_s = silent[-1].end_s
    end_s = last_s if ended_by is None else ended_by.end_s
    of_flushes = silent if ended_by is None else (*silent, ended_by)
    return Pause(
        begin_s=begin_s,
        last_s=last_s,
        end_s=end_s,
        at_s=(last_s + end_s) / 2,
        error_s=(end_s - last_s) / 2 + LATE_S,
        steps=len(silent),
        flush_s=sum(step.flush_ms for step in of_flushes) / 1000,
        inflight=min(step.inflight for step in silent),
    )


class Clock(NamedTuple):
    """The windows of a limiter."""

    window_s: float
    phases: tuple[tuple[float, float, float], ...]
    """From a time to another, the time at which a window begins, as between pauses that are far
    apart it is not known how many there were."""

    def number(self, pause: Pause, slack: int = 1) -> int | None:
        """Return the number of the window that ends a pause; None if it is not on time.

        The sample or the request that ended it may be late by `slack` times the usual error.
        """
        for from_s, to_s, phase_s in self.phases:
            if from_s <= pause.at_s <= to_s:
                number = round((pause.at_s - phase_s) / self.window_s)
                late_s = pause.at_s - phase_s - number * self.window_s
                return number if abs(late_s) <= slack * pause.error_s else None
        return None


def find_clock(pauses: Iterable[Pause]) -> Clock | None:
    """Return the clock of pauses that have ended; None if they are too few, or end at any time.

    If all together have none, because samples were late, those of one look may have one.
    """
    ended = tuple(pause for pause in pauses if pause.steps > 1 and not pause.is_open)
    groups = [tuple(group) for group in reversed(_groups(ended))]
    tried = [ended, *groups] if len(groups) > 1 else [ended]
    clocks = (_clock_of(each) for each in tried)
    return next((clock for clock in clocks if clock is not None), None)


@lru_cache(maxsize=64)  # between two looks at a disk, its pauses are the same
def _clock_of(ended: tuple[Pause, ...]) -> Clock | None:
    groups = _groups(ended)
    if not groups:
        return None
    best: tuple[float, Clock] | None = None
    for parts, window_s in _likely_windows(max(groups, key=len)):
        clock = Clock(window_s, tuple(_phase(group, window_s) for group in groups))
        on_time = [pause for pause in ended if clock.number(pause) is not None]
        if len(on_time) < ON_TIME_SHARE * len(ended):
            continue
        chance = math.comb(len(ended), len(on_time)) * _chance(on_time, window_s, len(groups))
        if best is None or chance < best[0]:
            best = chance, clock
        if parts == 1 and chance <= CHANCE**3:
            break  # it is no part of a longer window
    return best[1] if best is not None and best[0] <= CHANCE else None


def _groups(pauses: Sequence[Pause]) -> list[list[Pause]]:
    """Return pauses that follow each other within a window or two."""
    groups: list[list[Pause]] = []
    for pause in pauses:
        if not groups or pause.at_s - groups[-1][-1].at_s > 2 * LONGEST_WINDOW_S:
            groups.append([])
        groups[-1].append(pause)
    return groups


def _likely_windows(pauses: Sequence[Pause]) -> Iterable[tuple[int, float]]:
    """Yield the windows that some of the last pauses are apart, fitted to all that are on time.

    Before each is how many of it two pauses are apart, the least first.
    """
    for parts in (1, 2, 3):
        for last in range(len(pauses) - 1, max(0, len(pauses) - 1 - _TRIED), -1):
            for first in range(last - 1, max(-1, last - 3), -1):
                apart_s = pauses[last].at_s - pauses[first].at_s
                shortest_s = 2 * (pauses[last].error_s + pauses[first].error_s)
                if shortest_s <= apart_s / parts <= LONGEST_WINDOW_S:
                    fitted_s = _fitted_window_s(pauses[: last + 1], first, parts)
                    if fitted_s is not None:
                        yield parts, fitted_s


def _fitted_window_s(pauses: Sequence[Pause], first: int, parts: int) -> float | None:
    """Return the window by linear regression over the pauses on time, from the last back.

    The last pause is `parts` windows after the `first`. None if all are a multiple of the window
    apart.
    """
    last = pauses[-1]
    window_s = (last.at_s - pauses[first].at_s) / parts
    before_s, before_error_s = last.at_s, last.error_s
    number = divisor = 0
    weights = by_number = by_time = squares = products = 0.0
    for pause in (last, *reversed(pauses[: first + 1])):
        at_s, error_s = pause.at_s, pause.error_s
        windows = round((at_s - before_s) / window_s) if window_s > 0 else 0
        late_s = at_s - before_s - windows * window_s
        if abs(late_s) > error_s + before_error_s or (not windows and pause is not last):
            continue
        number, divisor = number + windows, math.gcd(divisor, windows)
        before_s, before_error_s = at_s, error_s
        weight, time_s = error_s**-2, at_s - last.at_s  # those with small errors count more
        weights += weight
        by_number += weight * number
        by_time += weight * time_s
        squares += weight * number * number
        products += weight * number * time_s
        spread = weights * squares - by_number * by_number
        if spread > 0:
            window_s = (weights * products - by_number * by_time) / spread
    return window_s if divisor == 1 and window_s > 0 else None


def _phase(group: Sequence[Pause], window_s: float) -> tuple[float, float, float]:
    """Return the begin and the end of a group, and the time at which its windows begin.

    That is the mean of the pauses of which most agree: a stray one may have a smaller error.
    """

    def late_s(pause: Pause, at_s: float) -> float:
        return pause.at_s - at_s - round((pause.at_s - at_s) / window_s) * window_s

    agreeing = max(
        (
            [each for each in group if abs(late_s(each, one.at_s)) <= each.error_s + one.error_s]
            for one in group[-2 * _TRIED :]
        ),
        key=len,
    )
    first_s = agreeing[0].at_s
    weights = sum(pause.error_s**-2 for pause in agreeing)
    mean_s = sum(late_s(pause, first_s) * pause.error_s**-2 for pause in agreeing) / weights
    return group[0].begin_s - window_s, group[-1].end_s + window_s, first_s + mean_s


def _chance(on_time: Sequence[Pause], window_s: float, groups: int) -> float:
    """Return the probability that these pauses are on time with some clock by chance."""
    shares = sorted(min(1.0, 2 * pause.error_s / window_s) for pause in on_time)
    return _TRIED * _TRIED * math.prod(shares[groups + 1 :])  # window and phases were fitted
