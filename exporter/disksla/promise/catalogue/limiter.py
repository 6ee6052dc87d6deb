"""How limiters behave: even or in windows, their bucket, and what they serve above the promise."""

from typing import Annotated, Literal

import msgspec

from disksla.base.schema import Date, LongText, Seconds, Text, pattern, percentage

Address = Annotated[str, pattern("an address such as https://example.com/page", r"https?://\S+")]
LimiterKind = Literal["even", "windows"]

USUAL_EXCESS_RATIO = 0.025
"""Of 89 published steady rates at a limit, 75 are from 1 % below it to this share above it
(docs/limiters.md)."""


class Limiter(msgspec.Struct, frozen=True):
    """How the limiter of a disk behaves; the default is one of which nothing is known."""

    kind: LimiterKind | None = None
    """`even`: its bucket is filled all the time. `windows`: it is filled at the end of each
    window, until when a disk that has used its share waits. None if that is not known."""
    window_s: float | None = None
    bucket_s: float | None = None
    """What it lets pass at once after a rest, as seconds of its rate; None if not known."""
    excess_ratio: float = USUAL_EXCESS_RATIO
    """The most by which a steady rate is above the promise and still that of the limiter, as a
    share of the promise; more than usual only where more was measured."""


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a behaviour was measured or is stated."""

    title: Text
    date: Date
    """Of the measurement, or the day of reading where the source has none."""
    url: Address | None = None


class LimiterTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is known of the limiter of a type; what is absent is not known."""

    kind: LimiterKind | None = None
    window_s: Seconds | None = msgspec.field(default=None, name="window")
    bucket_s: Seconds | None = msgspec.field(default=None, name="bucket")
    excess_ratio: Annotated[float, percentage(0, 10)] | None = msgspec.field(
        default=None, name="excess"
    )
    about: LongText | None = None
    """What was measured, and what is not known. Required for the rows of the package."""
    sources: tuple[Measured, ...] = ()
    """Required for the rows of the package."""

    def __post_init__(self) -> None:
        """Raise ValueError if windows have no length, or something else has one."""
        if (self.kind == "windows") != (self.window_s is not None):
            raise ValueError("found only one of kind windows and window; expected both")

    @property
    def limiter(self) -> Limiter:
        """The limiter of a disk of this type."""
        excess_ratio = max(self.excess_ratio or 0.0, USUAL_EXCESS_RATIO)
        return Limiter(self.kind, self.window_s, self.bucket_s, excess_ratio)
