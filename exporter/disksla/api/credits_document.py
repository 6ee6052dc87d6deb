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
    refill_s: float | None = None
    """Seconds until they are full without requests; None if that is not known."""
    lasting_ratio: float | None = None
    """Share of the present load at which they would not decrease; None without a load."""

    @property
    def is_known(self) -> bool:
        """Whether anything is known of them; not so at the start."""
        return self.lower_ratio > 0 or self.upper_ratio < 1

    def describe(self) -> str:
        """Return how many are left, for how long, and after which time they are full."""
        share, lower, upper = map(format_percent, (self.ratio, self.lower_ratio, self.upper_ratio))
        parts = [f"Burst credits ({self.resource}): {share}, between {lower} and {upper}"]
        if self.exhaustion_s is not None:
            parts.append(f"empty in {format_duration(self.exhaustion_s)} at this load")
        if self.refill_s:
            parts.append(f"full again after {format_duration(self.refill_s)} at rest")
        if self.exhaustion_s is not None and self.lasting_ratio is not None:
            parts.append(f"{format_percent(round(self.lasting_ratio, 2))} of this load would last")
        return "; ".join(parts) + "."


def credits_document(level: CreditLevel) -> CreditsDocument:
    """Return what is known of the credits of one resource."""
    return CreditsDocument(
        resource=level.resource,
        ratio=level.ratio(level.estimate_credits),
        lower_ratio=level.ratio(level.lower_credits),
        upper_ratio=level.ratio(level.upper_credits),
        exhaustion_s=_finite(level.exhaustion_s),
        refill_s=_finite(level.refill_s),
        lasting_ratio=level.lasting_ratio,
    )


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None
