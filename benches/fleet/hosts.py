"""Metrics pages of simulated hosts: rates of known disks, by the hours of a day.

A host is one of those of tests/grafana/sample_history.py, of which each disk is in another state.
During its hours, all of its disks are in their states; at other times they have a fifth of the
load, and nothing is wrong. Counters follow from the time, so no day before is simulated.
"""

import math
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import NamedTuple

from disksla.serve.metrics.collector import Reports, SnapshotCollector
from disksla.state.pipeline.slow import SlowTotals
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.totals import VerdictTotals
from disksla.verdict.throttling import VERDICTS
from grafana.sample_history import FLEET, HOUR_S, REPORTS
from support.snapshots import ABOUT, changed

DISKS_OF_TWO = sum(len(snapshot.disks) for snapshot in FLEET.values())
"""Disks of two hosts that follow each other."""
_DAY_S = 86_400
_AGE_DAYS = 2
"""Of the hosts when the fleet starts."""
_BUSY_HOURS = (3, 12)
_QUIET_SHARE = 0.2
_MOVED = (("_timestamp_seconds", 60), ("_start_time_seconds", _DAY_S))
"""Gauges that are times: these are a multiple of so many seconds ago."""
_QUIET = VerdictTotals(
    seconds=tuple(
        HOUR_S * {"idle": 0.9, "unproven": 0.1}.get(verdict, 0.0) for verdict in VERDICTS
    )
)


class Sample(NamedTuple):
    """A series of a host, and its rates: for a gauge values, for a counter increases an hour."""

    family: str
    kind: str
    text: str
    """Name and labels."""
    busy: float
    quiet: float

    @property
    def is_counter(self) -> bool:
        """Whether it never decreases."""
        return self.kind in {"counter", "histogram"}


def host_name(number: int) -> str:
    """Return the name of a host."""
    return f"host-{number:04d}"


def page_at(seed: int, number: int, start_s: float, now_s: float) -> str:
    """Return the page of a host, in OpenMetrics format, of a fleet that started at a Unix time."""
    lines, family = [], ""
    for sample, value in _values(seed, number, start_s, now_s):
        if sample.family != family:
            family = sample.family
            lines.append(f"# TYPE {family} {sample.kind}\n")
        lines.append(f"{sample.text} {value}\n")
    return "".join((*lines, "# EOF\n"))


def samples_at(seed: int, number: int, start_s: float, now_s: float) -> list[str]:
    """Return the samples of a page with the labels and the time of a scrape."""
    labels = f'job="disksla",instance="{host_name(number)}:10056"'
    values = _values(seed, number, start_s, now_s)
    return [f"up{{{labels}}} 1 {now_s:.0f}\n"] + [
        f"{labelled(sample.text, labels)} {value} {now_s:.0f}\n" for sample, value in values
    ]


def labelled(series: str, labels: str) -> str:
    """Return a series of a page with the labels of its target."""
    name, brace, rest = series.partition("{")
    return f"{name}{{{labels},{rest}" if brace else f"{name}{{{labels}}}"


def _values(
    seed: int, number: int, start_s: float, now_s: float
) -> Iterator[tuple[Sample, float | str]]:
    """Yield the samples of a host with their values."""
    chance = Random(f"{seed}/{number}")
    hours = chance.randint(*_BUSY_HOURS)
    begin_s, busy_day_s = HOUR_S * chance.randrange(24 - hours), HOUR_S * hours
    age_s = now_s - (start_s // _DAY_S - _AGE_DAYS) * _DAY_S
    days, of_day_s = divmod(age_s, _DAY_S)
    busy_s = days * busy_day_s + min(max(of_day_s - begin_s, 0.0), busy_day_s)
    is_busy = 0 <= of_day_s - begin_s < busy_day_s
    for sample in _samples(list(FLEET)[number % len(FLEET)]):
        named = sample._replace(text=sample.text.replace("serial of", host_name(number)))
        value = sample.busy if is_busy else sample.quiet
        if sample.is_counter:
            value = (busy_s * sample.busy + (age_s - busy_s) * sample.quiet) / HOUR_S
        if sample.kind == "histogram" and "_sum" not in sample.text:
            value = float(math.floor(value))
        for ending, every_s in _MOVED:
            if sample.text.partition("{")[0].endswith(ending):
                value = now_s // every_s * every_s
        yield named, "+Inf" if math.isinf(value) else value


@cache
def _samples(instance: str) -> tuple[Sample, ...]:
    busy, reports = FLEET[instance], REPORTS.get(instance, {})
    quiet = changed(
        busy,
        disks=tuple(
            disk
            if disk.verdict_totals == VerdictTotals()
            else changed(disk, verdict_totals=_QUIET, slow=SlowTotals())
            for disk in busy.disks
        ),
        groups=tuple(
            changed(group, throttled_s=dict.fromkeys(group.throttled_s, 0.0))
            for group in busy.groups
        ),
    )
    at_rest = {sample.text: sample.busy for sample in _collected(quiet, reports)}
    return tuple(
        sample._replace(quiet=_at_rest(sample, at_rest)) for sample in _collected(busy, reports)
    )


def _at_rest(sample: Sample, at_rest: dict[str, float]) -> float:
    """Return the value without the load: a share, but of verdicts all seconds."""
    if not sample.is_counter:
        return at_rest.get(sample.text, sample.busy)
    is_load = 'device="' in sample.text and "_verdict_seconds" not in sample.family
    return at_rest.get(sample.text, 0.0) * (_QUIET_SHARE if is_load else 1.0)


def _collected(snapshot: Snapshot, reports: Reports) -> Iterator[Sample]:
    for family in SnapshotCollector(lambda: snapshot, lambda: ABOUT, lambda: reports).collect():
        for each in family.samples:
            labels = ",".join(f'{name}="{text}"' for name, text in each.labels.items())
            text = f"{each.name}{{{labels}}}" if labels else each.name
            yield Sample(family.name, family.type, text, float(each.value), 0.0)
