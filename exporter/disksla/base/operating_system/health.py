"""Health of the parts of the daemon, as metrics and the status page show it."""

from typing import NamedTuple


class SourceHealth(NamedTuple):
    """Health of one source of data, or of one part of the daemon."""

    source: str  # value of the labels `collector` and `source`
    errors: int  # errors since the start
    works: bool | None
    """Whether the last attempt succeeded; None for a part without a `collector_success` series."""
    problem: str | None = None
    """What fails now, for the status page; None if nothing fails or it must not be shown."""
