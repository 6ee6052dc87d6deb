"""Token buckets, exactly. Time is an argument; tokens are seconds of service.

What is spent may overdraw, and is paid back before more can be spent. Tokens come once per window,
as where "a second is split in ten parts"
(https://yandex.cloud/en/docs/compute/concepts/storage-read-write), or drip, as in QEMU
(util/throttle.c), where a bucket is a tenth of a second deep unless a burst is allowed.
"""

import math
from typing import Literal

from lab.model import Meter

DEPTH_S = 0.1
"""Of a dripping bucket without credits, and of the one that bounds a burst."""
_NOTHING_S = 1e-9
"""Less than this is rounding."""


class Bucket:
    """Seconds of service that may be spent."""

    def __init__(self, rate: float, capacity_s: float, level_s: float, window_s: float) -> None:
        self.rate = rate
        self.capacity_s = capacity_s
        self.level_s = level_s
        self.window_s = window_s
        self._settled_s = 0.0

    def settle(self, now_s: float) -> None:
        """Add what has come up to now."""
        if self.window_s:
            now_s = math.floor(now_s / self.window_s + _NOTHING_S) * self.window_s
        if now_s > self._settled_s:
            came_s = self.rate * (now_s - self._settled_s)
            self.level_s = min(self.capacity_s, self.level_s + came_s)
            self._settled_s = now_s

    def is_ready(self) -> bool:
        """Tell whether anything may be spent."""
        return self.level_s > _NOTHING_S

    def ready_s(self) -> float:
        """Give the time from which on something may be spent, as things stand."""
        if self.is_ready():
            return self._settled_s
        missing_s = (_NOTHING_S - self.level_s) / self.rate
        if self.window_s:
            missing_s = (math.floor(missing_s / self.window_s + _NOTHING_S) + 1) * self.window_s
        return self._settled_s + missing_s


class Gate:
    """A meter and its buckets.

    `base` bounds what is done at the base rate. Where credits fill by themselves they are a
    `reserve`, which pays for what the base cannot; else the base bucket is as deep as they are.
    `slice` bounds what a burst may do at once.
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
        self.slice: Bucket | None = None
        if meter.peak is not None:
            peak = meter.peak / self.per_second
            self.slice = Bucket(peak, peak * depth_s, peak * depth_s, meter.window)

    @property
    def credits(self) -> float:
        """Give the level in the meter's own unit."""
        return (self.reserve or self.base).level_s * self.per_second

    def settle(self, passed_s: float) -> None:
        for bucket in (self.base, self.reserve, self.slice):
            if bucket is not None:
                bucket.settle(passed_s)

    def is_ready(self) -> bool:
        funded = self.base.is_ready() or (self.reserve is not None and self.reserve.is_ready())
        return funded and (self.slice is None or self.slice.is_ready())

    def spend(self, cost_s: float) -> None:
        self.base.level_s -= cost_s
        if self.slice is not None:
            self.slice.level_s -= cost_s
        if self.reserve is not None and self.base.level_s < 0:
            paid_s = min(-self.base.level_s, max(self.reserve.level_s, 0.0))
            self.base.level_s += paid_s
            self.reserve.level_s -= paid_s

    def ready(self) -> tuple[float, Literal["base", "burst"]]:
        """Give the time from which on something may be spent, and what is waited for."""
        funded_s = self.base.ready_s()
        if self.reserve is not None:
            funded_s = min(funded_s, self.reserve.ready_s())
        if self.slice is not None and self.slice.ready_s() > funded_s:
            return self.slice.ready_s(), "burst"
        return funded_s, "base"
