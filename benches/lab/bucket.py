"""Token buckets whose tokens are seconds of service.

They are added once per window, or continuously, as in QEMU, where a bucket is a tenth of a second
deep unless a burst is allowed.
"""

import math
from typing import Literal

from lab.model import Meter
from support.token_bucket import ROUNDING_S, TokenBucket

DEPTH_S = 0.1
"""Depth of a continuous bucket without credits, and of the one that limits a burst."""


class Bucket(TokenBucket):
    """Seconds of service that may be spent, up to a time."""

    __slots__ = ("_filled_until_s", "window_s")

    def __init__(self, rate: float, depth_s: float, level_s: float, window_s: float) -> None:
        super().__init__(rate, depth_s, level_s)
        self.window_s = window_s
        self._filled_until_s = 0.0

    def fill_until(self, now_s: float) -> None:
        """Add the tokens up to a time."""
        if self.window_s:
            now_s = math.floor(now_s / self.window_s + ROUNDING_S) * self.window_s
        if now_s > self._filled_until_s:
            self.fill(now_s - self._filled_until_s)
            self._filled_until_s = now_s

    def is_ready(self) -> bool:
        """Return whether tokens may be spent."""
        return self.tokens > ROUNDING_S

    def ready_s(self) -> float:
        """Return the time at which tokens may be spent if none are spent before."""
        if self.is_ready():
            return self._filled_until_s
        missing_s = (ROUNDING_S - self.tokens) / self.per_second
        if self.window_s:
            missing_s = (math.floor(missing_s / self.window_s + ROUNDING_S) + 1) * self.window_s
        return self._filled_until_s + missing_s


class MeterBuckets:
    """The token buckets of one meter.

    `base` limits use at the base rate. Credits with a fill rate are a `reserve`, which pays for
    use above the base rate; otherwise the base bucket is as deep as the credits. `peak` limits the
    rate of a burst.
    """

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.per_second = meter.unit_per_second
        depth_s = meter.window or DEPTH_S
        credits_s = (meter.credits or 0.0) / self.per_second
        level_s = credits_s if meter.level is None else meter.level / self.per_second
        self.reserve: Bucket | None = None
        if meter.fill is not None:
            fill = meter.fill / self.per_second
            self.reserve = Bucket(fill, credits_s, level_s, meter.window)
        if self.reserve is not None or meter.credits is None:
            self.base = Bucket(1.0, depth_s, depth_s, meter.window)
        else:
            self.base = Bucket(1.0, max(credits_s, depth_s), level_s, meter.window)
        self.peak: Bucket | None = None
        if meter.peak is not None:
            peak = meter.peak / self.per_second
            self.peak = Bucket(peak, peak * depth_s, peak * depth_s, meter.window)

    @property
    def credits(self) -> float:
        """Level of the credits, in the unit of the limit."""
        return (self.reserve or self.base).tokens * self.per_second

    def fill(self, now_s: float) -> None:
        for bucket in (self.base, self.reserve, self.peak):
            if bucket is not None:
                bucket.fill_until(now_s)

    def is_ready(self) -> bool:
        has_tokens = self.base.is_ready() or (self.reserve is not None and self.reserve.is_ready())
        return has_tokens and (self.peak is None or self.peak.is_ready())

    def spend(self, cost_s: float) -> None:
        self.base.tokens -= cost_s
        if self.peak is not None:
            self.peak.tokens -= cost_s
        if self.reserve is not None and self.base.tokens < 0:
            paid_s = min(-self.base.tokens, max(self.reserve.tokens, 0.0))
            self.base.tokens += paid_s
            self.reserve.tokens -= paid_s

    def ready(self) -> tuple[float, Literal["base", "burst"]]:
        """Return the time at which tokens may be spent, and the rate that limits it."""
        ready_s = self.base.ready_s()
        if self.reserve is not None:
            ready_s = min(ready_s, self.reserve.ready_s())
        if self.peak is not None and self.peak.ready_s() > ready_s:
            return self.peak.ready_s(), "burst"
        return ready_s, "base"
