"""Verdicts on one disk beside what the provider says of the same time.

Verdicts are on windows, of 100 ms by default, and the provider is read less often: windows wait
until a span between two readings covers them, and the next span has been read, or until that can
no longer be. Then their throttled seconds get the name of the limit (docs/adr/0030).
"""

from collections.abc import Iterable
from functools import reduce

import msgspec

from disksla.clouds.ebs_statistics import EBS_LIMITS, Change
from disksla.state.provider_count.agreement import (
    NO_SECONDS,
    PROVIDER_LIMITS,
    Agreement,
    added,
    agreement_of,
    named_limit,
    named_seconds,
    with_limit,
)
from disksla.verdict.interval import Interval
from disksla.verdict.throttling import LIMIT_KINDS, OF_MACHINE, LimitKind, Throttle, WindowVerdict

SHORTEST_SPAN_S = 0.9
"""Shorter times between readings are put together: verdicts are on windows of 100 ms, of which a
part may be throttled."""
LONGEST_SPAN_S = 2.5
"""One reading may be missing. In a longer time, verdicts and what the provider counts need not
belong together."""


class ProviderSpan(msgspec.Struct, frozen=True, gc=False):
    """What the provider says of a time."""

    begin_s: float
    """Monotonic times of two readings."""
    end_s: float
    throttled_s: tuple[float, ...]
    """Seconds by limit, in the order of PROVIDER_LIMITS."""

    @property
    def seconds(self) -> float:
        """Duration."""
        return self.end_s - self.begin_s

    @property
    def is_whole(self) -> bool:
        """Whether it is long enough, and not too long, for a comparison."""
        return SHORTEST_SPAN_S <= self.seconds <= LONGEST_SPAN_S

    def is_beside(self, other: "ProviderSpan") -> bool:
        """Return whether one begins where the other ends."""
        return self.end_s == other.begin_s or self.begin_s == other.end_s

    def plus(self, later: "ProviderSpan") -> "ProviderSpan":
        """Return this span and the one that follows it as one."""
        throttled_s = added(self.throttled_s, later.throttled_s)
        return ProviderSpan(self.begin_s, later.end_s, throttled_s)


def span_of(change: Change) -> ProviderSpan:
    """Return what a page says of the time between two readings of it."""
    return ProviderSpan(
        change.begin_s,
        change.end_s,
        tuple(change.exceeded_us.get(limit, 0) / 1e6 for limit in EBS_LIMITS),
    )


LATE_S = 2.0
"""After this time, the next span is not waited for."""
LONGEST_WAIT_S = 3.0
"""Longest time that throttled seconds wait for a reading. A verdict waits for two seconds at most
(`disksla.verdict.throttling`), and a span ends after half as long again as between two
readings."""


class ThrottledWindow(msgspec.Struct, frozen=True, gc=False):
    """A throttled window, or a part of one."""

    begin_s: float
    end_s: float
    limit: int
    """By the verdict: place in LIMIT_KINDS."""
    is_burst: bool
    """Throttled at the burst rate."""
    throttled_s: float
    is_own: bool = True
    """Throttled by the verdict without the provider, too; else the provider names the limit."""

    def cut(self, at_s: float) -> tuple["ThrottledWindow | None", "ThrottledWindow | None"]:
        """Return the parts before and after a time; its throttled time is spread evenly."""
        if self.end_s <= at_s:
            return self, None
        if self.begin_s >= at_s:
            return None, self
        share = (at_s - self.begin_s) / (self.end_s - self.begin_s)
        before_s = self.throttled_s * min(1.0, share)
        return (
            msgspec.structs.replace(self, end_s=at_s, throttled_s=before_s),
            msgspec.structs.replace(self, begin_s=at_s, throttled_s=self.throttled_s - before_s),
        )


