"""The report as a page: what is printed, and a self-contained HTML page."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from disksla.base.package_files import file_beside
from disksla.measure.prometheus import Period
from disksla.measure.report import compliance_wording as wording
from disksla.measure.report.document import DiskReport, Incident, Part, Report, Slice
from disksla.promise.catalogue import TERMS_TITLES
from disksla.tell.explanation import SHOWN_TEXT, VERDICT_STYLE
from disksla.tell.page import (
    REPORT_STYLE,
    DataTable,
    Drawing,
    FactList,
    Heading,
    HtmlPage,
    Items,
    Line,
    PagePart,
    Section,
    Styled,
    Words,
    html_of,
)
from disksla.verdict.throttling import VERDICTS

_SHEET = HtmlPage(REPORT_STYLE + VERDICT_STYLE + file_beside(__file__, "report.css"))
_HEIGHT = 100.0
_SLICE_WIDTH = 20.0
_BREAK = 2.0
_ORDER = ("stalled", "below", "throttled", "met", "unproven", "idle")
"""From the bottom of a bar."""


class _Most(NamedTuple):
    """How much is shown."""

    disks: int
    """So many disks are described; of more, only those that do not comply."""
    incidents: int
    gaps: int | None
    """None for all."""
    spans: int = 20


_PRINTED = _Most(3, 10, 5)
_IN_HTML = _Most(20, 100, None)


def report_html(report: Report) -> str:
    """Return the HTML page. Names of disks, labels and terms are escaped."""
    body = html_of(report_page(report, _IN_HTML))
    return _SHEET.page(f"{_title(report)}: {_verdict(report)}", f"<main>\n{body}\n</main>")


def report_page(report: Report, most: _Most = _PRINTED) -> Iterator[PagePart]:
    """Yield the parts of the page, with no more of anything than `most`."""
    period = wording.period_of(report)
    shown = wording.described(report, most.disks)
    yield Heading(_title(report), level=1)
    yield Line(_verdict(report), f"verdict {_style(report)}")
    if report.selection:
        yield Line(f"Selected: {', '.join(report.selection)}")
    yield _disks(report, {number for number, _ in shown})
    for number, disk in shown:
        yield Section([*_disk(number, disk, period, most)], "section")
    yield Heading("What is counted")
    for note in wording.NOTES:
        yield Line(note, "soft")
    yield Line(
        f"Written by disksla {report.disksla_version} from the series of Prometheus. The same"
        " series give the same page.",
        "soft",
    )


def _title(report: Report) -> str:
    return f"Disk report, {wording.period_text(report)}"


def _verdict(report: Report) -> str:
    return f"{wording.verdict_text(report)}: {wording.summary_text(report)}"


def _style(of: DiskReport | Report) -> str:
    return {True: "good", False: "bad", None: ""}[of.is_compliant]


def _disks(report: Report, described: set[int]) -> DataTable:
    numbers = ("tested", "less", "throttled", "gaps", "compliance")
    rows: list[tuple[Words, ...]] = []
    for number, disk in enumerate(report.disks, 1):
        link = f"#disk-{number}" if number in described else ""
        times_s = (
            disk.totals.proven_s,
            disk.totals.noncompliant_s,
            disk.totals.verdict_seconds["throttled"],
            disk.totals.unassessed_s,
        )
        rows.append(
            (
                (
                    Styled(disk.title, href=link),
                    Styled(wording.terms_text(disk), "soft", where="page"),
                ),
                *map(wording.clock_text, times_s),
                Styled(wording.share_text(disk.totals.compliance_ratio), _style(disk)),
            )
        )
    return DataTable(("disk", *numbers), rows, numbers)


def _disk(number: int, disk: DiskReport, period: Period, most: _Most) -> Iterator[PagePart]:
    yield Heading(
        f"{disk.title}, {wording.terms_text(disk)}: {wording.verdict_text(disk)}",
        style=_style(disk),
        id=f"disk-{number}",
    )
    verified = (wording.verification_text(each, period) for each in disk.verifications)
    yield FactList(
        (
            ("disk", wording.identity(disk)),
            ("compliance", wording.disk_compliance_text(disk)),
            ("throttled", wording.throttled_text(disk.totals)),
            ("used by", wording.consumers_text(disk.consumers) if disk.consumers else ""),
            ("slow", wording.slow_text(disk.totals)),
            ("burst credits", tuple(wording.credits_text(each, period) for each in disk.credits)),
            ("verified", tuple(verified)),
            ("provider", tuple(wording.agreement_texts(disk))),
        )
    )
    yield Drawing(_chart(disk.slices))
    if disk.parts:
        yield Heading("Promise", level=3)
        yield DataTable(
            ("promised", "from", "to", "compliance", "source"),
            [_promise(part, period) for part in disk.parts],
        )
    yield from _incidents(disk.incidents, period, most.incidents)
    yield Section([*_throttled(disk, period, most.spans)], where="page")
    yield from _gaps(disk, period, most.gaps)


def _chart(slices: Sequence[Slice]) -> str:
    """Return a chart of the shares of verdicts by day, or hour."""
    bars = []
    for index, each in enumerate(slices):
        top = _HEIGHT
        for verdict in _ORDER:
            height = _HEIGHT * each.totals.verdict_seconds[verdict] / each.totals.period_s
            top -= height
            if height:
                bars.append(
                    f'<rect class="{verdict}" x="{index * _SLICE_WIDTH:g}" y="{max(top, 0.0):.2f}"'
                    f' width="{_SLICE_WIDTH - _BREAK:g}" height="{height:.2f}"/>'
                )
    label = "Share of each verdict over time"
    key = "".join(
        f'<span><i class="{verdict}"></i>{words}</span>'
        for verdict, words in (
            *((each, SHOWN_TEXT[each].words) for each in VERDICTS),
            ("gap", "gap"),
        )
    )
    return f"""<figure>
