"""One row of a metric table: name, kind, help, labels and value.

The tables are in the modules `*_metrics`. The collector and docs/metrics.md are generated from
them: to add a metric, add a row.
Names and units follow https://prometheus.io/docs/practices/naming/.
"""

from collections.abc import Callable, Mapping
from typing import Generic, Literal, TypeVar

import msgspec

from disksla.histogram import Histogram

Kind = Literal["counter", "gauge", "histogram"]
Labelled = Mapping[tuple[str, ...], float]
"""Label values, in the order of `Metric.labels`, -> sample value."""
Value = float | Histogram | Labelled | None
Subject = TypeVar("Subject")


class Metric(msgspec.Struct, Generic[Subject], frozen=True):
    """One row: a metric of every `Subject` (a disk, a report, the sampler, the daemon)."""

    name: str
    """Name as in queries: with `_total` on counters."""
    kind: Kind
    help: str
    """One or two sentences: what is measured, its unit and source, and when it is absent."""
    value: Callable[[Subject], Value]
    """Value of a subject; None for no sample."""
    labels: tuple[str, ...] = ()
    """Labels besides `device`; a row with labels returns `Labelled`."""


def keyed(values: Mapping[str, float]) -> Labelled:
    """Return values of a metric that has a single label."""
    return {(key,): value for key, value in values.items()}
