"""Profiles: the rows of metric tables that `lean`, `default` and `full` publish."""

from collections.abc import Callable, Iterable, Mapping
from typing import get_args

import msgspec

from disksla.base.histogram import Histogram
from disksla.promise.configuration import Profile
from disksla.serve.metrics.metric import Buckets, Labelled, Metric, Subject, Value

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
    value = metric.value
    if buckets is not None:
        value, has_sum = _coarser(value, buckets.bounds), buckets.has_sum
        return msgspec.structs.replace(metric, value=value, has_sum=has_sum)
    if metric.is_rare or metric.only_in_full:
        return msgspec.structs.replace(metric, value=_fewer(metric))
    return metric


def _coarser(
    value: Callable[[Subject], Value], bounds: tuple[float, ...]
) -> Callable[[Subject], Value]:
    def coarser(subject: Subject) -> Value:
        histogram = value(subject)
        return histogram.with_bounds(bounds) if isinstance(histogram, Histogram) else None

    return coarser


def _fewer(metric: Metric[Subject]) -> Callable[[Subject], Value]:
    def kept(values: Labelled) -> Labelled:
        return {
            labels: number
            for labels, number in values.items()
            if (number or not metric.is_rare) and metric.only_in_full.isdisjoint(labels)
        }

    def fewer(subject: Subject) -> Value:
        value = metric.value(subject)
        if metric.labels:
            return kept(value) if isinstance(value, Mapping) else None
        return value or None if metric.is_rare else value

    return fewer
