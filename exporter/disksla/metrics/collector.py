"""Collectors for prometheus_client: metric tables and a snapshot to metric families.

Families are built for each scrape, so a removed disk is absent from the next scrape, and
concurrent scrapes do not affect each other. Samples are appended to the families directly, with
label dictionaries that all metrics of a disk share: `add_metric` of the client library builds a
dictionary for each sample, which doubles the cost of a page of several thousand samples.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric as Family
from prometheus_client.core import Sample

from disksla.config import Profile
from disksla.disks import disk_key
from disksla.histogram import Histogram
from disksla.metrics.disk_metrics import DISK_METRICS
from disksla.metrics.machine_metrics import MACHINE_METRICS
from disksla.metrics.metric import Metric, Subject
from disksla.metrics.probe_metrics import PROBE_METRICS
from disksla.metrics.profile import PROFILES, rows_of
from disksla.metrics.self_metrics import BUILD_METRICS, SAMPLER_METRICS, BuildInfo
from disksla.metrics.terms_metrics import TERMS_METRICS
from disksla.metrics.verification_metrics import VERIFICATION_METRICS
from disksla.pipeline import (
    DiskSnapshot,
    GroupSnapshot,
    SamplerSnapshot,
    Snapshot,
    TermsSnapshot,
)
from disksla.text import escape_bytes
from disksla.verification import VerificationReport

Labels = dict[str, str]
Reports = Callable[[], Mapping[str, VerificationReport]]
"""Return the last report of each disk, by `disk_key`."""


class Rows(NamedTuple):
    """The tables of metrics of what a snapshot has, and of reports, as a profile has them."""

    disk: tuple[Metric[DiskSnapshot], ...]
    report: tuple[Metric[VerificationReport], ...]
    machine: tuple[Metric[GroupSnapshot], ...]
    sampler: tuple[Metric[SamplerSnapshot], ...]
    terms: tuple[Metric[TermsSnapshot], ...]


@cache
def rows_by_profile() -> Mapping[Profile, Rows]:
    """Return the rows of each profile."""
    return {
        profile: Rows(
            rows_of((*DISK_METRICS, *PROBE_METRICS), profile),
            rows_of(VERIFICATION_METRICS, profile),
            rows_of(MACHINE_METRICS, profile),
            rows_of(SAMPLER_METRICS, profile),
            rows_of(TERMS_METRICS, profile),
        )
        for profile in PROFILES
    }


class DiskCollector:
    """Metric families of the disks, of their reports, of the machine and of the sampler."""

    def __init__(self, snapshot: Callable[[], Snapshot], reports: Reports = dict) -> None:
        """Call `snapshot` and `reports` at each scrape."""
        self._snapshot = snapshot
        self._reports = reports

    def collect(self) -> Iterator[Family]:
        """Yield every family that has a sample."""
        snapshot, reports = self._snapshot(), self._reports()
        disks = [({"device": escape_bytes(disk.disk.name)}, disk) for disk in snapshot.disks]
        verified = [
            (labels, report)
            for labels, disk in disks
            if (report := reports.get(disk_key(disk.disk) or "")) is not None
        ]
        rows = rows_by_profile()[snapshot.profile]
        yield from _families(rows.disk, disks)
        yield from _families(rows.report, verified)
        groups = [({"group": escape_bytes(group.shared.name)}, group) for group in snapshot.groups]
        yield from _families(rows.machine, groups)
        yield from _families(rows.sampler, [({}, snapshot.sampler)])
        yield from _families(rows.terms, [({}, snapshot.terms)])


class BuildCollector:
    """Metric families of the daemon itself."""

    def __init__(self, build: Callable[[], BuildInfo]) -> None:
        """Call `build` at each scrape."""
        self._build = build

    def collect(self) -> Iterator[Family]:
        """Yield all families."""
        yield from _families(BUILD_METRICS, [({}, self._build())])


def make_registry(
    snapshot: Callable[[], Snapshot], build: Callable[[], BuildInfo], reports: Reports = dict
) -> CollectorRegistry:
    """Return a registry of everything published: disks, sampler, and `process_*` of the daemon."""
    registry = CollectorRegistry(support_collectors_without_names=True)
    registry.register(DiskCollector(snapshot, reports))
    registry.register(BuildCollector(build))
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
        return _histogram_samples(metric, labels, value)
    if isinstance(value, Mapping):
        return (
            Sample(metric.name, labels | _named(metric.labels, label_values), number)
            for label_values, number in value.items()
        )
    return (Sample(metric.name, labels, value),)


def _named(names: tuple[str, ...], values: tuple[str, ...]) -> Labels:
    return {name: escape_bytes(value) for name, value in zip(names, values, strict=True)}


def _histogram_samples(
    metric: Metric[Subject], labels: Labels, histogram: Histogram
) -> Iterator[Sample]:
    bucket = f"{metric.name}_bucket"
    cumulative = itertools.accumulate(histogram.counts)
    for bound, count in zip(_printed_bounds(histogram.bounds), cumulative, strict=True):
        yield Sample(bucket, labels | {"le": bound}, count)
    if metric.has_sum:
        yield Sample(f"{metric.name}_count", labels, histogram.count)
        yield Sample(f"{metric.name}_sum", labels, histogram.total)


@lru_cache(maxsize=16)
def _printed_bounds(bounds: tuple[float, ...]) -> tuple[str, ...]:
    return (*(str(float(bound)) for bound in bounds), "+Inf")
