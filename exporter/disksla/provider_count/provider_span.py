"""What the provider says of the time between two readings of a statistics page."""

import msgspec

from disksla.ebs import EBS_LIMITS, Change

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
        return ProviderSpan(
            self.begin_s,
            later.end_s,
            tuple(a + b for a, b in zip(self.throttled_s, later.throttled_s, strict=True)),
        )


def span_of(change: Change) -> ProviderSpan:
    """Return what a page says of the time between two readings of it."""
    return ProviderSpan(
        change.begin_s,
        change.end_s,
        tuple(change.exceeded_us.get(limit, 0) / 1e6 for limit in EBS_LIMITS),
    )
