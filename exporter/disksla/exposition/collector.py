"""From the metric tables to metric families, made anew for each scrape.

A disk that went is gone from the next scrape, and scrapes at the same time cannot disturb one
another. Samples are put into the families directly, with label dictionaries shared between the
metrics of a disk: `add_metric` of the client library makes them anew each time, which doubles
the cost of a page of several thousand samples.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric as Family
from prometheus_client.core import Sample

from disksla.core.histogram import Histogram
from disksla.core.view import View
from disksla.exposition.metrics import (
    ABOUT_METRICS,
    DISK_METRICS,
    SAMPLER_METRICS,
    About,
    Metric,
    Subject,
)
from disksla.exposition.text import printable

Labels = dict[str, str]


class DiskCollector:
    """Families of the latest view, for a registry of the client library."""

    def __init__(self, view: Callable[[], View]) -> None:
        """Take what gives the present view at each scrape."""
        self._view = view

    def collect(self) -> Iterator[Family]:
        """Give every family that has a sample."""
        view = self._view()
        disks = [({"device": printable(disk.disk.name)}, disk) for disk in view.disks]
        yield from _families(DISK_METRICS, disks)
        yield from _families(SAMPLER_METRICS, [({}, view.sampler)])


class AboutCollector:
    """Families about this program."""

    def __init__(self, about: Callable[[], About]) -> None:
        """Take what gives the present facts at each scrape."""
        self._about = about

    def collect(self) -> Iterator[Family]:
        """Give every family."""
        yield from _families(ABOUT_METRICS, [({}, self._about())])


def make_registry(view: Callable[[], View], about: Callable[[], About]) -> CollectorRegistry:
    """Give the registry of everything we publish: disks, sampler, and `process_*` of ourselves."""
    registry = CollectorRegistry(support_collectors_without_names=True)
    registry.register(DiskCollector(view))
    registry.register(AboutCollector(about))
    ProcessCollector(registry=registry)
    return registry


def _families(
    metrics: Iterable[Metric[Subject]], subjects: Sequence[tuple[Labels, Subject]]
) -> Iterator[Family]:
    for metric in metrics:
        family = Family(metric.name.removesuffix("_total"), metric.help, metric.kind)
        for labels, subject in subjects:
            family.samples.extend(_samples(metric, labels, subject))
        if family.samples:
            yield family


def _samples(metric: Metric[Subject], labels: Labels, subject: Subject) -> Iterable[Sample]:
    value = metric.value(subject)
    if value is None:
        return ()
    if isinstance(value, Histogram):
        return _histogram_samples(metric.name, labels, value)
    if isinstance(value, Mapping):
        return (
            Sample(metric.name, labels | _named(metric.labels, label_values), number)
            for label_values, number in value.items()
        )
    return (Sample(metric.name, labels, value),)


def _named(names: tuple[str, ...], values: tuple[str, ...]) -> Labels:
    return {name: printable(value) for name, value in zip(names, values, strict=True)}


def _histogram_samples(name: str, labels: Labels, histogram: Histogram) -> Iterator[Sample]:
    bucket = f"{name}_bucket"
    cumulative = itertools.accumulate(histogram.counts)
    for bound, count in zip(_printed_bounds(histogram.bounds), cumulative, strict=True):
        yield Sample(bucket, labels | {"le": bound}, count)
    yield Sample(f"{name}_count", labels, histogram.count)
    yield Sample(f"{name}_sum", labels, histogram.total)


@lru_cache(maxsize=16)
def _printed_bounds(bounds: tuple[float, ...]) -> tuple[str, ...]:
    return (*(str(float(bound)) for bound in bounds), "+Inf")
