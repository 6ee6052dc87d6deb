"""What a limiter with windows admits in each, by what was served between its pauses."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import msgspec

from disksla.interval import Interval
from disksla.verdict.observation import ObservedStep
from disksla.verdict.pauses import SERVICE_S, Clock, Pause

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


def admitted(
    steps: Sequence[ObservedStep], pauses: Sequence[Pause], clock: Clock
) -> Admitted | None:
    """Return what was served from the end of a pause on time to that of the next; None if nothing.

    Where the disk was flushed, windows without flushes count if there are some. Else each gives
    bounds of the data writes that any window admits.
    """
    ends = []
    for before, after in pairwise(pauses):
        from_number, to_number = clock.number(before), clock.number(after)
        is_exact = max(before.error_s, after.error_s) < clock.window_s / 4
        # The next pause begins in the same window, so that all tokens were used. It may last for
        # several windows, if a request needs the tokens of several.
        is_full = is_exact and after.begin_s < before.at_s + clock.window_s
        if from_number is None or to_number is None or not is_full:
            continue
        if to_number > from_number:
            ends.append((before.last_s, after.last_s, to_number - from_number))
    ends = ends[-_LAST:]
    if not ends:
        return None
    windows, at = [_NOTHING._replace(number=number) for _, _, number in ends], 0
    for step in steps[bisect_left(steps, ends[0][0], key=attrgetter("end_s")) :]:
        while at < len(ends) and step.end_s > ends[at][1] + SERVICE_S:
            at += 1
        if at < len(ends) and step.end_s > ends[at][0] + SERVICE_S:
            windows[at] = windows[at].plus(step)
    exact = [each for each in windows if not each.flushes]
    if len(exact) >= min(len(windows), _EXACT):
        whole = _together(exact, clock, ends[-1][1])
        return Admitted(whole, _mean(exact), is_certain=True)
    # Data writes are at most all writes. If as many are left without the flushes, their number is
    # certain. On average they are at least half, because programs flush what they have written.
    most = _usual(each.requests / each.number for each in windows)
    without = -_usual((each.flushes - each.requests) / each.number for each in windows)
    whole = _together(windows, clock, ends[-1][1])
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
    """What was served in windows that were used to the end."""

    number: int
    reads: int
    writes: int
    read_bytes: int
    written_bytes: int
    flushes: int

    def plus(self, step: ObservedStep) -> "_Window":
        return _Window(
            number=self.number,
            reads=self.reads + step.reads,
            writes=self.writes + step.writes,
            read_bytes=self.read_bytes + step.read_bytes,
            written_bytes=self.written_bytes + step.written_bytes,
            flushes=self.flushes + step.flushes,
        )

    @property
    def requests(self) -> int:
        return self.reads + self.writes


_NOTHING = _Window(number=0, reads=0, writes=0, read_bytes=0, written_bytes=0, flushes=0)


def _together(windows: Sequence[_Window], clock: Clock, end_s: float) -> Interval:
    number, reads, writes, read_bytes, written_bytes, _ = map(sum, zip(*windows, strict=True))
    seconds = number * clock.window_s
    return Interval(
        end_s=end_s,
        seconds=seconds,
        reads=reads,
        writes=writes,
        read_bytes=read_bytes,
        written_bytes=written_bytes,
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
