"""Assignment: the terms and limits of one disk, with the reason."""

from typing import Literal, get_args

import msgspec

from disksla.base.units import format_duration
from disksla.promise.catalogue.limits import Limits
from disksla.promise.disk_entry import Caching

TermsSource = Literal["configuration", "file", "api", "metadata", "none"]
"""Who says what a disk is, the best first."""
TERMS_SOURCES: tuple[TermsSource, ...] = get_args(TermsSource)

UNKNOWN_TERMS = "unknown"
"""Terms and provider of a disk of which nothing says what it was sold as."""


class Assignment(msgspec.Struct, frozen=True):
    """The terms that apply to a disk, and why."""

    terms: str
    """Id in the catalogue, `custom` for terms that are written out, `unknown` where nothing
    says what the disk is. A new type of a provider is as its API spells it."""
    provider: str
    reason: str
    """One sentence for the user: what matched, or that nothing did."""
    size_bytes: int
    """Size from which the limits are derived: the kernel's, unless the configuration sets one."""
    limits: Limits
    caching: Caching | None = None
    """None if it is not known."""
    shares_limits: bool = False
    """Other monitored disks of this type share the limits, which are those of their total size."""
    source: TermsSource = "none"
    origin: str = ""
    """Who says it, for people: `EC2 API`, or a path; empty for the configuration and none."""
    as_of_timestamp_s: float | None = None
    """When it was true, in seconds since 1970; None for the configuration and none."""
    expiry_timestamp_s: float | None = None
    """Until when it may be relied on, in seconds since 1970; None if that is not limited."""
    problem: str | None = None
    """Why no limits follow from the terms; None if they do, or there are no terms."""

    @property
    def title(self) -> str:
        """The terms, for people."""
        return "unknown type" if self.terms == UNKNOWN_TERMS else self.terms

    def said_by(self, now_s: float) -> str:
        """Return who said it and how long ago, at a time in seconds since 1970; '' if no file."""
        if self.as_of_timestamp_s is None:
            return ""
        age = format_duration(max(0.0, now_s - self.as_of_timestamp_s))
        is_stale = self.expiry_timestamp_s is not None and now_s > self.expiry_timestamp_s
        return f"{self.origin}, {age} ago{' (too old)' if is_stale else ''}"