<svg viewBox="0 0 {len(slices) * _SLICE_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none" role="img"
 aria-label="{label}">{"".join(bars)}</svg>
<figcaption class="soft"><span class="ends"><span>{slices[0].start}</span>
<span>{slices[-1].start}</span></span><span class="key">{key}</span></figcaption>
</figure>"""


def _promise(part: Part, period: Period) -> tuple[Words, ...]:
    rates = wording.rates_text(part.facts.promised, part.facts.promised_latency_s)
    return (
        (rates, Styled(wording.conditions_text(part), "soft")),
        _moment(part.start_timestamp_s, period),
        _moment(part.end_timestamp_s, period),
        wording.compliance_text(part.totals),
        (
            TERMS_TITLES.get(part.facts.terms, part.facts.terms),
            *wording.promise_sources(part, period),
        ),
    )


def _moment(timestamp_s: float, period: Period) -> Styled:
    return Styled(period.text(timestamp_s), "whole")


def _incidents(incidents: Sequence[Incident], period: Period, most: int) -> Iterator[PagePart]:
    if not incidents:
        return
    shown = wording.largest(incidents, lambda each: each.noncompliant_s, most)
    yield Heading(f"Incidents: {len(incidents)}", level=3)
    yield DataTable(
        ("incident", "seconds", "given", "promised", "measured"),
        [_incident(each, period) for each in shown],
    )
    rest_s = sum(each.noncompliant_s for each in incidents)
    rest_s -= sum(each.noncompliant_s for each in shown)
    yield from _rest(len(incidents) - len(shown), rest_s)


def _incident(incident: Incident, period: Period) -> tuple[Words, ...]:
    tested = f"of {wording.seconds_text(incident.proven_s)} tested"
    measured = [*map(wording.probes_text, incident.probes)]
    if incident.verification_timestamp_s is not None:
        measured.append(f"last verified {period.text(incident.verification_timestamp_s)}")
    return (
        wording.incident_times(incident, period),
        tuple(Styled(each, "whole") for each in (*wording.incident_seconds(incident), tested)),
        ", ".join(wording.given_facts(incident.given)),
        wording.rates_text(incident.promised, incident.promised_latency_s),
        tuple(measured) or "no probes",
    )


def _throttled(disk: DiskReport, period: Period, most: int) -> Iterator[PagePart]:
    spans = disk.throttled_spans
    if not spans:
        return
    shown = wording.largest(spans, lambda each: sum(each.throttled_seconds.values()), most)
    yield Heading(f"Times throttled: {len(spans)}", level=3)
    rows: list[tuple[Words, ...]] = [
        (
            period.text(span.start_timestamp_s),
            period.text(span.end_timestamp_s),
            tuple(
                f"{wording.limit_text(limit)} {wording.seconds_text(seconds)}"
                for limit, seconds in span.throttled_seconds.items()
            ),
            "not counted"
            if span.throttled_iowait_s is None
            else wording.seconds_text(span.throttled_iowait_s),
        )
        for span in shown
    ]
    yield DataTable(("throttled from", "to", "by", "iowait meanwhile"), rows)
    rest_s = sum(sum(each.throttled_seconds.values()) for each in spans)
    rest_s -= sum(sum(each.throttled_seconds.values()) for each in shown)
    yield from _rest(len(spans) - len(shown), rest_s)


def _gaps(disk: DiskReport, period: Period, most: int | None) -> Iterator[PagePart]:
    yield Heading(f"Not assessed: {wording.seconds_text(disk.totals.unassessed_s)}", level=3)
    shown = wording.largest(disk.gaps, lambda each: each.unassessed_s, most or len(disk.gaps))
    yield Items([wording.gap_text(gap, period) for gap in shown])
    rest_s = sum(each.unassessed_s for each in disk.gaps)
    rest_s -= sum(each.unassessed_s for each in shown)
    yield from _rest(len(disk.gaps) - len(shown), rest_s)
    if disk.sampling_gaps:
        counts = ", ".join(f"{count} {reason}" for reason, count in disk.sampling_gaps.items())
        yield Line(f"Gaps that the daemon counted on this host: {counts}.")


def _rest(number: int, seconds: float) -> Iterator[Line]:
    if number:
        duration = wording.seconds_text(seconds)
        yield Line(f"And {number} shorter ones, {duration} together (in the JSON).", "soft")
