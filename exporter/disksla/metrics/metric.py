"""One row of a metric table: name, kind, help, labels and value.

The tables are `disk_metrics`, `probe_metrics`, `verification_metrics` and `self_metrics`. The
collector and docs/metrics.md are made from them, so a metric is added as one row and nowhere else.
Names and units follow https://prometheus.io/docs/practices/naming/.
"""

from collections.abc import Callable, Mapping
from typing import Generic, Literal, TypeVar

import msgspec

from disksla.histogram import Histogram

Kind = Literal["counter", "gauge", "histogram"]
Labelled = Mapping[tuple[str, ...], float]
"""Values by the values of a row's `labels`, in their order."""
Value = float | Histogram | Labelled | None
Subject = TypeVar("Subject")


class Metric(msgspec.Struct, Generic[Subject], frozen=True):
    """One row: what is published of every `Subject`."""

    name: str
    """As it is queried, with `_total` on counters."""
    kind: Kind
    help: str
    """One or two sentences for people: source, unit, window and denominator."""
    value: Callable[[Subject], Value]
    """None where nothing is known, which gives no sample."""
    labels: tuple[str, ...] = ()
    """Labels beside `device`; a row with some gives values by label."""


def keyed(values: Mapping[str, float]) -> Labelled:
    """Return values by the value of a single label."""
    return {(key,): value for key, value in values.items()}
