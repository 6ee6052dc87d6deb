"""The burst credits of one disk, updated while it is busy, idle or not sampled."""

import math
from collections.abc import Mapping

import msgspec

from disksla.promise.catalogue import Bucket, Limits, Resource
from disksla.verdict.credits.bounds import (
    NO_USE,
    Credits,
    ThrottledAt,
    Use,
    advance,
    advance_unobserved,
    exhaustion_s,
    initial,
    lasting_per_second,
    refill_s,
)
from disksla.verdict.interval import Interval
from disksla.verdict.throttling import LimitKind, Throttle

SHORTEST_S = 0.09
"""Shortest time for which credits are computed: about a window of the limiter."""

_LIMIT_OF: Mapping[Resource, tuple[LimitKind, ...]] = {
    "iops": ("iops",),
    "bytes": ("bandwidth",),
    "service_seconds": ("iops", "bandwidth"),
}
"""The limits at which a bucket of each resource throttles."""


class CreditLevel(msgspec.Struct, frozen=True):
    """Level of one bucket, in its unit: I/Os, bytes, or seconds of baseline service."""

    resource: Resource
    capacity_credits: float
    lower_credits: float
    upper_credits: float
    estimate_credits: float
    exhaustion_s: float
    """Time until empty at the rate of the last windows; infinite while credits do not decrease."""
    is_shared: bool = False
    """Other clients of a file storage use them, too: only the upper bound is known, and is the
    estimate."""
    refill_s: float = math.inf
    """Time until full without requests; infinite if it is not known."""
    lasting_ratio: float | None = None
    """Share of the present load at which credits would not decrease; None without a load."""

    def ratio(self, credits_left: float) -> float:
        """Return credits as a share of the capacity; 0 of none."""
        return credits_left / self.capacity_credits if self.capacity_credits else 0.0


class CreditAccount(msgspec.Struct, frozen=True, gc=False):
    """Credits of each bucket of a disk, in the order of the buckets."""

    bucket_credits: tuple[Credits, ...]
    at_s: float
    """Time up to which credits are computed, since boot, suspended time included."""
    pending_credits: tuple[Use, ...] = ()
    """Use of each bucket since `at_s`, while the time is shorter than SHORTEST_S."""
    pending_requests: int = 0

    def after_idle(self, buckets: tuple[Bucket, ...], until_s: float) -> "CreditAccount":
        """Return the account after a time in which the disk was idle."""
        if until_s - self.at_s < SHORTEST_S:
            return self
        return self._advanced(buckets, until_s)

    def after_window(
        self,
        limits: Limits,
        interval: Interval,
        throttle: Throttle | None,
        now_s: float,
        fewest: Interval | None = None,
    ) -> "CreditAccount":
        """Return the account after a window, which may follow an idle time.

        `fewest` is the window with the least number of data writes, if that is not certain.
        """
        buckets = limits.buckets
        idled = self.after_idle(buckets, now_s - interval.seconds)
        used = CreditAccount(
            idled.bucket_credits,
            idled.at_s,
            idled.used_of(buckets, interval, limits, fewest),
            idled.pending_requests + interval.requests,
        )
        if now_s - used.at_s < SHORTEST_S:
            return used
        return used._advanced(buckets, now_s, interval.inflight, throttle)

    def at_baseline(self, buckets: tuple[Bucket, ...], throttle: Throttle) -> "CreditAccount":
        """Return the account of a disk that is throttled: a bucket at its baseline is empty."""
        return msgspec.structs.replace(
            self,
            bucket_credits=tuple(
                msgspec.structs.replace(each, estimate_credits=each.lower_credits)
                if throttled_by(bucket, throttle) == "base"
                else each
                for each, bucket in zip(self.bucket_credits, buckets, strict=True)
            ),
        )

    def used_of(
        self,
        buckets: tuple[Bucket, ...],
        interval: Interval,
        limits: Limits,
        fewest: Interval | None = None,
    ) -> tuple[Use, ...]:
        """Return the pending use of each bucket plus that of an interval."""
        uses = self.pending_credits or (NO_USE,) * len(buckets)
        likely = interval.without_flushes()
        is_certain = fewest is None and likely is interval
        return tuple(
            use
            + (
                use_of(bucket, interval, limits)
                if is_certain
                else Use(
                    use_of(bucket, fewest or interval, limits).least,
                    use_of(bucket, likely, limits).likely,
                    use_of(bucket, interval, limits).most,
                )
            )
            for use, bucket in zip(uses, buckets, strict=True)
        )

    def _advanced(
        self,
        buckets: tuple[Bucket, ...],
        now_s: float,
        inflight: int = 0,
        throttle: Throttle | None = None,
    ) -> "CreditAccount":
        uses = self.pending_credits or (NO_USE,) * len(buckets)
        return CreditAccount(
            tuple(
                advance(
                    credit,
                    bucket=bucket,
                    seconds=now_s - self.at_s,
                    use=use,
                    requests=self.pending_requests,
                    inflight=inflight,
                    throttled_at=throttled_by(bucket, throttle),
                )
                for credit, bucket, use in zip(self.bucket_credits, buckets, uses, strict=True)
            ),
            now_s,
        )

    def after_gap(
        self,
        limits: Limits,
        interval: Interval | None,
        now_s: float,
        inflight: int = 0,
        fewest: Interval | None = None,
    ) -> "CreditAccount":
        """Return the account after a gap.

        `interval` is the I/O in the gap, or None if it is unknown, and `fewest` the same with the
        least number of data writes, if that is not certain; `inflight` are the requests in flight
        at its end.
        """
        buckets = limits.buckets
        gap_s = max(0.0, now_s - self.at_s)
        uses: tuple[Use | None, ...] = (None,) * len(buckets)
        if interval is not None:
            uses = self.used_of(buckets, interval, limits, fewest)
        return CreditAccount(
            tuple(
                advance_unobserved(
                    credit,
                    bucket=bucket,
                    shortest_s=gap_s,
                    longest_s=gap_s,
                    use=use,
                    inflight=inflight,
                )
                for credit, bucket, use in zip(self.bucket_credits, buckets, uses, strict=True)
            ),
            now_s,
        )

    def levels(self, limits: Limits, recent: Interval) -> tuple[CreditLevel, ...]:
        """Return the level of each bucket; `recent` is the I/O of the last windows."""
        recent, is_shared = recent.without_flushes(), limits.shared_by is not None
        return tuple(
            _level(
                credit,
                bucket,
                use_of(bucket, recent, limits).likely / recent.seconds,
                is_shared=is_shared,
            )
            for credit, bucket in zip(self.bucket_credits, limits.buckets, strict=True)
        )


