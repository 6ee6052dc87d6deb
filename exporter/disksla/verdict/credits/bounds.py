"""Burst credits of one bucket: a lower and an upper bound that always hold, and an estimate.

The guest can observe completions, and when requests are throttled. It cannot observe earlier I/O,
other users of the volume, when within an interval requests were admitted, or the phase of the
limiter's windows. So the lowest, the highest and the likely level are computed (docs/adr/0010).
One update over a long idle time has the same result as updates over its parts, so an idle disk
costs nothing.

Assumptions: the limiter's windows are no longer than `WINDOW_S`, and no longer than the intervals
except for `JITTER_SHARE`; the limits enforced are those of the terms. If the observations
contradict this, the bounds are reset.
"""

import math
from typing import Literal, NamedTuple

import msgspec

from disksla.base.counts import Summable
from disksla.promise.catalogue import Bucket

ThrottledAt = Literal["base", "burst"]

WINDOW_S = 0.1
"""The limiter's window: https://yandex.cloud/en/docs/compute/concepts/storage-read-write. Bounds
for a limiter with windows also hold for one without."""
JITTER_SHARE = 0.1
"""Share of a window by which a sample may be early or late."""
THROTTLED_WITHIN_S = 1.3
"""It is known so long after that a bucket was empty: a verdict is decided when its second ends."""
BURSTING_LOAD = 1.03
"""Load of the baseline above which an interval is estimated to be part of a burst."""
KEPT_REQUEST_SHARE = 0.99
"""Share of the largest request size that is kept from one busy interval to the next."""
INITIAL_ESTIMATE_SHARE = 0.5
"""Estimate of an unknown level, as a share of the capacity: wrong by half at most."""
_ROUNDING_SHARE = 1e-9


class Use(Summable, frozen=True, gc=False):
    """Use of a bucket, in its unit. With flushes, the number of data writes is a range."""

    least: float
    likely: float
    most: float

    @classmethod
    def exactly(cls, use: float) -> "Use":
        """Return a use that is known."""
        return cls(use, use, use)


NO_USE = Use(0.0, 0.0, 0.0)


class Credits(msgspec.Struct, frozen=True, gc=False):
    """Bounds of the level of one bucket, in the unit of the bucket."""

    lower_credits: float
    """Lower bound of the level."""
    upper_credits: float
    """Upper bound of the level."""
    estimate_credits: float
    low_credits: float
    """Lower bound for a limiter without windows and with nothing in flight; may be negative."""
    paced_low_credits: float
    """Another lower bound, from the peak rate that a burst cannot exceed, before the deduction for
    the edge of a window; for drain `excess` only."""
    high_credits: float
    """Upper bound likewise; may exceed the capacity."""
    least_baseline_credits: float
    """Least that may be left of the baseline allowance, which is used at once without credits."""
    most_baseline_credits: float
    """Most that may be left of the baseline allowance."""
    uncounted_burst_s: float = 2 * WINDOW_S
    """Time that may have been part of a burst with constant drain and was not counted as such."""
    request_credits: float = 0.0
    """Use of the largest recent request."""


class _Observed(NamedTuple):
    """Observations of one interval, as bounds."""

    shortest_s: float
    longest_s: float
    least_use: float
    most_use: float
    request: float
    inflight_use: float
    """Largest use of requests that were admitted and have not completed."""
    throttled_at: ThrottledAt | None = None


def initial(bucket: Bucket, *, is_new: bool = False) -> Credits:
    """Return the initial bounds: the level is between 0 and the capacity.

    The estimate for a disk that is known to be new is the initial level of the terms.
    """
    share = INITIAL_ESTIMATE_SHARE
    if is_new and bucket.initial_share is not None:
        share = bucket.initial_share
    unknown = from_bounds(bucket, 0.0, bucket.capacity, share * bucket.capacity)
    return msgspec.structs.replace(unknown, high_credits=math.inf)


def from_bounds(
    bucket: Bucket, lower: float, upper: float, estimate: float, request: float = 0.0
) -> Credits:
    """Return credits from bounds, an estimate and the use of a request; the rest is unknown."""
    low = lower - bucket.fill_per_second * WINDOW_S
    if not lower:
        low -= _overdraft(bucket, request)
    return Credits(
        lower_credits=lower,
        upper_credits=upper,
        estimate_credits=estimate,
        low_credits=low,
        paced_low_credits=low,
        high_credits=upper,
        least_baseline_credits=0.0,
        most_baseline_credits=_max_baseline(bucket),
        request_credits=request,
    )


