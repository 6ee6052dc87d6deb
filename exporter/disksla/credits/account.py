"""The burst credits of one disk, kept as it is seen: busy, resting, or out of sight."""

from collections.abc import Mapping

import msgspec

from disksla.credits.bounds import (
    Credits,
    ThrottledAt,
    advance,
    advance_unobserved,
    exhaustion_s,
    initial,
)
from disksla.limits import Bucket, Limits, Resource, load_ratio
from disksla.verdict import Interval, LimitKind, Throttle

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


class CreditAccount(msgspec.Struct, frozen=True, gc=False):
    """Credits of each bucket of the disk's burst, in their order."""

    bucket_credits: tuple[Credits, ...]
    at_s: float
    """Up to when they are reckoned; time since boot, suspended time included."""
    pending_credits: tuple[float, ...] = ()
    """What was used of each bucket since, while that is too short a time to be reckoned with."""
    pending_requests: int = 0

    def after_idle(self, buckets: tuple[Bucket, ...], until_s: float) -> "CreditAccount":
        """Let time pass in which the disk did nothing more."""
        if until_s - self.at_s < SHORTEST_S:
            return self
        return self._advanced(buckets, until_s)

    def after_window(
        self, limits: Limits, interval: Interval, throttle: Throttle | None, now_s: float
    ) -> "CreditAccount":
        """Let a window pass, which may come after a rest."""
        buckets = limits.buckets
        rested = self.after_idle(buckets, now_s - interval.seconds)
        used = CreditAccount(
            rested.bucket_credits,
            rested.at_s,
            rested.used_of(buckets, interval, limits),
            rested.pending_requests + interval.reads + interval.writes,
        )
        if now_s - used.at_s < SHORTEST_S:
            return used
        return used._advanced(buckets, now_s, interval.inflight, throttle)

    def used_of(
        self, buckets: tuple[Bucket, ...], interval: Interval, limits: Limits
    ) -> tuple[float, ...]:
        """Give what was used of each bucket, an interval included."""
        uses = self.pending_credits or (0.0,) * len(buckets)
        return tuple(
            use + use_of(bucket.resource, interval, limits)
            for use, bucket in zip(uses, buckets, strict=True)
        )

    def _advanced(
        self,
        buckets: tuple[Bucket, ...],
        now_s: float,
        inflight: int = 0,
        throttle: Throttle | None = None,
    ) -> "CreditAccount":
        uses = self.pending_credits or (0.0,) * len(buckets)
        return CreditAccount(
            tuple(
                advance(
                    credit,
                    bucket,
                    now_s - self.at_s,
                    use,
                    self.pending_requests,
                    inflight,
                    _throttled_by(bucket, throttle),
                )
                for credit, bucket, use in zip(self.bucket_credits, buckets, uses, strict=True)
            ),
            now_s,
        )

    def after_gap(
        self, limits: Limits, interval: Interval | None, now_s: float, inflight: int = 0
    ) -> "CreditAccount":
        """Let time pass in which the disk was not seen, or not well.

        `interval` has what it did meanwhile, if that is known; `inflight` are the requests in
        flight at the end.
        """
        buckets = limits.buckets
        away_s = max(0.0, now_s - self.at_s)
        uses: tuple[float | None, ...] = (None,) * len(buckets)
        if interval is not None:
            uses = self.used_of(buckets, interval, limits)
        return CreditAccount(
            tuple(
                advance_unobserved(credit, bucket, away_s, away_s, use, inflight)
                for credit, bucket, use in zip(self.bucket_credits, buckets, uses, strict=True)
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
            for credit, bucket in zip(self.bucket_credits, limits.buckets, strict=True)
        )


def open_account(limits: Limits, now_s: float) -> CreditAccount | None:
    """Give what is known of the credits of a disk that was never seen; None if it has none."""
    if limits.burst is None:
        return None
    return CreditAccount(tuple(initial(bucket) for bucket in limits.buckets), now_s)


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


def _throttled_by(bucket: Bucket, throttle: Throttle | None) -> ThrottledAt | None:
    """Tell at which rate this bucket held the disk, if it was this one."""
    if (
        throttle is None
        or throttle.limit not in _LIMIT_OF[bucket.resource]
        or throttle.level == "unknown"
    ):
        return None
    return throttle.level
