"""The second sign of a limiter: the law of the bucket.

An even limiter is a bucket of tokens that is filled at the rate of a limit, and holds those of a
short time. A request takes a token, or waits for one. So what is served never exceeds what was
filled in: it stays below a line that rises with the limit. The gap to that line is what the bucket
still has, and what is at the disk and not served yet. **If more requests are in flight than fit
into the gap, the others wait for tokens**, and as long as they do, the disk serves its limit, but
for a request or two, in each piece of that time. A disk that is only busy serves now more and now
less: it crosses the line, or falls back from it.

The gap is followed for some seconds. It is at most a full bucket, and what is in flight: after a
rest, so much passes at once.
"""

from collections.abc import Sequence
from functools import lru_cache
from statistics import median_high
from typing import NamedTuple

import msgspec

from disksla.promise.catalogue import Charge, Limits
from disksla.verdict.interval import Interval
from disksla.verdict.throttling.observation import BUSY_SHARE, LATE_S, data_s
from disksla.verdict.throttling.throttle import ThrottleLevel, levels

MEMORY_S = 10
"""No verdict depends on anything older."""
EVIDENCE_S = 8
"""For so long, pieces count. Before that, a gap is followed for the rest of MEMORY_S, after which
it does not matter that none is taken to be there at first."""
DEPTHS_S = (0.01, 0.1, 1.0)
"""What buckets hold, as time of their rate, if it is not known: those with windows too short to be
seen, of QEMU, and of AWS (docs/limiters.md)."""
SLOWER = 0.012
"""The share of the promise by which limiters serve less at most (docs/limiters.md)."""
BAND_REQUESTS = 1.5
"""By so many requests, and what the limit serves in LATE_S, a sample is off the line of a limiter:
it was late, or the last token was used for a larger request."""
LATE_WINDOW = 1.1
"""Where a window is longer than the median by this ratio, its last sample was late, as the machine
had no CPU: it is not known well enough what was served until then."""
PIECE_REQUESTS = 16
"""Served in a piece. A disk serves fewer as evenly by chance."""
EVEN_SHARE = 0.9
"""Of the time of the pieces."""
ENOUGH_REQUESTS = 60
"""Served in even pieces."""
MOST_OVER = 2
"""Windows in which more is served than the bucket had, as samples are late. More of them in one
second show another rate, and more in all that it is not this bucket."""
NEAR_SHARE = 0.8
"""Of the limit. If no window of a second has so much, none waited."""


class LimitBucket(NamedTuple):
    """The bucket of one limit, and how writes are counted."""

    level: ThrottleLevel
    charge: Charge
    has_empty: bool
    """As many writes are empty as there were flushes; else all have data."""
    depth_s: float
    window_s: float
    """In which it is filled once; 0 if it is filled all the time."""
    faster: float
    """The share of the promise by which it serves more at most."""


@lru_cache(maxsize=256)
def buckets_of(limits: Limits) -> tuple[LimitBucket, ...]:
    """Return the buckets that may make the requests of a disk wait, as far as they are known."""
    limiter = limits.limiter
    known_s = limiter.bucket_s or limiter.window_s
    return tuple(
        LimitBucket(
            level=level,
            charge=charge,
            has_empty=has_empty,
            depth_s=depth_s,
            window_s=limiter.window_s or 0.0,
            faster=limiter.excess_ratio,
        )
        for level, least, most in levels(limits)
        for charge in dict.fromkeys((*least, *most))
        for has_empty in (False, True)
        for depth_s in ((known_s,) if known_s else DEPTHS_S)
    )


class Piece(NamedTuple):
    """A time in which requests waited throughout, and what was served in it."""

    seconds: float = 0.0
    requests: int = 0
    off_s: float = 0.0
    """By how much less than the limit, as time of it; `low_s` and `high_s` since its begin."""
    low_s: float = 0.0
    high_s: float = 0.0

    def longer(self, seconds: float, requests: int, cost_s: float, *, is_late: bool) -> "Piece":
        """Return the piece with a further window, whose last sample may have been late."""
        off_s = self.off_s + seconds - cost_s
        return Piece(
            self.seconds + seconds,
            self.requests + requests,
            off_s,
            self.low_s if is_late else min(self.low_s, off_s),
            self.high_s if is_late else max(self.high_s, off_s),
        )