def advance(
    before: Credits,
    bucket: Bucket,
    seconds: float,
    use: Use,
    requests: int = 0,
    inflight: int = 0,
    throttled_at: ThrottledAt | None = None,
) -> Credits:
    """Return the credits after an interval of at least 0.9 windows.

    `use` is the use of the bucket by the `requests` that completed in it; `inflight` are the
    requests in flight at its end. `throttled_at` is the rate at which this bucket is seen to have
    throttled them lately: the baseline, so that the bucket was empty, or the peak, so that it was
    not. None is unknown.
    """
    request = before.request_credits
    if requests:
        request = max(use.most / requests, request * KEPT_REQUEST_SHARE)
    inflight_use = _inflight_use(inflight, request)
    if throttled_at is not None:
        inflight_use = min(inflight_use, bucket.peak_per_second * WINDOW_S)
    filled = bucket.fill_per_second * seconds / 2  # as if all use came in the middle
    estimate = min(before.estimate_credits + filled, bucket.capacity) + filled
    estimate -= estimated_drain(bucket, seconds, use.likely)
    observed = _Observed(
        shortest_s=seconds,
        longest_s=seconds,
        least_use=use.least,
        most_use=use.most,
        request=request,
        inflight_use=inflight_use,
        throttled_at=throttled_at,
    )
    return _advance(before, bucket, observed, estimate)


def advance_unobserved(
    before: Credits,
    bucket: Bucket,
    shortest_s: float,
    longest_s: float,
    use: Use | None,
    inflight: int = 0,
) -> Credits:
    """Return the credits after a time whose duration is known within bounds.

    If `use` is None, it is unknown: it may be anything up to the peak, and the estimate is left
    unchanged.
    """
    request = before.request_credits
    inflight_use = _inflight_use(inflight, request)
    least = use.least if use is not None else 0.0
    estimate = before.estimate_credits
    if use is None:
        most = bucket.peak_per_second * longest_s
        high = before.high_credits + inflight_use  # not in the use, but will complete
        before = msgspec.structs.replace(before, high_credits=high)
    else:
        most = use.most
        seconds = (shortest_s + longest_s) / 2
        estimate += bucket.fill_per_second * seconds - estimated_drain(bucket, seconds, use.likely)
    observed = _Observed(
        shortest_s=shortest_s,
        longest_s=longest_s,
        least_use=least,
        most_use=most,
        request=request,
        inflight_use=inflight_use,
    )
    return _advance(before, bucket, observed, estimate)


def exhaustion_s(now: Credits, bucket: Bucket, use_per_second: float) -> float:
    """Return the time until the bucket is empty at this use; infinite if it does not drain."""
    drained_per_second = estimated_drain(bucket, 1.0, use_per_second) - bucket.fill_per_second
    if drained_per_second <= 0:
        return math.inf
    return now.estimate_credits / drained_per_second


def refill_s(now: Credits, bucket: Bucket) -> float:
    """Return the time until the bucket is full without use; infinite if nothing fills it."""
    missing = bucket.capacity - now.estimate_credits
    if missing <= 0:
        return 0.0
    return missing / bucket.fill_per_second if bucket.fill_per_second else math.inf


def lasting_per_second(bucket: Bucket) -> float:
    """Return the use at which credits do not decrease."""
    if bucket.drain == "use":
        return bucket.fill_per_second
    filled = bucket.fill_per_second if bucket.drain == "excess" else 0.0
    return bucket.base_per_second + filled


def estimated_drain(bucket: Bucket, seconds: float, use: float) -> float:
    """Return the credits that a steady use drains."""
    if bucket.drain == "use":
        return use
    base = bucket.base_per_second * seconds
    if bucket.drain == "excess":
        return use - base if use > base else 0.0
    if use > BURSTING_LOAD * base:
        return (bucket.peak_per_second - bucket.base_per_second) * seconds
    return 0.0


def _advance(before: Credits, bucket: Bucket, observed: _Observed, estimate: float) -> Credits:
    low, paced_low, least_baseline, uncounted_burst_s = _lowest(before, bucket, observed)
    high, most_baseline = _highest(before, bucket, observed)
    best_low = max(low, paced_low - _window_edge(bucket, observed))
    if best_low > high + bucket.capacity * _ROUNDING_SHARE:
        return _reset(before, bucket)
    window_fill = bucket.fill_per_second * WINDOW_S
    if observed.throttled_at == "base":
        estimate = min(estimate, window_fill / 2)
    lower = min(max(best_low - _inflight_drain(bucket, observed), 0.0), bucket.capacity)
    upper = max(min(high + window_fill + _window_drain(bucket), bucket.capacity), lower)
    return Credits(
        lower_credits=lower,
        upper_credits=upper,
        estimate_credits=min(max(estimate, lower), upper),
        low_credits=low,
        paced_low_credits=paced_low,
        high_credits=high,
        least_baseline_credits=least_baseline,
        most_baseline_credits=most_baseline,
        uncounted_burst_s=uncounted_burst_s,
        request_credits=observed.request,
    )


