"""What is known of every disk at one moment, ready to be shown.

A view is made from the state when somebody asks (a scrape, a page, a command), with all that
was put off while disks were idle brought up to date.
"""

import msgspec

from disksla.limits.limits import Limits


class Assignment(msgspec.Struct, frozen=True):
    """Which terms a disk is held against, and why these."""

    terms: str
    """Id in the catalogue, or `configuration` for terms written out there."""
    provider: str
    reason: str
    """One sentence for people: which rule matched on what, or why a generic type was taken."""
    size_bytes: int
    """Size the limits were derived from: the kernel's, unless the configuration overrides it."""
    limits: Limits
