"""Burst credits: two bounds that hold whatever happened, and an estimate between them.

The guest sees requests complete, and when they are held. It does not see what came before it
looked, who else uses the volume, when within an interval requests were let through, nor where the
limiter's own windows begin. So the level is reckoned as low as it can be, as high as it can be,
and as is likely; docs/adr/0010 tells how. One update over a long rest gives the same as many over
its parts, so a disk that rests costs nothing.

What is taken for granted: the limiter's windows are no longer than `WINDOW_S` and, but for
`JITTER_SHARE`, than the intervals; what is let through while other requests are held completes
within `SERVED_WITHIN_S`; what is enforced is what the terms say. Where what is seen contradicts
that, all that was known is forgotten, and learned anew.
"""

import math
from typing import Literal, NamedTuple

import msgspec

from disksla.limits import Bucket

ThrottledAt = Literal["base", "burst"]

WINDOW_S = 0.1
"""The limiter's window: https://yandex.cloud/en/docs/compute/concepts/storage-read-write. What
bounds a limiter with windows bounds one without."""
JITTER_SHARE = 0.1
"""Of a window, by which a sample may be off."""
SERVED_WITHIN_S = 0.025
"""How long a disk may take for a request that its limiter has let through."""
BURSTING_LOAD = 1.03
"""Above this an interval is estimated to be part of a burst."""
REMEMBERED_SHARE = 0.99
"""Of the size of the largest request, from one busy interval to the next."""
UNKNOWN_SHARE = 0.5
"""Of the capacity, estimated where nothing is known: never wrong by more than the half."""
_ROUNDING_SHARE = 1e-9


class Credits(msgspec.Struct, frozen=True, gc=False):
    """What is known of the level of one bucket, in the bucket's unit."""

    lower_credits: float
    """The level is not below this."""
    upper_credits: float
    """The level is not above this."""
    estimate_credits: float
    low_credits: float
    """The lower bound, were nothing in flight and the limiter without windows; so it may be
    negative."""
    paced_low_credits: float
    """Another lower bound, from the pace that a burst cannot exceed, less what may be beyond it
    at the edge of a window; for `excess` alone."""
    high_credits: float
    """The upper bound likewise; so it may be above the capacity."""
    least_plain_credits: float
    """The least that may be left of what can be used at once without credits."""
    most_plain_credits: float
    """The most that may be left of it."""
    uncounted_s: float = 2 * WINDOW_S
    """Time in which a burst that drains constantly may have been, and was not counted."""
    request_credits: float = 0.0
    """What the largest of the latest requests used."""
    is_throttled_at_base: bool = False
    """It was empty at the end of the last interval."""


class _Observed(NamedTuple):
    """What was seen of one interval, as bounds."""

    shortest_s: float
    longest_s: float
    least_use: float
    most_use: float
    request: float
    unserved: float
    """What requests that were let through and have not completed will have used at most."""
    throttled_at: ThrottledAt | None = None


def initial(bucket: Bucket, *, is_new: bool = False) -> Credits:
    """Give what is known at first: the level is between nothing and the capacity.

    The estimate of a disk that is known to be new is its initial level.
    """
    share = UNKNOWN_SHARE
    if is_new and bucket.initial_share is not None:
        share = bucket.initial_share
    anything = from_bounds(bucket, 0.0, bucket.capacity, share * bucket.capacity)
    return msgspec.structs.replace(anything, high_credits=math.inf)


def from_bounds(
    bucket: Bucket, lower: float, upper: float, estimate: float, request: float = 0.0
) -> Credits:
    """Give credits of which only bounds, an estimate and the size of a request are known."""
    low = lower - bucket.fill_per_second * WINDOW_S
    if not lower:
        low -= _overdraft(bucket, request)
    return Credits(
        lower,
        upper,
        estimate,
        low,
        low,
        upper,
        least_plain_credits=0.0,
        most_plain_credits=_deepest(bucket),
        request_credits=request,
    )


