"""What a limiter with windows admits in each, by what was served between its pauses."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import msgspec

from disksla.base.counts import total
from disksla.verdict.interval import Interval
from disksla.verdict.throttling.observation import LATE_S
from disksla.verdict.throttling.pauses import Clock, Pause

_CHANCE_OF = 4
"""Of so many windows, one may be counted wrong: a sample was late, or a request was."""
_LAST = 20
"""Windows that count: the limit may have been another before."""
_EXACT = 5
"""Windows without flushes that are enough."""


class Admitted(NamedTuple):
    """What a limiter admits, by the windows that were used to the end."""

    served: Interval
    """In all of them together; `flushes` is by how much the data writes may be fewer."""
    requests: float
    """Reads and writes in each, with flushes."""
    is_certain: bool
    """Whether the number of data writes is certain."""
    windows: tuple[Interval, ...] = ()
    """What was served in each, the newest first; none where that is not certain."""


def admitted(steps: Sequence[Interval], pauses: Sequence[Pause], clock: Clock) -> Admitted | None:
    """Return what was served from the end of a pause on time to that of the next; None if nothing.

    Where the disk was flushed, windows without flushes count if there are some. Else each gives
    bounds of the data writes that any window admits.
    """
    windows: list[_Window] = []
    for after, before in pairwise(reversed(pauses)):
        # The next pause begins in the same window, so that all tokens were used. It may last for
        # several windows, if a request needs the tokens of several.
        is_exact = max(before.error_s, after.error_s) < clock.window_s / 4
        if not is_exact or after.begin_s >= before.at_s + clock.window_s:
            continue
        from_number, to_number = clock.number(before), clock.number(after)
        if from_number is not None and to_number is not None and to_number > from_number:
            part = _within(steps, before.last_s + LATE_S, after.last_s + LATE_S)
            windows.append(
                _Window(
                    number=to_number - from_number,
                    last_s=after.last_s,
                    steps=part,
                    requests=_sum_of("reads", part) + _sum_of("writes", part),
                    flushes=_sum_of("flushes", part),
                )
            )
            if len(windows) == _LAST:
                break
    if not windows:
        return None
    exact = [each for each in windows if not each.flushes]
    if len(exact) >= min(len(windows), _EXACT):
        each_one = tuple(_together([each], clock) for each in exact)
        return Admitted(total(each_one), _mean(exact), is_certain=True, windows=each_one)
    # Data writes are at most all writes. If as many are left without the flushes, their number is
    # certain. On average they are at least half, because programs flush what they have written.
    most = _usual(each.requests / each.number for each in windows)
    without = -_usual((each.flushes - each.requests) / each.number for each in windows)
    whole = _together(windows, clock)
    number = sum(each.number for each in windows)
    is_certain = abs(most - without) < 1
    least = whole.reads + whole.writes / 2
    highest = max(least, (most if is_certain else most + 1) * number)
    return Admitted(
        msgspec.structs.replace(
            whole,
            writes=round(highest - whole.reads),
            flushes=0 if is_certain else round(highest - least),
        ),
        _mean(windows),
        is_certain,
    )


class _Window(NamedTuple):
    """Windows that follow each other, of which only the last was not used to the end."""

    number: int
    last_s: float
    """The last sample within the pause at their end."""
    steps: Sequence[Interval]
    requests: int
    """Reads and writes, with flushes."""
    flushes: int


def _within(steps: Sequence[Interval], from_s: float, to_s: float) -> Sequence[Interval]:
    """Return the steps that ended within a time."""
    end_s = attrgetter("end_s")
    return steps[bisect_right(steps, from_s, key=end_s) : bisect_right(steps, to_s, key=end_s)]


def _sum_of(field: str, steps: Iterable[Interval]) -> int:
    return sum(map(attrgetter(field), steps))  # a loop in Python would take four times as long


def _together(windows: Sequence[_Window], clock: Clock) -> Interval:
    steps = [step for each in windows for step in each.steps]
    return Interval(
        end_s=windows[0].last_s,
        seconds=clock.window_s * sum(each.number for each in windows),
        reads=_sum_of("reads", steps),
        writes=_sum_of("writes", steps),
        read_bytes=_sum_of("read_bytes", steps),
        written_bytes=_sum_of("written_bytes", steps),
        read_ms=None,
        write_ms=None,
        inflight=0,
    )


def _mean(windows: Sequence[_Window]) -> float:
    return sum(each.requests for each in windows) / sum(each.number for each in windows)


def _usual(amounts: Iterable[float]) -> float:
    """Return the least of some amounts, without those that are by chance less."""
    ordered = sorted(amounts)
    return ordered[len(ordered) // _CHANCE_OF]
