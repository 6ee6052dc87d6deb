"""What is known of burst credits, as JSON and as a sentence."""

import math

import msgspec

from disksla.credits import CreditLevel
from disksla.units import format_duration, format_percent


class CreditsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Burst credits of one resource, as shares of the capacity."""

    resource: str
    ratio: float
    lower_ratio: float
    upper_ratio: float
    exhaustion_s: float | None
    """Seconds until they are used up at the present load; None while they do not decrease."""
    is_shared: bool = False
    """Other clients use them, too, so that only the upper bound is known."""

    @property
    def is_known(self) -> bool:
        """Whether anything is known of them; not so at the start."""
        return self.lower_ratio > 0 or self.upper_ratio < 1

    def describe(self) -> str:
        """Return how many are left, and for how long, as a sentence."""
        share, lower, upper = map(format_percent, (self.ratio, self.lower_ratio, self.upper_ratio))
        empty = (
            ""
            if self.exhaustion_s is None
            else f"; used up in {format_duration(self.exhaustion_s)} at the present load"
        )
        if self.is_shared:
            shared = f"Burst credits ({self.resource}), shared by all clients"
            return f"{shared}: at most {upper}{empty}."
        return f"Burst credits ({self.resource}): {share}, between {lower} and {upper}{empty}."


def credits_document(level: CreditLevel) -> CreditsDocument:
    """Return what is known of the credits of one resource."""
    return CreditsDocument(
        resource=level.resource,
        ratio=level.ratio(level.estimate_credits),
        lower_ratio=level.ratio(level.lower_credits),
        upper_ratio=level.ratio(level.upper_credits),
        exhaustion_s=level.exhaustion_s if math.isfinite(level.exhaustion_s) else None,
        is_shared=level.is_shared,
    )
