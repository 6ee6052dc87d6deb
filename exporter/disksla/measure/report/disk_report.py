"""The report of one disk, and that of all selected disks, from what a server has of them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from disksla.clouds.http_client import Exchanges
from disksla.measure.prometheus import (
    FACTS,
    MOST_POINTS,
    CounterName,
    DiskName,
    Facts,
    Period,
    Series,
    Server,
    Step,
    read_increases,
    read_steps,
    selector,
    within,
)
from disksla.measure.report.document import (
    CataloguePage,
    DiskReport,
    Incident,
    Part,
    Report,
    Slice,
    Verification,
)
from disksla.measure.report.evidence import (
    EVIDENCE,
    OF_DAEMON,
    VERIFICATION,
    ProbeStep,
    allowance,
    consumers_of,
    credits_of,
    probe_steps,
    probes_around,
    sampling_gaps,
    terms_refreshed,
    uptime,
    verifications,
)
from disksla.measure.report.step_totals import (
    gaps,
    given_of,
    spans,
    throttled_spans,
    total_of,
    totals_of,
    worst_steps,
)
from disksla.promise.catalogue import Catalog

FORMAT = 1


class DiskSeries(NamedTuple):
    """What a server has of one disk in a period, and some minutes before."""

    name: DiskName
    mount_points: tuple[str, ...]
    steps: Sequence[Step]
    """In order of time."""
    evidence: Sequence[Series]
    verification: Sequence[Series]
    daemon: Sequence[Series]


class ReportCriteria(NamedTuple):
    """What all disks are reported by."""

    period: Period
    catalog: Catalog
    objective_share: float | None = None
    """None for the share of the time for which the provider states the rates, or all of it."""


def disk_report(history: DiskSeries, basis: ReportCriteria) -> DiskReport:
    """Return the report of a disk."""
    period = basis.period
    steps = [
        step
        for step in within(history.steps, period.start_timestamp_s, period.end_timestamp_s)
        if step.facts.serial == history.name.serial
    ]
    totals = totals_of(steps, period.seconds)
    ratio = totals.compliance_ratio
    parts = tuple(
        _part(facts, list(group), basis.catalog, history.daemon)
        for facts, group in groupby(steps, key=lambda step: step.facts)
    )
    last = parts[-1] if parts else None
    share = None if last is None else last.promised_time_share
    objective = basis.objective_share or share or 1.0
    provider = "" if last is None else last.facts.provider
    probes, verified = probe_steps(history.evidence), verifications(history.verification)
    bad = spans(steps, lambda step: step.noncompliant_s > 0)
    incidents = tuple(_incident(span, parts, probes, verified) for span in bad)
    return DiskReport(
        labels=dict(history.name.labels),
        serial=history.name.serial,
        mount_points=history.mount_points,
        objective_share=objective,
        is_compliant=None if ratio is None else ratio >= objective,
        totals=totals,
        parts=parts,
        incidents=incidents,
        throttled_spans=throttled_spans(steps),
        gaps=gaps(steps, period.start_timestamp_s, period.end_timestamp_s),
        sampling_gaps=sampling_gaps(history.daemon),
        credits=credits_of(history.evidence),
        verifications=verified,
        allowance=allowance(share, totals.noncompliant_s, period.seconds),
        uptime=uptime(provider, totals.verdict_seconds["stalled"], period.seconds),
        slices=_slices(steps, incidents, period),
        consumers=consumers_of(history.evidence),
    )


def report_of(
    disks: Iterable[DiskReport], period: Period, selection: Sequence[str], version: str
) -> Report:
    """Return the report of all disks: those that do not comply first, the worst of them first."""

    def place(disk: DiskReport) -> tuple[object, ...]:
        ratio = disk.totals.compliance_ratio
        outcome = (False, True, None).index(disk.is_compliant)
        return outcome, 1.0 if ratio is None else ratio, sorted(disk.labels.items()), disk.serial

    in_order = tuple(sorted(disks, key=place))
    tested = [disk.is_compliant for disk in in_order if disk.is_compliant is not None]
    return Report(
        disksla_report=FORMAT,
        disksla_version=version,
        start_timestamp_s=period.start_timestamp_s,
        end_timestamp_s=period.end_timestamp_s,
        utc_offset_s=period.utc_offset_s,
        selection=tuple(selection),
        is_compliant=all(tested) if tested else None,
        totals=total_of([disk.totals for disk in in_order]),
        disks=in_order,
    )


def _part(facts: Facts, steps: Sequence[Step], catalog: Catalog, daemon: Sequence[Series]) -> Part:
    start_s, end_s = steps[0].start_s, steps[-1].end_s
    part = Part(
        start_s,
        end_s,
        facts,
        totals_of(steps, end_s - start_s),
        terms_refreshed(daemon, facts.terms_source, end_s),
    )
    terms = catalog.find(facts.terms)
    if terms is None:
        return part
    return replace(
        part,
        title=terms.title,
        sources=tuple(CataloguePage(page.url, page.date.isoformat()) for page in terms.sources),
        confidence=terms.confidence,
        iops_conditions=terms.iops_conditions,
        bandwidth_conditions=terms.bandwidth_conditions,
        promised_time_share=terms.promised_time_share,
    )


def _incident(
    span: Sequence[Step],
    parts: Sequence[Part],
    probes: Mapping[str, Sequence[ProbeStep]],
    verified: Iterable[Verification],
) -> Incident:
    start_s, end_s = span[0].start_s, span[-1].end_s
    totals = totals_of(span, end_s - start_s)
    facts = span[-1].facts
    return Incident(
        start_timestamp_s=start_s,
        end_timestamp_s=end_s,
        below_s=totals.verdict_seconds["below"],
        stalled_s=totals.verdict_seconds["stalled"],
        proven_s=totals.proven_s,
        throttled_s=totals.verdict_seconds["throttled"],
        given=given_of(worst_steps(span)),
        promised=facts.promised,
        promised_latency_s=facts.promised_latency_s,
        part=next(number for number, part in enumerate(parts, 1) if part.end_timestamp_s >= end_s),
        probes=probes_around(probes, start_s, end_s),
        verification_timestamp_s=max(
            (each.timestamp_s for each in verified if each.timestamp_s <= start_s), default=None
        ),
    )


def _slices(
    steps: Sequence[Step], incidents: Sequence[Incident], period: Period
) -> tuple[Slice, ...]:
    seconds = period.slices()
    by_start: dict[str, list[Step]] = {start: [] for start in seconds}
    for step in steps:
        by_start[period.slice_of(step.end_s)].append(step)
    ended = [period.slice_of(incident.end_timestamp_s) for incident in incidents]
    return tuple(
        Slice(start, ended.count(start), totals_of(inside, seconds[start]))
        for start, inside in by_start.items()
    )


_BEFORE_S = 300
"""The last scrape before the period is searched for in this time."""
_STEP_S, _HOUR_S = 300, 3600


def read_history(
    server: Server, name: DiskName, mount_points: tuple[str, ...], period: Period
) -> Exchanges[DiskSeries]:
    """Return what the server has of a disk. Raise ExchangeError."""
    labels = dict(name.labels)
    of_host = {key: value for key, value in labels.items() if key != "device"}
    start_s, end_s = period.start_timestamp_s, period.end_timestamp_s
    steps = yield from read_increases(
        server, (*CounterName, *FACTS), labels, start_s - _BEFORE_S, end_s
    )
    evidence = yield from _read_steps(server, EVIDENCE, labels, period, _STEP_S)
    verification = yield from _read_steps(server, VERIFICATION, labels, period, _HOUR_S)
    daemon = yield from _read_steps(server, OF_DAEMON, of_host, period, _STEP_S)
    return DiskSeries(
        name, mount_points, steps, evidence, verification=verification, daemon=daemon
    )


def _read_steps(
    server: Server, names: Iterable[str], labels: Mapping[str, str], period: Period, step_s: int
) -> Exchanges[list[Series]]:
    """Return values at equal steps, which are longer for a period of more than a month."""
    longer_s = -(-period.seconds // (MOST_POINTS - 1))
    return (
        yield from read_steps(
            server,
            selector(names, labels),
            period.start_timestamp_s,
            period.end_timestamp_s,
            max(step_s, longer_s),
        )
    )