class Followed(NamedTuple):
    """A bucket that was followed for a second. Amounts are times of the limit.

    At the end of the second, the gap is that at the start plus `shift_s`, but at least `least_s`
    and at most `most_s`.
    """

    shift_s: float
    least_s: float
    most_s: float
    waited_s: tuple[float, ...]
    """Time of each window in which requests waited."""
    over: int
    """Windows in which more was served than the bucket had."""
    pieces_s: float
    """Time of the pieces that ended in it."""
    even_s: float
    """Time of those in which the limit was served throughout."""
    even_cost_s: float
    """Served in these."""
    even_requests: int
    rest: Piece
    """The piece that has not ended."""
    largest_s: float
    """Of a request."""

    def gap_after_s(self, gap_s: float) -> float:
        """Return the gap at the end of the second, by that at the start."""
        return min(self.most_s, max(self.least_s, gap_s + self.shift_s))


class _Use(NamedTuple):
    """What the windows of a second used of one limit. Costs are times of the limit."""

    requests: Sequence[int]
    costs_s: Sequence[float]
    one_s: float
    """Of a request on average, and of the largest."""
    largest_s: float
    late_s: float
    """The last sample of a longer window was late."""


def follow(
    windows: Sequence[Interval],
    before: Sequence[Sequence[Followed | None]],
    rest_s: float,
    limits: Limits,
) -> tuple[Followed | None, ...]:
    """Return the buckets of `buckets_of` after a second; None where certainly none waited.

    `before` are those after each of the seconds before it for which the gap is followed, and
    `rest_s` is the time between the last of them and the first window, in which the disk was idle.
    """
    data = [window.without_flushes() for window in windows]
    most = _most(windows)
    uses: dict[tuple[Charge, bool], _Use | None] = {}
    after: list[Followed | None] = []
    for index, bucket in enumerate(buckets_of(limits)):
        limit = bucket.charge, bucket.has_empty
        if limit not in uses:
            is_far = most.cost_s(bucket.charge) < NEAR_SHARE * most.seconds
            of_limit = data if bucket.has_empty else windows
            uses[limit] = None if is_far else _used(of_limit, bucket.charge)
        use = uses[limit]
        earlier = () if use is None else [each[index] for each in before]
        after.append(None if use is None else _follow(windows, use, earlier, rest_s, bucket))
    return tuple(after)


def _most(windows: Sequence[Interval]) -> Interval:
    """Return a window in which as much is served as in any, of each; it is as short as any."""
    return msgspec.structs.replace(
        windows[-1],
        seconds=min(window.seconds for window in windows),
        reads=max(window.reads for window in windows),
        writes=max(window.writes for window in windows),
        read_bytes=max(window.read_bytes for window in windows),
        written_bytes=max(window.written_bytes for window in windows),
    )


def _used(windows: Sequence[Interval], charge: Charge) -> _Use | None:
    """Return the use of a limit; None if no window, nor all of them, had nearly as much as it."""
    costs_s = [window.cost_s(charge) for window in windows]
    seconds = sum(window.seconds for window in windows)
    each_used = zip(costs_s, windows, strict=True)
    is_near = any(used_s >= NEAR_SHARE * window.seconds for used_s, window in each_used)
    if not is_near and sum(costs_s) < NEAR_SHARE * seconds:
        return None
    requests = [window.requests for window in windows]
    one_s = sum(costs_s) / max(1, sum(requests))
    largest_s = max(used_s / max(1, n) for used_s, n in zip(costs_s, requests, strict=True))
    late_s = LATE_WINDOW * median_high(window.seconds for window in windows)
    return _Use(requests, costs_s, one_s, largest_s, late_s)