def advance(
    before: Credits,
    bucket: Bucket,
    seconds: float,
    use: float,
    requests: int = 0,
    inflight: int = 0,
    throttled_at: ThrottledAt | None = None,
) -> Credits:
    """Give what is known after an interval, of nine tenths of a window at least.

    `use` is what the requests that completed in it used of the bucket's resource; `inflight` are
    the requests in flight at its end. `held` says that this bucket is what held them back then:
    at the base rate, so that it is empty, or at the peak, so that it is not. None says nothing.
    """
    request = before.request_credits
    if requests:
        request = max(use / requests, request * REMEMBERED_SHARE)
    unserved = _unserved(inflight, request)
    if throttled_at is not None:
        unserved = min(unserved, bucket.peak_per_second * WINDOW_S)
    filled = bucket.fill_per_second * seconds / 2  # use comes in the middle
    estimate = min(before.estimate_credits + filled, bucket.capacity) + filled
    estimate -= estimated_drain(bucket, seconds, use)
    seen = _Observed(seconds, seconds, use, use, request, unserved, throttled_at)
    return _advance(before, bucket, seen, estimate)


def advance_unobserved(
    before: Credits,
    bucket: Bucket,
    shortest_s: float,
    longest_s: float,
    use: float | None,
    inflight: int = 0,
) -> Credits:
    """Give what is known after a time of which the length is known only within bounds.

    `use` is None where that is unknown too: then it was anything up to the peak, and is estimated
    to have been what leaves the level as it was.
    """
    request = before.request_credits
    unserved = _unserved(inflight, request)
    least = most = use or 0.0
    estimate = before.estimate_credits
    if use is None:
        most = bucket.peak_per_second * longest_s
        high = before.high_credits + unserved  # they are not in the use, and will complete
        before = msgspec.structs.replace(before, high_credits=high)
    else:
        seconds = (shortest_s + longest_s) / 2
        estimate += bucket.fill_per_second * seconds - estimated_drain(bucket, seconds, use)
    seen = _Observed(shortest_s, longest_s, least, most, request, unserved)
    return _advance(before, bucket, seen, estimate)


def exhaustion_s(now: Credits, bucket: Bucket, use_per_second: float) -> float:
    """Give the time until nothing is left if use goes on as in the last seconds.

    Infinite while credits do not get fewer.
    """
    drained_per_second = estimated_drain(bucket, 1.0, use_per_second) - bucket.fill_per_second
    if drained_per_second <= 0:
        return math.inf
    return now.estimate_credits / drained_per_second


def estimated_drain(bucket: Bucket, seconds: float, use: float) -> float:
    """Give the credits that steady use takes."""
    if bucket.drain == "use":
        return use
    base = bucket.base_per_second * seconds
    if bucket.drain == "excess":
        return use - base if use > base else 0.0
    if use > BURSTING_LOAD * base:
        return (bucket.peak_per_second - bucket.base_per_second) * seconds
    return 0.0


def _advance(before: Credits, bucket: Bucket, seen: _Observed, estimate: float) -> Credits:
    low, paced_low, least_plain, uncounted_s = _lowest(before, bucket, seen)
    high, most_plain = _highest(before, bucket, seen)
    best_low = max(low, paced_low - _edge(bucket, seen))
    if best_low > high + bucket.capacity * _ROUNDING_SHARE:
        return _reset(before, bucket)
    is_throttled_at_base = seen.throttled_at == "base"
    lump = bucket.fill_per_second * WINDOW_S
    if is_throttled_at_base:
        estimate = min(estimate, lump / 2)
    lower = min(max(best_low - _hidden(bucket, seen), 0.0), bucket.capacity)
    upper = max(min(high + lump + _window_drain(bucket), bucket.capacity), lower)
    return Credits(
        lower,
        upper,
        min(max(estimate, lower), upper),
        low,
        paced_low,
        high,
        least_plain,
        most_plain,
        uncounted_s,
        seen.request,
        is_throttled_at_base,
    )


