"""The burst credits of one disk, kept as it is seen: busy, resting, or out of sight."""

from collections.abc import Mapping

import msgspec

from disksla.core.cost import load_ratio
from disksla.core.credits import Credits, Held, after, after_gap, begin, exhaustion_s
from disksla.core.interval import Interval
from disksla.core.limits import Bucket, Limits, Resource
from disksla.core.throttle import Hold, LimitKind

SHORTEST_S = 0.09
"""Credits are not reckoned over less: the limiter's own windows are about as long."""

_LIMIT_OF: Mapping[Resource, tuple[LimitKind, ...]] = {
    "iops": ("iops",),
    "bytes": ("bandwidth",),
    "service_seconds": ("iops", "bandwidth"),
}
"""The limits at which a bucket of each resource holds."""


class CreditLevel(msgspec.Struct, frozen=True):
    """What is known of one bucket, in its unit: I/Os, bytes, or seconds of base service."""

    resource: Resource
    capacity_credits: float
    lower_credits: float
    upper_credits: float
    estimate_credits: float
    exhaustion_s: float
    """Time to empty at the rate of the last windows; infinite while not draining."""


class Purse(msgspec.Struct, frozen=True, gc=False):
    """Credits of each bucket of the disk's burst, in their order."""

    contents: tuple[Credits, ...]
    at_s: float
    """Up to when they are reckoned; time since boot, suspended time included."""
    unreckoned_credits: tuple[float, ...] = ()
    """What was used of each bucket since, while that is too short a time to be reckoned with."""
    unreckoned_requests: int = 0

    def after_rest(self, buckets: tuple[Bucket, ...], until_s: float) -> "Purse":
        """Let time pass in which the disk did nothing more."""
        if until_s - self.at_s < SHORTEST_S:
            return self
        return self._reckoned(buckets, until_s)

    def after_window(
        self, limits: Limits, interval: Interval, hold: Hold | None, now_s: float
    ) -> "Purse":
        """Let a window pass, which may come after a rest."""
        buckets = limits.buckets
        rested = self.after_rest(buckets, now_s - interval.seconds)
        used = Purse(
            rested.contents,
            rested.at_s,
            rested.used_of(buckets, interval, limits),
            rested.unreckoned_requests + interval.reads + interval.writes,
        )
        if now_s - used.at_s < SHORTEST_S:
            return used
        return used._reckoned(buckets, now_s, interval.inflight, hold)

    def used_of(
        self, buckets: tuple[Bucket, ...], interval: Interval, limits: Limits
    ) -> tuple[float, ...]:
        """Give what was used of each bucket, an interval included."""
        uses = self.unreckoned_credits or (0.0,) * len(buckets)
        return tuple(
            use + use_of(bucket.resource, interval, limits)
            for use, bucket in zip(uses, buckets, strict=True)
        )

    def _reckoned(
        self,
        buckets: tuple[Bucket, ...],
        now_s: float,
        inflight: int = 0,
        hold: Hold | None = None,
    ) -> "Purse":
        uses = self.unreckoned_credits or (0.0,) * len(buckets)
        return Purse(
            tuple(
                after(
                    credit,
                    bucket,
                    now_s - self.at_s,
                    use,
                    self.unreckoned_requests,
                    inflight,
                    _held_by(bucket, hold),
                )
                for credit, bucket, use in zip(self.contents, buckets, uses, strict=True)
            ),
            now_s,
        )

    def after_gap(
        self, limits: Limits, interval: Interval | None, now_s: float, inflight: int = 0
    ) -> "Purse":
        """Let time pass in which the disk was not seen, or not well.

        `interval` has what it did meanwhile, if that is known; `inflight` are the requests in
        flight at the end.
        """
        buckets = limits.buckets
        away_s = max(0.0, now_s - self.at_s)
        uses: tuple[float | None, ...] = (None,) * len(buckets)
        if interval is not None:
            uses = self.used_of(buckets, interval, limits)
        return Purse(
            tuple(
                after_gap(credit, bucket, away_s, away_s, use, inflight)
                for credit, bucket, use in zip(self.contents, buckets, uses, strict=True)
            ),
            now_s,
        )

    def levels(self, limits: Limits, recent: Interval) -> tuple[CreditLevel, ...]:
        """Give what is known; `recent` is what the disk did of late."""
        return tuple(
            CreditLevel(
                bucket.resource,
                bucket.capacity,
                credit.lower_credits,
                credit.upper_credits,
                credit.estimate_credits,
                exhaustion_s(
                    credit, bucket, use_of(bucket.resource, recent, limits) / recent.seconds
                ),
            )
            for credit, bucket in zip(self.contents, limits.buckets, strict=True)
        )


def open_purse(limits: Limits, now_s: float) -> Purse | None:
    """Give what is known of the credits of a disk that was never seen; None if it has none."""
    if limits.burst is None:
        return None
    return Purse(tuple(begin(bucket) for bucket in limits.buckets), now_s)


def use_of(resource: Resource, interval: Interval, limits: Limits) -> float:
    """Give what requests used of a resource, in its unit.

    Seconds of service are those of the law that is enforced: what is drained follows that.
    """
    if resource == "iops":
        return interval.reads + interval.writes
    if resource == "bytes":
        return interval.read_bytes + interval.written_bytes
    used_s = load_ratio(
        limits.enforced_charges,
        1.0,
        interval.reads,
        interval.writes,
        interval.read_bytes,
        interval.written_bytes,
    )
    return used_s or 0.0


def _held_by(bucket: Bucket, hold: Hold | None) -> Held | None:
    """Tell at which rate this bucket held the disk, if it was this one."""
    if hold is None or hold.limit not in _LIMIT_OF[bucket.resource] or hold.level == "unknown":
        return None
    return hold.level
