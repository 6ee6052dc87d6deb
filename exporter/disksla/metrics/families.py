"""Metric families: the rows of the metric tables with the values of a snapshot, as samples.

Families are made for each scrape, so a removed disk is absent from the next scrape, and
concurrent scrapes do not affect each other. Labels are printed once for each disk: a page of 64
disks has several thousand samples, and their labels would be most of its cost.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from disksla.config import Profile
from disksla.disks import disk_key
from disksla.histogram import Histogram
from disksla.metrics.disk_metrics import DISK_METRICS
from disksla.metrics.machine_metrics import MACHINE_METRICS
from disksla.metrics.metric import Kind, Metric, Subject
from disksla.metrics.probe_metrics import PROBE_METRICS
from disksla.metrics.profile import PROFILES, rows_of
from disksla.metrics.provider_metrics import PROVIDER_METRICS
from disksla.metrics.self_metrics import (
    BUILD_METRICS,
    PROCESS_METRICS,
    SAMPLER_METRICS,
    BuildInfo,
    ProcessUsage,
)
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

Reports = Mapping[str, VerificationReport]
"""The last report of each disk, by `disk_key`."""
_NONE: Reports = MappingProxyType({})


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
            rows_of((*DISK_METRICS, *PROVIDER_METRICS, *PROBE_METRICS), profile),
            rows_of(VERIFICATION_METRICS, profile),
            rows_of(MACHINE_METRICS, profile),
            rows_of(SAMPLER_METRICS, profile),
            rows_of(TERMS_METRICS, profile),
        )
        for profile in PROFILES
    }


class Sample(NamedTuple):
    """One line of a page."""

    name: str
    """Name of the series: with `_bucket`, `_count` or `_sum` for a histogram."""
    labels: str
    """As printed, sorted by name, without braces; empty for none."""
    value: float


class Family(NamedTuple):
    """All samples of a metric."""

    name: str
    """Name of the metric: with `_total` on counters."""
    kind: Kind
    help: str
    samples: Sequence[Sample]


def page_families(
    snapshot: Snapshot, build: BuildInfo, process: ProcessUsage | None, reports: Reports = _NONE
) -> Iterator[Family]:
    """Yield all families that the daemon publishes."""
    yield from snapshot_families(snapshot, reports)
    yield from _families(BUILD_METRICS, [("", build)])
    if process is not None:
        yield from _families(PROCESS_METRICS, [("", process)])


def snapshot_families(snapshot: Snapshot, reports: Reports = _NONE) -> Iterator[Family]:
    """Yield the families of the disks, their reports, the machine and the sampler."""
    disks = [(_label("device", disk.disk.name), disk) for disk in snapshot.disks]
    verified = [
        (label, report)
        for label, disk in disks
        if (report := reports.get(disk_key(disk.disk) or "")) is not None
    ]
    rows = rows_by_profile()[snapshot.profile]
    yield from _families(rows.disk, disks)
    yield from _families(rows.report, verified)
    groups = [(_label("group", group.shared.name), group) for group in snapshot.groups]
    yield from _families(rows.machine, groups)
    yield from _families(rows.sampler, [("", snapshot.sampler)])
    yield from _families(rows.terms, [("", snapshot.terms)])


def _families(
    metrics: Iterable[Metric[Subject]], subjects: Sequence[tuple[str, Subject]]
) -> Iterator[Family]:
    """Yield every family that has a sample; a subject comes with its label."""
    for metric in metrics:
        samples: list[Sample] = []
        for label, subject in subjects:
            samples.extend(_samples(metric, label, subject))
        if samples:
            yield Family(metric.name, metric.kind, metric.help, samples)


def _samples(metric: Metric[Subject], label: str, subject: Subject) -> Iterable[Sample]:
    value = metric.value(subject)
    if value is None:
        return ()
    if isinstance(value, Histogram):
        return _histogram_samples(metric, label, value)
    if isinstance(value, Mapping):
        return [
            Sample(metric.name, printed_labels(label, metric.labels, label_values), number)
            for label_values, number in value.items()
        ]
    return (Sample(metric.name, label, value),)


def _histogram_samples(
    metric: Metric[Subject], label: str, histogram: Histogram
) -> Iterator[Sample]:
    bucket, before = f"{metric.name}_bucket", f"{label}," if label else ""
    cumulative = itertools.accumulate(histogram.counts)
    for bound, count in zip(_bound_labels(histogram.bounds), cumulative, strict=True):
        yield Sample(bucket, before + bound, count)
    if metric.has_sum:
        yield Sample(f"{metric.name}_count", label, histogram.count)
        yield Sample(f"{metric.name}_sum", label, histogram.total)


@lru_cache(maxsize=16)
def _bound_labels(bounds: tuple[float, ...]) -> tuple[str, ...]:
    return tuple(
        _label("le", bound) for bound in (*(str(float(bound)) for bound in bounds), "+Inf")
    )


def printed_labels(label: str, names: tuple[str, ...], values: tuple[str, ...]) -> str:
    """Return the label of a subject, if it has one, and others, sorted by name."""
    own = map(_label, names, values)
    return ",".join(sorted((label, *own) if label else own))


def _label(name: str, value: str) -> str:
    """Return a label as both formats print it."""
    escaped = escape_bytes(value).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return f'{name}="{escaped}"'
