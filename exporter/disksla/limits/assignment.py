"""Assignment: the terms and limits of one disk, with the reason."""

from typing import Annotated, Literal

import msgspec

from disksla.limits.limits import Limits
from disksla.schema import choice

Caching = Annotated[
    Literal["none", "read-only", "read-write"], choice("none", "read-only", "read-write")
]
"""What the host caches of a disk."""


class Assignment(msgspec.Struct, frozen=True):
    """The terms that apply to a disk, and why."""

    terms: str
    """Id in the catalogue, or `configuration` for terms written out there."""
    provider: str
    reason: str
    """One sentence for the user: what matched, or why generic terms apply."""
    size_bytes: int
    """Size from which the limits are derived: the kernel's, unless the configuration sets one."""
    limits: Limits
    caching: Caching | None = None
    """None if it is not known."""
    shares_limits: bool = False
    """Other monitored disks of this type share the limits, which are those of their total size."""
