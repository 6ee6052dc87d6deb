"""Collector of prometheus-client: the rows of the metric tables with the values of a snapshot.

Families are made for each scrape, so a removed disk is absent from the next scrape, and
concurrent scrapes do not affect each other.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, get_args

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as Family
from prometheus_client.core import Sample
from prometheus_client.registry import Collector

from disksla.base.histogram import Histogram
from disksla.base.text import label_value
from disksla.kernel.disks import disk_key
from disksla.measure.verification import VerificationReport
from disksla.promise.configuration import Profile
from disksla.serve.metrics.disk_metrics import DISK_METRICS
from disksla.serve.metrics.machine_metrics import (
    CONSUMER_METRICS,
    MACHINE_METRICS,
    PROVIDER_METRICS,
)
from disksla.serve.metrics.metric import Buckets, Metric, Subject, Value
from disksla.serve.metrics.probe_metrics import PROBE_METRICS, VERIFICATION_METRICS
from disksla.serve.metrics.self_metrics import (
    BUILD_METRICS,
    SAMPLER_METRICS,
    TERMS_METRICS,
    BuildInfo,
)
from disksla.state.pipeline import (
    DiskSnapshot,
    GroupSnapshot,
    SamplerStats,
    Snapshot,
    TermsSnapshot,
)

PROFILES: tuple[Profile, ...] = get_args(Profile)
"""From the fewest series to the most."""


def rows_of(metrics: Iterable[Metric[Subject]], profile: Profile) -> tuple[Metric[Subject], ...]:
    """Return the rows that a profile publishes; their values have no more than it publishes."""
    rank = PROFILES.index(profile)
    published = [each for each in metrics if PROFILES.index(each.profile) <= rank]
    if profile == "full":
        return tuple(published)
    return tuple(_reduced(each, each.buckets.get(profile)) for each in published)


def _reduced(metric: Metric[Subject], buckets: Buckets | None) -> Metric[Subject]:
    """Return a row without what only the profile `full` publishes."""
    if buckets is None and not (metric.is_rare or metric.only_in_full):
        return metric

    def reduced(subject: Subject) -> Value:
        value = metric.value(subject)
        if isinstance(value, Histogram):
            return value if buckets is None else value.with_bounds(buckets.bounds)
        if isinstance(value, Mapping):
            return {
                labels: number
                for labels, number in value.items()
                if (number or not metric.is_rare) and metric.only_in_full.isdisjoint(labels)
            }
        return value or None if metric.is_rare else value

    has_sum = buckets is None or buckets.has_sum
    return msgspec.structs.replace(metric, value=reduced, has_sum=has_sum)


Labels = dict[str, str]
Reports = Mapping[str, VerificationReport]
"""The last report of each disk, by `disk_key`."""


class Rows(NamedTuple):
    """The tables of metrics of what a snapshot has, and of reports, as a profile has them."""

    disk: tuple[Metric[DiskSnapshot], ...]
    report: tuple[Metric[VerificationReport], ...]
    machine: tuple[Metric[GroupSnapshot], ...]
    sampler: tuple[Metric[SamplerStats], ...]
    terms: tuple[Metric[TermsSnapshot], ...]


@cache
def rows_by_profile() -> Mapping[Profile, Rows]:
    """Return the rows of each profile."""
    return {
        profile: Rows(
            rows_of(
                (*DISK_METRICS, *PROVIDER_METRICS, *CONSUMER_METRICS, *PROBE_METRICS), profile
            ),
            rows_of(VERIFICATION_METRICS, profile),
            rows_of(MACHINE_METRICS, profile),
            rows_of(SAMPLER_METRICS, profile),
            rows_of(TERMS_METRICS, profile),
        )
        for profile in PROFILES
    }


class SnapshotCollector(Collector):
    """Collects the families of the disks, their reports, the machine and the sampler."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        build_info: Callable[[], BuildInfo] | None = None,
        reports: Callable[[], Reports] = dict,
    ) -> None:
        """Call these functions for each page. Without `build_info`, it has no versions."""
        self._snapshot = snapshot
        self._build_info = build_info
        self._reports = reports

    def collect(self) -> Iterator[Family]:
        """Yield every family that has a sample."""
        snapshot, reports = self._snapshot(), self._reports()
        rows = rows_by_profile()[snapshot.profile]
        disks = [({"device": label_value(disk.disk.name)}, disk) for disk in snapshot.disks]
        verified = [
            (labels, report)
            for labels, disk in disks
            if (report := reports.get(disk_key(disk.disk) or "")) is not None
        ]
        groups = [({"group": label_value(each.shared.name)}, each) for each in snapshot.groups]
        yield from families_of(rows.disk, disks)
        yield from families_of(rows.report, verified)
        yield from families_of(rows.machine, groups)
        yield from families_of(rows.sampler, [({}, snapshot.sampler)])
        yield from families_of(rows.terms, [({}, snapshot.terms)])
        if self._build_info is not None:
            yield from families_of(BUILD_METRICS, [({}, self._build_info())])


def make_registry(collector: SnapshotCollector) -> CollectorRegistry:
    """Return a registry of this collector, of which names can be selected."""
    registry = CollectorRegistry(support_collectors_without_names=True)
    registry.register(collector)
    return registry


def families_of(
    metrics: Iterable[Metric[Subject]], subjects: Sequence[tuple[Labels, Subject]]
) -> Iterator[Family]:
    """Yield every family that has a sample; a subject comes with its label."""
    for metric in metrics:
        family = Family(metric.name.removesuffix("_total"), metric.first_sentence, metric.kind)
        for labels, subject in subjects:
            family.samples.extend(_samples(metric, labels, subject))
        if family.samples:
            yield family


def _samples(metric: Metric[Subject], labels: Labels, subject: Subject) -> Iterable[Sample]:
    value = metric.value(subject)
    if value is None:
        return ()
    if isinstance(value, Histogram):
        return _histogram_samples(metric, labels, value)
    if isinstance(value, Mapping):
        # Values that differ behind the cut are one series: two would be an invalid page.
        series = {tuple(map(label_value, values)): number for values, number in value.items()}
        return [
            Sample(metric.name, labels | dict(zip(metric.labels, values, strict=True)), number)
            for values, number in series.items()
        ]
    return (Sample(metric.name, labels, value),)


def _histogram_samples(
    metric: Metric[Subject], labels: Labels, histogram: Histogram
) -> Iterator[Sample]:
    bounds = (*(str(float(bound)) for bound in histogram.bounds), "+Inf")
    cumulative = itertools.accumulate(histogram.counts)
    for bound, count in zip(bounds, cumulative, strict=True):
        yield Sample(f"{metric.name}_bucket", labels | {"le": bound}, count)
    if metric.has_sum:
        yield Sample(f"{metric.name}_count", labels, histogram.count)
        yield Sample(f"{metric.name}_sum", labels, histogram.total)
