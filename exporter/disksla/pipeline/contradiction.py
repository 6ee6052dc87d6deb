"""What the provider's count contradicts: limits of the terms, and bounds of burst credits.

The page counts requests and throttled time together, so both are of exactly the same time.
"""

from collections.abc import Iterator
from typing import Literal, get_args

from disksla.credits import CreditAccount
from disksla.limits import Charge, Limits, Resource
from disksla.pipeline.agreement import PROVIDER_LIMITS
from disksla.pipeline.provider_span import ProviderSpan
from disksla.verdict import LimitKind

Contradiction = Literal["limit_too_high", "limit_too_low", "credits_too_high"]
"""The provider throttles below the limit of the terms; it does not throttle, but serves more than
that limit; it throttles below the burst rate while credits are left by their lower bound."""
CONTRADICTIONS: tuple[Contradiction, ...] = get_args(Contradiction)

THROTTLED_SHARE = 0.9
"""A disk that is throttled for this share of a time is at its limit in nearly all of it."""
BELOW_RATIO = 0.8
"""At its limit for the share above, a disk has a load of 0.9 at least."""
ABOVE_RATIO = 1.2
"""A larger load exceeds a limit by more than a limiter saves in a tenth of a second."""

_LIMIT_OF: dict[Resource, LimitKind] = {"iops": "iops", "bytes": "bandwidth"}
"""The limit at which a bucket of each resource throttles; EBS has no other resources."""


def contradictions(
    span: ProviderSpan, limits: Limits, account: CreditAccount | None
) -> Iterator[Contradiction]:
    """Yield what a time contradicts; `account` has the credits at its end, if there are any."""
    throttled_s = dict(zip(PROVIDER_LIMITS, span.throttled_s, strict=True))
    at_limit: list[LimitKind] = [
        limit
        for limit in ("iops", "bandwidth")
        if throttled_s[limit] >= THROTTLED_SHARE * span.seconds
    ]
    if any(_is_below(span, limits.promise_charges, limit) for limit in at_limit):
        yield "limit_too_high"
    most = span.load(limits.burst_charges or limits.promise_charges)
    if most is not None and most > ABOVE_RATIO and not any(span.throttled_s):
        yield "limit_too_low"
    for bucket, credit in zip(
        limits.buckets, account.bucket_credits if account is not None else (), strict=False
    ):
        limit = _LIMIT_OF.get(bucket.resource)
        # Before its end, credits may have been fewer by what was filled since.
        least = credit.lower_credits - bucket.fill_per_second * span.seconds
        if limit in at_limit and least > 0 and _is_below(span, limits.burst_charges, limit):
            yield "credits_too_high"
            return


def _is_below(span: ProviderSpan, charges: tuple[Charge, ...], limit: LimitKind | None) -> bool:
    """Return whether the load is below one limit; False without that limit."""
    load = span.load(tuple(charge for charge in charges if charge.limit == limit))
    return load is not None and load < BELOW_RATIO