def _level(
    credit: Credits, bucket: Bucket, use_per_second: float, *, is_shared: bool
) -> CreditLevel:
    return CreditLevel(
        resource=bucket.resource,
        capacity_credits=bucket.capacity,
        lower_credits=0.0 if is_shared else credit.lower_credits,
        upper_credits=credit.upper_credits,
        estimate_credits=credit.upper_credits if is_shared else credit.estimate_credits,
        exhaustion_s=exhaustion_s(credit, bucket, use_per_second),
        refill_s=refill_s(credit, bucket),
        lasting_ratio=lasting_per_second(bucket) / use_per_second if use_per_second else None,
        is_shared=is_shared,
    )


def open_account(limits: Limits, now_s: float) -> CreditAccount | None:
    """Return the initial account of a disk; None if its terms have no burst."""
    if limits.burst is None:
        return None
    return CreditAccount(tuple(initial(bucket) for bucket in limits.buckets), now_s)


def use_of(bucket: Bucket, interval: Interval, limits: Limits) -> Use:
    """Return the use of a bucket by an interval, in its unit: bounds, and the likely one.

    Only sums of requests and bytes are known. I/Os that are counted in chunks are at least the
    bytes by the chunk, if the provider merges requests, and at most one more for each request. A
    request with a least size uses that, or nothing beyond its bytes if it continues the one
    before. Seconds of service follow the charges that are enforced, because credits drain by them.
    Each other operation of a mount is an I/O, and has the least of metered bytes.
    """
    requests = interval.requests
    total_bytes = interval.bytes
    if bucket.resource == "iops":
        if bucket.chunk_bytes is None:
            return Use.exactly(requests + interval.others)
        chunks = total_bytes / bucket.chunk_bytes
        return Use(min(requests, chunks), max(requests, chunks), requests + chunks)
    if bucket.resource == "bytes":
        if bucket.metered is not None:
            least, most = bucket.metered.metered_bytes(interval)
            other = interval.others * bucket.metered.least_bytes
            return Use(least + other, least + other, most + other)
        if bucket.least_request_bytes is None:
            return Use.exactly(total_bytes)
        most = total_bytes + requests * bucket.least_request_bytes
        likely = max(total_bytes, requests * bucket.least_request_bytes)
        return Use(total_bytes, likely, most)
    return Use.exactly(interval.load(limits.enforced_charges, 1.0) or 0.0)


def throttled_by(bucket: Bucket, throttle: Throttle | None) -> ThrottledAt | None:
    """Return the rate at which this bucket throttled the disk; None if it did not."""
    if (
        throttle is None
        or throttle.limit not in _LIMIT_OF[bucket.resource]
        or throttle.level == "unknown"
    ):
        return None
    return throttle.level
