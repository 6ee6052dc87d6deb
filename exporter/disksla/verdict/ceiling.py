"""The ceiling of a disk: the rate at which it was last seen throttled, and its limiter."""

from typing import NamedTuple

import msgspec

from disksla.limits import Charge
from disksla.verdict.interval import Interval
from disksla.verdict.parameters import P
from disksla.verdict.span import Span, last_seconds, last_spans, span_of, ticks_of
from disksla.verdict.throttle import Throttle


class ObservedLimiter(NamedTuple):
    """What is known of the limiter that throttled a disk last."""

    iops: float | None = None
    bytes_per_second: float | None = None
    window_s: float | None = None
    """Time between two releases of requests."""
    burst_requests: float | None = None
    """Burst depth: what it has admitted beyond its rate before it throttled, or more."""
    burst_bytes: float | None = None


class Ceiling(msgspec.Struct, frozen=True, gc=False):
    """The rate at which a disk was last seen throttled, from the requests that it served then."""

    throttle: Throttle
    windows: float
    """Releases in which they were served."""
    seconds: float
    requests: float
    bytes: float
    end_s: float = 0.0
    """Monotonic time of the end of the last one; 0 if unknown."""
    burst_s: float = 0.0
    """Burst depth, in seconds at this rate (`burst_depth`)."""
    window_s: float = 0.0
    """Window of the limiter, if samples show it (`limiter_window`); else 0."""

    @property
    def iops(self) -> float:
        """Reads and writes per second."""
        return self.requests / self.seconds

    @property
    def bytes_per_second(self) -> float:
        """Bytes per second, read and written."""
        return self.bytes / self.seconds

    def limiter(self, tick_s: float) -> ObservedLimiter:
        """Return the limiter: its window, unless it is too short to be seen in samples, and burst.

        If the window was not found otherwise, it is the time between releases. Any limiter admits
        a window of requests at once, and samples may count another with them.
        """
        mean_s = self.seconds / self.windows
        window_s = self.window_s or (mean_s if ticks_of(mean_s, tick_s) > 1 else None)
        if self.burst_s <= P.burst_windows * max(window_s or 0.0, tick_s):
            return ObservedLimiter(self.iops, self.bytes_per_second, window_s)
        return ObservedLimiter(
            self.iops,
            self.bytes_per_second,
            window_s,
            self.burst_s * self.iops,
            self.burst_s * self.bytes_per_second,
        )

    def is_near(self, iops: float, bytes_per_second: float, tolerance: float) -> bool:
        """Return whether a rate is that of the ceiling, in requests or in bytes."""
        return (
            abs(iops - self.iops) <= tolerance * self.iops
            or abs(bytes_per_second - self.bytes_per_second) <= tolerance * self.bytes_per_second
        )

    def plus(self, throttle: Throttle, span: Span, end_s: float) -> "Ceiling":
        """Return the ceiling with more releases; older ones than a minute lose weight."""
        age = 2 if self.windows >= P.ceiling_memory else 1
        return Ceiling(
            throttle,
            self.windows / age + span.releases,
            self.seconds / age + span.seconds,
            self.requests / age + span.requests,
            self.bytes / age + span.bytes,
            end_s,
            self.burst_s,
            self.window_s,
        )

    def with_span(self, span: Span, end_s: float) -> "Ceiling":
        """Return the mean with a span that may have most of its releases."""
        share = P.ceiling_span_share
        return Ceiling(
            self.throttle,
            self.windows + share * (span.releases - self.windows),
            self.seconds + share * (span.seconds - self.seconds),
            self.requests + share * (span.requests - self.requests),
            self.bytes + share * (span.bytes - self.bytes),
            end_s,
            self.burst_s,
            self.window_s,
        )


def ceiling_after(
    before: Ceiling | None,
    throttle: Throttle,
    throttled: tuple[Interval, ...],
    waiting: tuple[Interval, ...],
    charges: tuple[Charge, ...],
    tick_s: float,
) -> Ceiling | None:
    """Return the ceiling with the last releases but one, up to those counted before, or a new one.

    These are the throttled ones, and those before in which requests were `waiting` ever since. The
    last is left out because the load may have ended in it, and the first throttled one because the
    limiter may have saved tokens for it. A new ceiling begins where the rate has changed.

    With flushes, the number of data writes is known as a range. Of the rates in it, only that of
    the limit which throttles is likely, by its `charges` (none if that limit is unknown). It holds
    for the releases together, not for each, so the ceiling is a mean of spans.
    """
    settled = throttled[1:-1]
    span, end_s = span_of(settled), settled[-1].end_s if settled else 0.0
    if span.seconds < P.ceiling_s or not span.requests:
        return before
    rates = span.rates
    is_near = before is not None and before.is_near(*rates, P.ceiling_change_share)
    near = before if is_near else None
    if charges and any(release.flushes for release in settled):
        load = span.load(charges) or 0.0
        if abs(load - 1) > max(1.0, load) * span.uncertainty(tick_s):
            return before
        if near is not None and near.throttle == throttle:
            return near.with_span(span, end_s)
        return Ceiling(throttle, span.releases, span.seconds, span.requests, span.bytes, end_s)
    if near is not None:
        uncounted = _uncounted(near, settled, waiting[:-1])
        return near.plus(throttle, uncounted, end_s) if uncounted.releases else near
    if throttle.limit != "unknown":  # there, the rate of all is constant
        last = last_seconds(settled, P.ceiling_s)
        span = span_of(settled[-max(len(last), P.ceiling_releases) :])
    return Ceiling(throttle, span.releases, span.seconds, span.requests, span.bytes, end_s)


def _uncounted(
    near: Ceiling, settled: tuple[Interval, ...], waiting: tuple[Interval, ...]
) -> Span:
    """Return the sum of the releases that a ceiling has not counted.

    If requests were waiting ever since, at about its rate, the limiter admitted those between,
    too. They were not found throttled because they differ from the others (a sample counts one
    window more now and then), so the mean without them would be wrong.
    """
    since = tuple(release for release in waiting if release.end_s > near.end_s)
    if since and len(since) < len(waiting):
        span = span_of(since)
        one_more = near.seconds / near.windows / span.seconds
        if near.is_near(*span.rates, P.ceiling_change_share + one_more):
            return span
    return span_of(tuple(release for release in settled if release.end_s > near.end_s))


def is_at_ceiling(ceiling: Ceiling | None, waiting: tuple[Interval, ...], tick_s: float) -> bool:
    """Return whether a load, even a shallow one, is served at the rate of an unknown limit.

    A limiter admits no more than that in any longer span, either.
    """
    if ceiling is None or ceiling.throttle.limit != "unknown" or not waiting:
        return False
    last, *longer = last_spans(waiting[1:] or waiting, P.kept_releases)
    near = last.uncertainty(tick_s)
    most = [(span.rates, 1 + span.uncertainty_of_releases(tick_s)) for span in longer]
    return any(
        abs(last.rates[amount] - limit) <= near * limit
        and all(rates[amount] <= share * limit for rates, share in most)
        for amount, limit in enumerate((ceiling.iops, ceiling.bytes_per_second))
    )
