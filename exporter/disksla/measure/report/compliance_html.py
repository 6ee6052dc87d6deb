"""The report as one self-contained page, without scripts or other files."""

from collections.abc import Iterable, Iterator, Sequence

from disksla.base.package_files import file_beside
from disksla.base.text import escape_html
from disksla.measure.prometheus import Period
from disksla.measure.report import compliance_wording as wording
from disksla.measure.report.document import (
    DiskReport,
    Incident,
    Part,
    Report,
    Slice,
    ThrottledSpan,
)
from disksla.tell.explanation import SHOWN_TEXT, VERDICT_STYLE
from disksla.tell.html_page import REPORT_STYLE, HtmlPage
from disksla.verdict.throttling import VERDICTS

_PAGE = HtmlPage(REPORT_STYLE + VERDICT_STYLE + file_beside(__file__, "report.css"))
_MOST_DISKS = 20
"""So many disks are described; of more, only those that do not comply."""
_MOST_INCIDENTS = 100
_MOST_SPANS = 20
_HEIGHT = 100.0
_SLICE_WIDTH = 20.0
_BREAK = 2.0
_ORDER = ("stalled", "below", "throttled", "met", "unproven", "idle")
"""From the bottom of a bar."""


def report_html(report: Report) -> str:
    """Return the page. Names of disks, labels and terms are escaped."""
    period = wording.period_of(report)
    title = f"Disk report, {wording.period_text(report)}"
    verdict = f"{wording.verdict_text(report)}: {wording.summary_text(report)}"
    selection = ""
    if report.selection:
        selection = f"<p>Selected: {escape_html(', '.join(report.selection))}</p>"
    shown = wording.described(report, _MOST_DISKS)
    sections = "\n".join(_disk(number, disk, period) for number, disk in shown)
    notes = "\n".join(f'<p class="soft">{escape_html(note)}</p>' for note in wording.NOTES)
    body = f"""<h1>{escape_html(title)}</h1>
<p class="verdict {_class(report.is_compliant)}">{escape_html(verdict)}</p>
{selection}
{_disks_table(report, {number for number, _ in shown})}
{notes}
{sections}
<p class="soft">Written by disksla {escape_html(report.disksla_version)} from the series of
Prometheus. The same series give the same page.</p>"""
    return _PAGE.page(f"{title}: {verdict}", f"<main>\n{body}\n</main>")


def _class(is_compliant: bool | None) -> str:  # noqa: FBT001 -- a value, not an option
    return {True: "good", False: "bad", None: ""}[is_compliant]


def _disks_table(report: Report, described: set[int]) -> str:
    columns = ("Disk", "Terms", "Tested", "Below or stalled", "Throttled", "Not assessed")
    rows = (
        (
            _disk_name(number, disk, is_link=number in described),
            escape_html(wording.terms_text(disk)),
            wording.seconds_text(disk.totals.proven_s),
            wording.seconds_text(disk.totals.noncompliant_s),
            wording.seconds_text(disk.totals.verdict_seconds["throttled"]),
            wording.seconds_text(disk.totals.unassessed_s),
            _compliance(disk),
        )
        for number, disk in enumerate(report.disks, 1)
    )
    return _table((*columns, "Compliance"), rows, 2)


def _compliance(disk: DiskReport) -> str:
    ratio = wording.share_text(disk.totals.compliance_ratio)
    return f'<b class="{_class(disk.is_compliant)}">{ratio}</b>'


def _disk_name(number: int, disk: DiskReport, *, is_link: bool) -> str:
    name = escape_html(disk.title)
    return f'<a href="#disk-{number}">{name}</a>' if is_link else name


def _disk(number: int, disk: DiskReport, period: Period) -> str:
    facts = (
        ("Disk", [wording.identity(disk)]),
        ("Compliance", [wording.disk_compliance_text(disk)]),
        ("Throttled", [wording.throttled_text(disk.totals)]),
        ("Used by", [wording.consumers_text(disk.consumers)] if disk.consumers else []),
        ("Slow", [wording.slow_text(disk.totals)]),
        ("Burst credits", [wording.credits_text(level, period) for level in disk.credits]),
        ("Verified", [wording.verification_text(each, period) for each in disk.verifications]),
        ("Provider's own arithmetic", map(_sentence, wording.agreement_texts(disk))),
    )
    heading = f"{disk.title}, {wording.terms_text(disk)}: {wording.verdict_text(disk)}"
    return f"""<section>
<h2 id="disk-{number}" class="{_class(disk.is_compliant)}">{escape_html(heading)}</h2>
<dl>
{_facts(facts)}
</dl>
{_chart(disk.slices)}
{_promises(disk.parts, period)}
{_incidents(disk.incidents, period)}
{_throttled(disk.throttled_spans, period)}
{_gaps(disk, period)}
</section>"""