def _lowest(
    before: Credits, bucket: Bucket, observed: _Observed
) -> tuple[float, float, float, float]:
    """Return the lower bounds: low, paced low, least baseline allowance, uncounted burst time."""
    fill, base = bucket.fill_per_second, bucket.base_per_second
    margin = fill * WINDOW_S + _window_drain(bucket)
    least_low = -margin - _overdraft(bucket, observed.request)
    most_low = bucket.capacity - margin
    low = before.low_credits + fill * observed.shortest_s
    uncounted_burst_s = before.uncounted_burst_s
    if bucket.drain == "use":
        low = max(min(low, most_low) - observed.most_use, least_low)
        return low, -math.inf, before.least_baseline_credits, uncounted_burst_s

    allowance = before.least_baseline_credits
    if low > most_low:
        allowance, low = max(0.0, allowance - (low - most_low)), most_low
    saved = min(allowance + base * observed.shortest_s, base * WINDOW_S * (1 - JITTER_SHARE))
    # Most credits are spent if all use came at the beginning of the interval, when the allowance
    # was smallest. But then more of it is left at the end than if all use had come there. It is
    # reduced by the credits spent in excess, so that the bound holds for both orders, now and
    # later.
    spent = max(0.0, observed.most_use - allowance)
    allowance = spent + saved - observed.most_use
    if bucket.drain == "constant":
        possible_s = uncounted_burst_s + observed.longest_s
        bursting_s = min(possible_s, observed.most_use / base)
        uncounted_burst_s = min(possible_s - bursting_s, 2 * WINDOW_S)
        spent = (bucket.peak_per_second - base) * bursting_s
    low -= spent
    if low < least_low:
        allowance, low = max(0.0, allowance - (least_low - low)), least_low
    if bucket.drain == "constant":
        return low, -math.inf, allowance, uncounted_burst_s

    paced_low = min(before.paced_low_credits + fill * observed.shortest_s, most_low)
    window_peak = bucket.peak_per_second * WINDOW_S + observed.request
    paced_low -= observed.most_use * (1 - base * WINDOW_S / window_peak)
    return low, max(paced_low, least_low), allowance, uncounted_burst_s


def _highest(before: Credits, bucket: Bucket, observed: _Observed) -> tuple[float, float]:
    """Return the upper bounds: high, and most baseline allowance."""
    base, allowance = bucket.base_per_second, before.most_baseline_credits
    spent = observed.least_use
    lag = _window_drain(bucket)
    if bucket.drain != "use":
        # Least credits are spent if all use came evenly, and as much of the baseline as possible
        # had been saved.
        allowance += base * observed.longest_s - observed.least_use
        # One request may overdraw the baseline, too.
        spent = max(0.0, -allowance - observed.request)
        if lag:  # the last request of a window may overdraw without a higher drain
            spent *= lag / (lag + observed.request)
        allowance = min(
            max(allowance, -observed.request), _max_baseline(bucket) + observed.inflight_use
        )
    filled = bucket.fill_per_second * observed.longest_s
    high = before.high_credits + filled - spent
    if bucket.drain == "use" and bucket.base_per_second > bucket.fill_per_second:
        high = max(high, 0.0)  # at an empty bucket, the baseline may be more than is filled
    most_high = bucket.capacity + _inflight_drain(bucket, observed)
    if observed.throttled_at == "base":
        inflight_drain = min(_inflight_drain(bucket, observed), bucket.capacity)
        since_s = THROTTLED_WITHIN_S - observed.longest_s
        refilled = max(0.0, filled - spent, bucket.fill_per_second * since_s)
        most_high = inflight_drain + observed.request + lag + refilled
        allowance = min(allowance, 2 * base * WINDOW_S + observed.inflight_use)
    if high > most_high:  # credits spent too little before may have been saved instead
        allowance = max(
            allowance, min(allowance + high - most_high, base * WINDOW_S + observed.inflight_use)
        )
        high = most_high
    return high, allowance


def _window_drain(bucket: Bucket) -> float:
    """Return the credits that constant drain takes for one window, at once; 0 for other drains."""
    if bucket.drain == "constant":
        return (bucket.peak_per_second - bucket.base_per_second) * WINDOW_S
    return 0.0


def _inflight_drain(bucket: Bucket, observed: _Observed) -> float:
    """Return the credits that requests in flight may have drained already."""
    if bucket.drain == "constant":
        return observed.inflight_use / (bucket.base_per_second * WINDOW_S) * _window_drain(bucket)
    return observed.inflight_use


def _window_edge(bucket: Bucket, observed: _Observed) -> float:
    """Return how far a burst may be ahead of the peak rate, at the edge of a window."""
    window_s = WINDOW_S * (1 + JITTER_SHARE)
    return bucket.base_per_second * window_s + _overdraft(bucket, observed.request)


def _max_baseline(bucket: Bucket) -> float:
    """Return the largest baseline allowance: what may be used at once without credits.

    A limiter with windows admits the baseline of two windows at the edge between them.
    """
    return bucket.base_per_second * max(bucket.baseline_depth_s, 2 * WINDOW_S)


def _overdraft(bucket: Bucket, request: float) -> float:
    """Return how far one request may overdraw the bucket; a guess until one was observed."""
    return request or bucket.base_per_second * WINDOW_S


def _inflight_use(inflight: int, request: float) -> float:
    """Return the use of requests in flight; infinite until one has completed."""
    if not inflight:
        return 0.0
    return inflight * request or math.inf


def _reset(before: Credits, bucket: Bucket) -> Credits:
    """Return initial bounds, because the bounds crossed: the terms are not what is enforced."""
    return msgspec.structs.replace(
        initial(bucket),
        estimate_credits=before.estimate_credits,
        request_credits=before.request_credits,
    )