class Comparison(msgspec.Struct, frozen=True, gc=False):
    """What has been compared, and what waits for it. Times are monotonic."""

    since_s: float
    """All before has been named. A span that begins before is not compared."""
    throttled_s: tuple[float, ...]
    """Throttled seconds of the verdicts by limit, as far as they are named, in the order of
    LIMIT_KINDS: by the provider, where it was read."""
    burst_s: float = 0.0
    """Those of them at the burst rate."""
    agreement: Agreement = Agreement()
    windows: tuple[ThrottledWindow, ...] = ()
    """Throttled windows that wait, the oldest first."""
    spans: tuple[ProviderSpan, ...] = ()
    """Spans that wait, the oldest first; the last may become longer."""
    last: ProviderSpan | None = None
    """The last span that was compared."""

    def with_verdicts(self, decided: Iterable[tuple[Interval, WindowVerdict]]) -> "Comparison":
        """Add windows with their verdicts, the oldest first."""
        throttled = tuple(
            ThrottledWindow(
                begin_s=window.end_s - window.seconds,
                end_s=window.end_s,
                limit=LIMIT_KINDS.index(found.throttle.limit),
                is_burst=found.throttle.level == "burst",
                throttled_s=found.throttled_share * window.seconds,
                is_own=not found.is_by_provider,
            )
            for window, found in decided
            if found.throttle is not None and window.seconds
        )
        if not throttled:
            return self
        return msgspec.structs.replace(self, windows=(*self.windows, *throttled))

    def with_span(self, span: ProviderSpan) -> "Comparison":
        """Add what the provider says of a time."""
        last = self.spans[-1] if self.spans else None
        if last is not None and last.end_s == span.begin_s and last.seconds < SHORTEST_SPAN_S:
            spans = (*self.spans[:-1], last.plus(span))
        else:
            spans = (*self.spans, span)
        return msgspec.structs.replace(self, spans=spans)

    def until(self, now_s: float, decided_to_s: float) -> "Comparison":
        """Return the comparison after everything that waits no longer has been named.

        All windows up to `decided_to_s` have a verdict.
        """
        comparison = self
        while comparison.spans and comparison._is_ready(now_s, decided_to_s):
            comparison = comparison._compared()
        until_s = now_s - LONGEST_WAIT_S
        if comparison.spans:
            until_s = min(until_s, comparison.spans[0].begin_s)
        if not comparison.windows or comparison.windows[0].begin_s >= until_s:
            return comparison
        return comparison.named_until(until_s)

    def interrupted(self, now_s: float) -> "Comparison":
        """Return the comparison after a gap: nothing that waits can be compared."""
        return msgspec.structs.replace(self.named_until(now_s), spans=(), last=None)

    def present(self, throttle: Throttle, now_s: float) -> Throttle:
        """Return where a disk is throttled now, with the limit that the provider counted lately.

        If it counted none, that is not known yet, and the limit is the own one.
        """
        lately_s = self._lately_s(now_s)
        if not any(lately_s):
            return throttle
        return with_limit(throttle, named_limit(throttle.limit, lately_s))

    def machine_limit(self, now_s: float) -> LimitKind | None:
        """Return the limit of the machine, if the provider counted it most lately; else None."""
        by_limit_s = dict(zip(PROVIDER_LIMITS, self._lately_s(now_s), strict=True))
        most = max(PROVIDER_LIMITS, key=by_limit_s.__getitem__)
        return most if by_limit_s[most] and most in OF_MACHINE else None

    def _lately_s(self, now_s: float) -> tuple[float, ...]:
        """Return the seconds that the provider counted lately, in the order of PROVIDER_LIMITS."""
        spans = [span for span in (self.last, *self.spans) if span is not None]
        return _sum(span.throttled_s for span in spans if now_s - span.end_s < LATE_S)

    def _is_ready(self, now_s: float, decided_to_s: float) -> bool:
        """Return whether the first span can be compared."""
        is_followed = len(self.spans) > 1 and self.spans[1].seconds >= SHORTEST_SPAN_S
        end_s = self.spans[0].end_s
        return decided_to_s >= end_s and (is_followed or now_s - end_s >= LATE_S)

    def _compared(self) -> "Comparison":
        """Return the comparison after the first span, which is left out if it is not usable."""
        span, *later = self.spans
        without = msgspec.structs.replace(self, spans=tuple(later))
        if span.begin_s < self.since_s or not span.is_whole:
            return without
        before = without.named_until(span.begin_s)
        inside, after = _cut(before.windows, span.end_s)
        own = tuple(window for window in inside if window.is_own)
        others = tuple(window for window in inside if not window.is_own)
        agreement = agreement_of(span.seconds, _by_limit(own), span.throttled_s)
        nearest = (self.last, *later[:1])
        around = [each for each in nearest if each is not None and each.is_beside(span)]
        around_s = _sum(each.throttled_s for each in around)
        named_s = named_seconds(agreement, span.throttled_s, around_s)
        return msgspec.structs.replace(
            before,
            since_s=span.end_s,
            throttled_s=added(added(before.throttled_s, named_s), _by_limit(others)),
            burst_s=before.burst_s + _burst_s(inside),
            agreement=self.agreement.plus(agreement),
            windows=after,
            last=span,
        )

    def named_until(self, time_s: float) -> "Comparison":
        """Return the comparison after all windows up to a time are named by their verdict."""
        time_s = max(time_s, self.since_s)
        named, windows = _cut(self.windows, time_s)
        throttled_s = added(self.throttled_s, _by_limit(named)) if named else self.throttled_s
        return msgspec.structs.replace(
            self,
            since_s=time_s,
            throttled_s=throttled_s,
            burst_s=self.burst_s + _burst_s(named),
            windows=windows,
        )


def _cut(
    windows: tuple[ThrottledWindow, ...], at_s: float
) -> tuple[tuple[ThrottledWindow, ...], tuple[ThrottledWindow, ...]]:
    """Return the windows before a time, and those after it."""
    parts = [window.cut(at_s) for window in windows]
    return (
        tuple(before for before, _ in parts if before is not None),
        tuple(after for _, after in parts if after is not None),
    )


def _by_limit(windows: tuple[ThrottledWindow, ...]) -> tuple[float, ...]:
    seconds = [0.0] * len(LIMIT_KINDS)
    for window in windows:
        seconds[window.limit] += window.throttled_s
    return tuple(seconds)


def _burst_s(windows: tuple[ThrottledWindow, ...]) -> float:
    return sum(window.throttled_s for window in windows if window.is_burst)


def _sum(amounts: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
    return reduce(added, amounts, NO_SECONDS)
