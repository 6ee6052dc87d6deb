"""Whether a part of the daemon works, as metrics and the status page show it."""

from typing import NamedTuple


class SourceHealth(NamedTuple):
    """Health of one source of data, or of one part of the daemon."""

    source: str
    """Value of the labels `collector` and `source`."""
    errors: int
    """Errors since the start."""
    works: bool | None
    """Whether it worked the last time; None for a part without a `collector_success` series."""
    problem: str | None = None
    """What is wrong now, for the status page; None if nothing is, or nothing may be shown."""
