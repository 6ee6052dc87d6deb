"""The report as text of 80 columns."""

import textwrap
from collections.abc import Iterable, Iterator

from disksla.measure.prometheus import Period
from disksla.measure.report import compliance_wording as wording
from disksla.measure.report.document import DiskReport, Incident, Report

_WIDTH = 80
_MOST_INCIDENTS = 10
_MOST_GAPS = 5
_MOST_DISKS = 3
"""So many disks are described; of more, only those that do not comply."""


def report_text(report: Report) -> str:
    """Return the report in lines of 80 columns where words permit."""
    period = wording.period_of(report)
    lines = [
        f"disksla report, {wording.period_text(report)}",
        *_wrapped(f"{wording.verdict_text(report)}: {wording.summary_text(report)}"),
    ]
    if report.selection:
        lines += _wrapped(f"selected: {', '.join(report.selection)}")
    lines += ["", *_table(report.disks)]
    for _, disk in wording.described(report, _MOST_DISKS):
        lines += ["", *_disk(disk, period)]
    lines.append("")
    for note in wording.NOTES:
        lines += _wrapped(note)
    lines += _wrapped(
        f"Written by disksla {report.disksla_version} from the series of Prometheus."
    )
    return "\n".join(lines) + "\n"


def _table(disks: Iterable[DiskReport]) -> Iterator[str]:
    rows = [("disk", "tested", "below", "throttled", "gaps", "compliance")]
    rows += [
        (
            disk.title,
            _short(disk.totals.proven_s),
            _short(disk.totals.noncompliant_s),
            _short(disk.totals.verdict_seconds["throttled"]),
            _short(disk.totals.unassessed_s),
            wording.share_text(disk.totals.compliance_ratio),
        )
        for disk in disks
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        numbers = (f"{row[column]:>{widths[column]}}" for column in range(1, len(row)))
        yield f"{row[0]:{widths[0]}}  {'  '.join(numbers)}"


def _short(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds: '26:05:10'."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def _disk(disk: DiskReport, period: Period) -> Iterator[str]:
    yield from _wrapped(f"{disk.title}, {wording.terms_text(disk)}: {wording.verdict_text(disk)}")
    if wording.identity(disk):
        yield from _fact(wording.identity(disk))
    yield from _fact(f"compliance {wording.disk_compliance_text(disk)}")
    yield from _parts(disk, period)
    yield from _fact(f"throttled: {wording.throttled_text(disk.totals)}")
    if disk.consumers:
        yield from _fact(wording.consumers_text(disk.consumers))
    if wording.slow_text(disk.totals):
        yield from _fact(f"slow: {wording.slow_text(disk.totals)}")
    yield from _incidents(disk, period)
    for level in disk.credits:
        yield from _fact(f"burst credits of {wording.credits_text(level, period)}")
    for verification in disk.verifications:
        yield from _fact(f"verified {wording.verification_text(verification, period)}")
    yield from _gaps(disk, period)
    yield from _fact("the provider's own arithmetic")
    for line in wording.agreement_texts(disk):
        yield from _fact(line, 4)


def _parts(disk: DiskReport, period: Period) -> Iterator[str]:
    for number, part in enumerate(disk.parts, 1):
        times = ""
        if len(disk.parts) > 1:
            times = (
                f" (part {number}, {period.text(part.start_timestamp_s)} to"
                f" {period.text(part.end_timestamp_s)}, {part.facts.terms or 'unknown type'},"
                f" compliance {wording.compliance_text(part.totals)})"
            )
        promise = wording.rates_text(part.facts.promised, part.facts.promised_latency_s)
        yield from _fact(f"promised{times}: {promise}")
        if wording.conditions_text(part):
            yield from _fact(wording.conditions_text(part), 4)
        for source in wording.promise_sources(part, period):
            yield from _fact(source, 4)


def _incidents(disk: DiskReport, period: Period) -> Iterator[str]:
    if not disk.incidents:
        return
    shown = wording.largest(disk.incidents, lambda each: each.noncompliant_s, _MOST_INCIDENTS)
    rest = len(disk.incidents) - len(shown)
    rest_s = sum(each.noncompliant_s for each in disk.incidents) - sum(
        each.noncompliant_s for each in shown
    )
    yield from _fact(f"incidents: {len(disk.incidents)}")
    for incident in shown:
        yield from _incident(incident, period)
    if rest:
        yield from _fact(
            f"and {rest} shorter ones, {wording.seconds_text(rest_s)} together (--json)", 4
        )


def _incident(incident: Incident, period: Period) -> Iterator[str]:
    yield from _fact(
        f"{wording.incident_times(incident, period)}:"
        f" {', '.join(wording.incident_seconds(incident))}"
        f" of {wording.seconds_text(incident.proven_s)} tested",
        4,
    )
    yield from _fact(f"given {', '.join(wording.given_facts(incident.given))}", 6)
    for probe in incident.probes:
        yield from _fact(f"probes of {wording.probes_text(probe)}", 6)


def _gaps(disk: DiskReport, period: Period) -> Iterator[str]:
    yield from _fact(f"not assessed: {wording.seconds_text(disk.totals.unassessed_s)}")
    longest = sorted(disk.gaps, key=lambda gap: (-gap.unassessed_s, gap.start_timestamp_s))
    for gap in longest[:_MOST_GAPS]:
        yield from _fact(wording.gap_text(gap, period), 4)
    if len(disk.gaps) > _MOST_GAPS:
        yield from _fact(f"and {len(disk.gaps) - _MOST_GAPS} shorter ones (--json)", 4)
    if wording.sampling_gaps_text(disk):
        yield from _fact(wording.sampling_gaps_text(disk), 4)


def _fact(text: str, indent: int = 2) -> list[str]:
    return _wrapped(text, " " * indent)


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  " if indent else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
