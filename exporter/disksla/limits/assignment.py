"""Assignment: the terms and limits of one disk, with the reason."""

import msgspec

from disksla.limits.limits import Limits


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