def _facts(facts: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return entries of a list; those without text are left out."""
    lines = []
    for name, texts in facts:
        shown = "".join(f"<p>{escape_html(text)}</p>" for text in texts if text)
        if shown:
            lines.append(f"<dt>{name}</dt><dd>{shown}</dd>")
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].removesuffix('.')}."


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


def _promises(parts: Sequence[Part], period: Period) -> str:
    columns = ("Promised", "From", "To", "Compliance", "Source")
    rows = (
        (
            _promise(part),
            _whole(*period.text(part.start_timestamp_s).split()),
            _whole(*period.text(part.end_timestamp_s).split()),
            escape_html(wording.compliance_text(part.totals)),
            _lines((part.facts.terms, *wording.promise_sources(part, period))),
        )
        for part in parts
    )
    return _part("Promise", _table(columns, rows)) if parts else ""


def _promise(part: Part) -> str:
    rates = wording.rates_text(part.facts.promised, part.facts.promised_latency_s)
    conditions = escape_html(wording.conditions_text(part))
    return f'<span>{escape_html(rates)}</span><span class="soft">{conditions}</span>'


def _incidents(incidents: Sequence[Incident], period: Period) -> str:
    if not incidents:
        return ""
    shown = wording.largest(incidents, lambda each: each.noncompliant_s, _MOST_INCIDENTS)
    columns = ("Incident", "Seconds", "Given", "Promised", "Measured")
    rows = (
        (
            escape_html(wording.incident_times(incident, period)),
            _whole(
                *wording.incident_seconds(incident),
                f"of {wording.seconds_text(incident.proven_s)} tested",
            ),
            escape_html(", ".join(wording.given_facts(incident.given))),
            escape_html(wording.rates_text(incident.promised, incident.promised_latency_s)),
            _lines(_measured(incident, period)) or "no probes",
        )
        for incident in shown
    )
    note = _rest(len(incidents) - len(shown))
    return _part(f"Incidents: {len(incidents)}", _table(columns, rows) + note)


def _measured(incident: Incident, period: Period) -> Iterator[str]:
    yield from map(wording.probes_text, incident.probes)
    if incident.verification_timestamp_s is not None:
        yield f"last verified {period.text(incident.verification_timestamp_s)}"


def _throttled(spans: Sequence[ThrottledSpan], period: Period) -> str:
    if not spans:
        return ""
    shown = wording.largest(spans, lambda each: sum(each.throttled_seconds.values()), _MOST_SPANS)
    columns = ("Throttled from", "To", "By", "iowait meanwhile")
    rows = (
        (
            period.text(span.start_timestamp_s),
            period.text(span.end_timestamp_s),
            _lines(
                f"{wording.limit_text(limit)} {wording.seconds_text(seconds)}"
                for limit, seconds in span.throttled_seconds.items()
            ),
            "not counted"
            if span.throttled_iowait_s is None
            else wording.seconds_text(span.throttled_iowait_s),
        )
        for span in shown
    )
    note = _rest(len(spans) - len(shown))
    return _part(f"Times throttled: {len(spans)}", _table(columns, rows) + note)


def _rest(number: int) -> str:
    text = f'<p class="soft">And {number} shorter ones, which are in the JSON.</p>'
    return text if number else ""


def _gaps(disk: DiskReport, period: Period) -> str:
    items = "".join(f"<li>{escape_html(wording.gap_text(gap, period))}</li>" for gap in disk.gaps)
    listed = f"<ul>{items}</ul>" if items else ""
    counted = wording.sampling_gaps_text(disk)
    note = f"<p>{escape_html(_sentence(counted))}</p>" if counted else ""
    heading = f"Not assessed: {wording.seconds_text(disk.totals.unassessed_s)}"
    return _part(heading, listed + note)


def _part(heading: str, content: str) -> str:
    return f"<h3>{heading}</h3>\n{content}"


def _whole(*texts: str) -> str:
    """Return lines that are not broken."""
    return "".join(f'<span class="whole">{escape_html(text)}</span>' for text in texts)


def _lines(texts: Iterable[str]) -> str:
    return "".join(f"<span>{escape_html(text)}</span>" for text in texts if text)


def _table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int | None = None
) -> str:
    """Return a table; all cells are HTML, and the first of a row is its name."""
    first = len(columns) if numbers_from is None else numbers_from
    classes = ["" if index < first else ' class="number"' for index in range(len(columns))]
    headings = "".join(
        f'<th scope="col"{class_}>{column}</th>'
        for column, class_ in zip(columns, classes, strict=True)
    )
    body = "\n".join(_row(columns, row, classes) for row in rows)
    return f"<table>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _row(columns: Sequence[str], cells: Sequence[str], classes: Sequence[str]) -> str:
    rest = "".join(
        f'<td data-label="{column}"{class_}><div>{cell}</div></td>'
        for column, cell, class_ in [*zip(columns, cells, classes, strict=True)][1:]
    )
    return f'<tr><th scope="row">{cells[0]}</th>{rest}</tr>'