def _follow(
    windows: Sequence[Interval],
    use: _Use,
    before: Sequence[Followed | None],
    rest_s: float,
    bucket: LimitBucket,
) -> Followed:
    one_s = use.one_s
    band_s = BAND_REQUESTS * use.largest_s + LATE_S + bucket.window_s
    gap_s, piece = _gap_s(before, bucket), Piece()
    if before and before[-1] is not None:
        piece = before[-1].rest
    inflight = windows[0].inflight_before
    shift_s, least_s, most_s = 0.0, 0.0, bucket.depth_s + one_s * inflight + 1
    if rest_s:
        shift_s, least_s, most_s = rest_s, min(bucket.depth_s, rest_s), bucket.depth_s
        gap_s = min(bucket.depth_s, gap_s + rest_s)
    # Whether the bucket has nothing for one more; where none is in flight, the next would wait.
    is_empty, is_resting = max(1, inflight) * one_s > gap_s, not inflight
    waited_s = []
    pieces_s = even_s = even_cost_s = 0.0
    over = even_requests = 0
    for used_s, requests, window in zip(use.costs_s, use.requests, windows, strict=True):
        change_s = window.seconds * (1 - SLOWER) - used_s
        if is_resting and window.inflight:
            # The load began within the window. Until then the bucket was full, or was filled.
            until_s = max(0.0, window.seconds - window.busy_ms / 1000)
            shift_s, change_s = shift_s + until_s, change_s - until_s
            least_s = min(bucket.depth_s, least_s + until_s)
            most_s = min(bucket.depth_s, most_s + until_s)
            gap_s = min(bucket.depth_s, gap_s + until_s)
        is_resting = not (window.inflight or window.requests)
        full_s = window.inflight * one_s + bucket.depth_s
        shift_s += change_s
        least_s = _within(least_s + change_s, full_s)
        most_s = _within(most_s + change_s, full_s)
        most_over_s = band_s + window.seconds * (SLOWER + bucket.faster)
        is_late = window.seconds > use.late_s
        is_over = not is_late and gap_s + change_s < -most_over_s
        gap_s = _within(gap_s + change_s, full_s)
        was_empty, is_empty = is_empty, max(1, window.inflight) * one_s > gap_s
        share = 0.0 if is_over else (was_empty + is_empty) / 2
        waited_s.append(share * data_s(window))
        over += is_over
        had_inflight, inflight = inflight, window.inflight
        if is_over or not (was_empty and is_empty and had_inflight and inflight):
            piece = Piece()
            continue
        piece = piece.longer(window.seconds, requests, used_s, is_late=is_late)
        if piece.requests >= PIECE_REQUESTS and not is_late:
            pieces_s += piece.seconds
            if piece.high_s - piece.low_s <= band_s:
                even_s += piece.seconds
                even_cost_s += piece.seconds - piece.off_s
                even_requests += piece.requests
            piece = Piece()
    return Followed(
        shift_s=shift_s,
        least_s=least_s,
        most_s=most_s,
        waited_s=tuple(waited_s),
        over=over,
        pieces_s=pieces_s,
        even_s=even_s,
        even_cost_s=even_cost_s,
        even_requests=even_requests,
        rest=piece,
        largest_s=use.largest_s,
    )


def _within(gap_s: float, full_s: float) -> float:
    return min(full_s, max(0.0, gap_s))


def _gap_s(before: Sequence[Followed | None], bucket: LimitBucket) -> float:
    """Return the gap after these seconds; in one in which none waited, the bucket got full."""
    gap_s = 0.0
    for each in before:
        gap_s = bucket.depth_s if each is None else each.gap_after_s(gap_s)
    return gap_s


def limiting_rate(
    seconds: Sequence[Followed | None], busy_s: Sequence[float], bucket: LimitBucket
) -> float | None:
    """Return the rate at which a bucket makes requests wait, as a share of the promise, or None.

    `seconds` are those of EVIDENCE_S that end now.
    `busy_s` are the times with requests in flight. What was before another rate does not count.
    """
    inflight_s = waited_s = pieces_s = even_s = even_cost_s = largest_s = 0.0
    even_requests = over = 0
    for followed, busy in zip(reversed(seconds), reversed(busy_s), strict=True):
        if followed is not None and followed.over > MOST_OVER:
            break
        inflight_s += busy
        if followed is not None:
            over += followed.over
            waited_s += sum(followed.waited_s)
            pieces_s += followed.pieces_s
            even_s += followed.even_s
            even_cost_s += followed.even_cost_s
            even_requests += followed.even_requests
            largest_s = max(largest_s, followed.largest_s)
    if even_requests < ENOUGH_REQUESTS or over > MOST_OVER:
        return None
    if even_s < EVEN_SHARE * pieces_s or waited_s < BUSY_SHARE * inflight_s:
        return None
    edge = largest_s / even_s  # of a request, only a part may be within
    rate = even_cost_s / even_s
    return rate if 1 - SLOWER - edge <= rate <= 1 + bucket.faster + edge else None
