"""One row of a metric table: name, kind, help, labels and value.

The tables are in the modules `*_metrics`. The collector and docs/metrics.md are generated from
them: to add a metric, add a row.
Names and units follow https://prometheus.io/docs/practices/naming/.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from disksla.base.histogram import Histogram
from disksla.promise.configuration import Profile
from disksla.verdict.credits import CreditLevel

Kind = Literal["counter", "gauge", "histogram"]
Labelled = Mapping[tuple[str, ...], float]
"""Label values, in the order of `Metric.labels`, -> sample value."""
Value = float | Histogram | Labelled | None
Subject = TypeVar("Subject")
Name = TypeVar("Name", bound=str)


SHORT_LATENCY_BOUNDS_S = (0.0005, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""The bounds of latencies in the profile `default`: 0.5, 1, 3, 10 and 20 ms are promised by
providers, and requests of a throttled disk take 20 to 500 ms. A quantile is off by at most the
factor between two bounds: 2 to 3.3."""


class Buckets(msgspec.Struct, frozen=True):
    """What is published of a histogram besides the bucket +Inf."""

    bounds: tuple[float, ...] = ()
    has_sum: bool = True
    """Whether its sum is published, and with it, as OpenMetrics requires, its count. Without them,
    collectors of OpenTelemetry drop the histogram."""


class Metric(msgspec.Struct, Generic[Subject], frozen=True):
    """One row: a metric of every `Subject` (a disk, a report, the sampler, the daemon)."""

    name: str
    """Name as in queries: with `_total` on counters, and only there."""
    help: str
    """What is measured, its unit and source; then what else docs/metrics.md says, such as when it
    is absent. The first sentence is the HELP of the page."""
    value: Callable[[Subject], Value]
    """Value of a subject; None for no sample."""
    labels: tuple[str, ...] = ()
    """Labels besides `device`; a row with labels returns `Labelled`."""
    is_histogram: bool = False
    profile: Profile = "default"
    """The smallest profile that publishes it."""
    buckets: Mapping[Profile, Buckets] = {}
    """What profiles publish of a histogram; without an entry, all of it."""
    only_in_full: frozenset[str] = frozenset()
    """Label values that only the profile `full` publishes."""
    is_rare: bool = False
    """Whether zeros, which most disks have, are published in the profile `full` only."""
    has_sum: bool = True
    """Whether the sum and the count of a histogram are published."""

    @property
    def first_sentence(self) -> str:
        """What the page says of it."""
        return f"{self.help.partition('. ')[0].removesuffix('.')}."

    @property
    def kind(self) -> Kind:
        """Its type in the formats of Prometheus."""
        otherwise: Kind = "counter" if self.name.endswith("_total") else "gauge"
        return "histogram" if self.is_histogram else otherwise


def lean(
    name: str,
    text: str,
    value: Callable[[Subject], Value],
    labels: tuple[str, ...] = (),
    **more: Any,
) -> Metric[Subject]:
    """Return a row that all profiles publish."""
    return Metric(name, text, value, labels, profile="lean", **more)


def full(
    name: str,
    text: str,
    value: Callable[[Subject], Value],
    labels: tuple[str, ...] = (),
    **more: Any,
) -> Metric[Subject]:
    """Return a row that the profile `full` alone publishes."""
    return Metric(name, text, value, labels, profile="full", **more)


class WithCredits(Protocol):
    """A disk or a group, with the levels of its burst credits."""

    @property
    def credits(self) -> tuple[CreditLevel, ...]:
        """Levels by resource; empty without a burst."""


Credited = TypeVar("Credited", bound=WithCredits)


_CREDITS: Mapping[str, tuple[str, Callable[[CreditLevel], float]]] = {
    "left": ("burst_credits", lambda level: level.estimate_credits),
    "least": ("burst_credits_lower_bound", lambda level: level.lower_credits),
    "most": ("burst_credits_upper_bound", lambda level: level.upper_credits),
    "capacity": ("burst_credits_capacity", lambda level: level.capacity_credits),
    "exhaustion": ("burst_exhaustion_seconds", lambda level: level.exhaustion_s),
}


def credits_rows(prefix: str, **texts: str) -> Iterator[Metric[Credited]]:
    """Yield the rows of the burst credits, by resource, with these texts."""
    for key, (name, value) in _CREDITS.items():

        def values(
            subject: Credited, value: Callable[[CreditLevel], float] = value
        ) -> Labelled | None:
            return {(level.resource,): value(level) for level in subject.credits} or None

        yield lean(f"{prefix}{name}", texts[key], values, ("resource",))


def keyed(values: Mapping[Name, float | None]) -> Labelled:
    """Return the values of a metric that has a single label, without those that are not known."""
    return {(key,): value for key, value in values.items() if value is not None}