def _lowest(before: Credits, bucket: Bucket, seen: _Observed) -> tuple[float, float, float, float]:
    """Reckon as badly for the credits as can be: low, paced low, least plain and uncounted.

    Above the base, most is spent if everything came at the beginning, when the least was saved
    up. But then more is saved up at the end than if everything had come there. What is kept as
    saved is so much less as is spent too much, and neither order can spend more later.
    """
    fill, base = bucket.fill_per_second, bucket.base_per_second
    margin = fill * WINDOW_S + _window_drain(bucket)
    least_low = -margin - _overdraft(bucket, seen.request)
    most_low = bucket.capacity - margin
    low = before.low_credits + fill * seen.shortest_s
    uncounted_s = before.uncounted_s
    if bucket.drain == "use":
        low = max(min(low, most_low) - seen.most_use, least_low)
        return low, -math.inf, before.least_plain_credits, uncounted_s

    plain = before.least_plain_credits
    if low > most_low:
        plain, low = max(0.0, plain - (low - most_low)), most_low
    saved = min(plain + base * seen.shortest_s, base * WINDOW_S * (1 - JITTER_SHARE))
    spent = max(0.0, seen.most_use - plain)
    plain = spent + saved - seen.most_use
    if bucket.drain == "constant":
        possible_s = uncounted_s + seen.longest_s
        bursting_s = min(possible_s, seen.most_use / base)
        uncounted_s = min(possible_s - bursting_s, 2 * WINDOW_S)
        spent = (bucket.peak_per_second - base) * bursting_s
    low -= spent
    if low < least_low:
        plain, low = max(0.0, plain - (least_low - low)), least_low
    if bucket.drain == "constant":
        return low, -math.inf, plain, uncounted_s

    paced_low = min(before.paced_low_credits + fill * seen.shortest_s, most_low)
    most_of_a_window = bucket.peak_per_second * WINDOW_S + seen.request
    paced_low -= seen.most_use * (1 - base * WINDOW_S / most_of_a_window)
    return low, max(paced_low, least_low), plain, uncounted_s


def _highest(before: Credits, bucket: Bucket, seen: _Observed) -> tuple[float, float]:
    """Reckon as well for the credits as can be: high and most plain.

    Everything came evenly, and what could be saved up of the base was.
    """
    base, plain = bucket.base_per_second, before.most_plain_credits
    spent = seen.least_use
    lag = _window_drain(bucket)
    if bucket.drain != "use":
        plain += base * seen.longest_s - seen.least_use
        spent = max(0.0, -plain - seen.request)  # one may overdraw the base, too
        if lag:  # the last request of a window may overdraw, and what is taken stays the same
            spent *= lag / (lag + seen.request)
        plain = min(max(plain, -seen.request), _deepest(bucket) + seen.unserved)
    filled = bucket.fill_per_second * seen.longest_s
    high = before.high_credits + filled - spent
    most_high = bucket.capacity + _hidden(bucket, seen)
    if seen.throttled_at == "base":
        hidden = min(_hidden(bucket, seen), bucket.capacity)
        if before.is_throttled_at_base:  # what a burst let through at last has completed since
            hidden = min(hidden, (base + bucket.fill_per_second) * SERVED_WITHIN_S)
        most_high = hidden + seen.request + lag + max(0.0, filled - spent)
        plain = min(plain, 2 * base * WINDOW_S + seen.unserved)
    if high > most_high:  # what was spent too little before may have been saved instead
        plain = max(plain, min(plain + high - most_high, base * WINDOW_S + seen.unserved))
        high = most_high
    return high, plain


def _window_drain(bucket: Bucket) -> float:
    """Give what constant drain takes at once for one window, by its end."""
    if bucket.drain == "constant":
        return (bucket.peak_per_second - bucket.base_per_second) * WINDOW_S
    return 0.0


def _hidden(bucket: Bucket, seen: _Observed) -> float:
    """Give the credits that may be gone already for requests that have not completed."""
    if bucket.drain == "constant":
        return seen.unserved / (bucket.base_per_second * WINDOW_S) * _window_drain(bucket)
    return seen.unserved


def _edge(bucket: Bucket, seen: _Observed) -> float:
    """Give how far a burst may be ahead of its pace."""
    window_s = WINDOW_S * (1 + JITTER_SHARE)
    return bucket.base_per_second * window_s + _overdraft(bucket, seen.request)


def _deepest(bucket: Bucket) -> float:
    """Give the most that can be used at once without credits.

    A limiter with windows lets through what two of them bring, across the edge between them.
    """
    return bucket.base_per_second * max(bucket.baseline_depth_s, 2 * WINDOW_S)


def _overdraft(bucket: Bucket, request: float) -> float:
    """Give how far below nothing one request may bring the level; a guess until one is seen."""
    return request or bucket.base_per_second * WINDOW_S


def _unserved(inflight: int, request: float) -> float:
    """Give what requests in flight will have used; no end of it while none was seen complete."""
    if not inflight:
        return 0.0
    return inflight * request or math.inf


def _reset(before: Credits, bucket: Bucket) -> Credits:
    """Begin anew, because what was seen cannot be: the terms are not those that are enforced."""
    return msgspec.structs.replace(
        initial(bucket),
        estimate_credits=before.estimate_credits,
        request_credits=before.request_credits,
    )
