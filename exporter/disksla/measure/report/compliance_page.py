"""The report as a page: what is printed, and a self-contained HTML page."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from disksla.base.package_files import file_beside
from disksla.base.units import format_count, format_duration, format_size
from disksla.measure.prometheus import Period
from disksla.measure.report import compliance_wording as wording
from disksla.measure.report.compliance_wording import seconds_text
from disksla.measure.report.document import (
    CreditsEvidence,
    DiskReport,
    Gap,
    Incident,
    Part,
    Report,
    Slice,
    ThrottledSpan,
    Verification,
)
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
_EMPTY_S = 1e-3
_EBS_SERIAL = re.compile("vol([0-9a-f]+)")
"""Serial number of a volume of EBS: its id without the dash."""
_NAMED = {"instance", "device", "job"}
"""Labels of a disk that are not listed: its title has them."""
_Span = TypeVar("_Span", Incident, ThrottledSpan, Gap)


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
    described = dict(enumerate(report.disks, 1))
    if len(described) > most.disks:
        described = {n: disk for n, disk in described.items() if disk.is_compliant is False}
    yield Heading(_title(report), level=1)
    yield Line(_verdict(report), f"verdict {_style(report)}")
    if report.selection:
        yield Line(f"Selected: {', '.join(report.selection)}")
    yield _disks(report, described.keys())
    for number, disk in described.items():
        yield Section([*_disk(number, disk, wording.period_of(report), most)], "section")
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


def _disks(report: Report, described: Iterable[int]) -> DataTable:
    numbers = ("tested", "less", "throttled", "gaps", "compliance")
    rows: list[tuple[Words, ...]] = []
    for number, disk in enumerate(report.disks, 1):
        totals = disk.totals
        times_s = (
            *(totals.proven_s, totals.noncompliant_s),
            *(totals.verdict_seconds["throttled"], totals.unassessed_s),
        )
        clock = (
            f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
            for whole in map(round, times_s)
        )
        name = Styled(disk.title, href=f"#disk-{number}" if number in described else "")
        terms = Styled(wording.terms_text(disk), "soft", where="page")
        share = Styled(wording.share_text(totals.compliance_ratio), _style(disk))
        rows.append(((name, terms), *clock, share))
    return DataTable(("disk", *numbers), rows, numbers)


def _disk(number: int, disk: DiskReport, period: Period, most: _Most) -> Iterator[PagePart]:
    yield Heading(
        f"{disk.title}, {wording.terms_text(disk)}: {wording.verdict_text(disk)}",
        style=_style(disk),
        id=f"disk-{number}",
    )
    compliance = f"{wording.compliance_text(disk.totals)}, {wording.less_text(disk.totals)}"
    objective = wording.share_text(disk.objective_share)
    yield FactList(
        (
            ("disk", _identity(disk)),
            ("compliance", f"{compliance} (objective {objective})"),
            ("throttled", wording.throttled_text(disk.totals)),
            ("used by", wording.consumers_text(disk.consumers) if disk.consumers else ""),
            ("slow", wording.slow_text(disk.totals)),
            ("burst credits", tuple(_credits(each, period) for each in disk.credits)),
            ("verified", tuple(_verified(each, period) for each in disk.verifications)),
            ("provider", tuple(_agreements(disk))),
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


def _identity(disk: DiskReport) -> str:
    """Return serial, volume, mount points, machine type, and labels that are not in the title."""
    volume, machine = _EBS_SERIAL.fullmatch(disk.serial), disk.facts.machine_type
    parts = (
        f"serial {disk.serial}" if disk.serial else "",
        f"volume vol-{volume[1]}" if volume else "",
        *disk.mount_points,
        f"machine {machine}" if machine else "",
        *(f"{name} {value}" for name, value in disk.labels.items() if name not in _NAMED),
    )
    return ", ".join(filter(None, parts))


def _credits(level: CreditsEvidence, period: Period) -> str:
    capacity = level.capacity_credits
    lowest, lower, upper, last = (
        f"{amount / capacity:.0%}" if capacity else format_count(amount)
        for amount in (
            *(level.lowest_credits, level.lowest_lower_bound_credits),
            *(level.lowest_upper_bound_credits, level.last_credits),
        )
    )
    empty = f"; used up for {seconds_text(level.empty_s)}" if level.empty_s else ""
    return (
        f"{level.resource}: lowest {lowest} (between {lower} and {upper})"
        f" at {period.text(level.lowest_timestamp_s)}, last {last}{empty}"
    )


def _verified(verification: Verification, period: Period) -> str:
    failed = [each for each in verification.tests if each.passed is False]
    judged = sum(each.passed is not None for each in verification.tests)
    worse = ", ".join(
        each.test if each.ratio is None else f"{each.test} ({each.ratio:.0%} of the promise)"
        for each in failed
    )
    passed = f"{judged - len(failed)} of {judged} tests passed"
    moment = period.text(verification.timestamp_s)
    return f"{moment}: {passed}{f'; failed: {worse}' if worse else ''}"


def _agreements(disk: DiskReport) -> Iterator[str]:
    """Yield what the provider allows itself and agrees to, and what of that is not published."""
    allowed = disk.allowance
    if allowed is not None:
        yield (
            f"The provider states the rates for {100 * allowed.promised_time_share:.6g} % of the"
            f" time: it allows {seconds_text(allowed.allowed_s)} of the period below them; found"
            f" {seconds_text(allowed.noncompliant_s)}:"
            f" {'' if allowed.is_exceeded else 'not '}exceeded."
        )
    if disk.uptime is not None:
        yield from wording.uptime_text(disk.uptime)
    if allowed is None:
        yield "The catalogue has no share of the time for which the provider states these rates."
    if disk.uptime is None:
        yield "No service level agreement of this provider about disks is known."


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
    words = [*((each, SHOWN_TEXT[each].words) for each in VERDICTS), ("gap", "gap")]
    key = "".join(f'<span><i class="{verdict}"></i>{each}</span>' for verdict, each in words)
    return f"""<figure>
<svg viewBox="0 0 {len(slices) * _SLICE_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none" role="img"
 aria-label="Share of each verdict over time">{"".join(bars)}</svg>
<figcaption class="soft"><span class="ends"><span>{slices[0].start}</span>
<span>{slices[-1].start}</span></span><span class="key">{key}</span></figcaption>
</figure>"""


def _promise(part: Part, period: Period) -> tuple[Words, ...]:
    named = (("IOPS", part.iops_conditions), ("bandwidth", part.bandwidth_conditions))
    conditions = "; ".join(
        f"{name} for requests of {format_size(each.request_bytes)}"
        + ("" if each.queue_depth is None else f", {each.queue_depth} in flight")
        for name, each in named
        if each is not None
    )
    facts = part.facts
    return (
        (wording.rates_text(facts.promised, facts.promised_latency_s), Styled(conditions, "soft")),
        Styled(period.text(part.start_timestamp_s), "whole"),
        Styled(period.text(part.end_timestamp_s), "whole"),
        wording.compliance_text(part.totals),
        (TERMS_TITLES.get(facts.terms, facts.terms), *wording.promise_sources(part, period)),
    )


def _incidents(incidents: Sequence[Incident], period: Period, most: int) -> Iterator[PagePart]:
    if incidents:
        shown, rest = _longest(incidents, lambda each: each.noncompliant_s, most)
        yield Heading(f"Incidents: {len(incidents)}", level=3)
        yield DataTable(
            ("incident", "seconds", "given", "promised", "measured"),
            [_incident(each, period) for each in shown],
        )
        yield from rest


def _incident(incident: Incident, period: Period) -> tuple[Words, ...]:
    start, end = map(period.text, (incident.start_timestamp_s, incident.end_timestamp_s))
    bad = ((wording.LESS, incident.below_s), (wording.HUNG, incident.stalled_s))
    seconds = [f"{name} {seconds_text(each)}" for name, each in bad if each >= _EMPTY_S]
    seconds.append(f"of {seconds_text(incident.proven_s)} tested")
    measured = []
    for probe in incident.probes:
        windows = (("before", probe.before), ("during", probe.during), ("after", probe.after))
        parts = ", ".join(
            f"{name} {format_duration(each.mean_s)} ({each.requests} requests)"
            for name, each in windows
            if each is not None
        )
        measured.append(f"{probe.kind}: {parts}")
    if incident.verification_timestamp_s is not None:
        measured.append(f"last verified {period.text(incident.verification_timestamp_s)}")
    return (
        f"{start} to {end.removeprefix(start[:11])}",  # the date of the end if it is another one
        tuple(Styled(each, "whole") for each in seconds),
        ", ".join(wording.given_facts(incident.given)),
        wording.rates_text(incident.promised, incident.promised_latency_s),
        tuple(measured) or "no probes",
    )


def _throttled(disk: DiskReport, period: Period, most: int) -> Iterator[PagePart]:
    spans = disk.throttled_spans
    if spans:
        shown, rest = _longest(spans, lambda each: sum(each.throttled_seconds.values()), most)
        yield Heading(f"Times throttled: {len(spans)}", level=3)
        rows: list[tuple[Words, ...]] = [
            (
                period.text(span.start_timestamp_s),
                period.text(span.end_timestamp_s),
                tuple(
                    f"{wording.limit_text(limit)} {seconds_text(seconds)}"
                    for limit, seconds in span.throttled_seconds.items()
                ),
                "not counted"
                if span.throttled_iowait_s is None
                else seconds_text(span.throttled_iowait_s),
            )
            for span in shown
        ]
        yield DataTable(("throttled from", "to", "by", "iowait meanwhile"), rows)
        yield from rest


def _gaps(disk: DiskReport, period: Period, most: int | None) -> Iterator[PagePart]:
    yield Heading(f"Not assessed: {seconds_text(disk.totals.unassessed_s)}", level=3)
    shown, rest = _longest(disk.gaps, lambda each: each.unassessed_s, most or len(disk.gaps))
    yield Items(
        [
            f"{period.text(gap.start_timestamp_s)} to {period.text(gap.end_timestamp_s)}:"
            f" {seconds_text(gap.unassessed_s)}, {gap.reason}"
            for gap in shown
        ]
    )
    yield from rest
    if disk.sampling_gaps:
        counts = ", ".join(f"{count} {reason}" for reason, count in disk.sampling_gaps.items())
        yield Line(f"Gaps that the daemon counted on this host: {counts}.")


def _longest(
    spans: Sequence[_Span], seconds: Callable[[_Span], float], most: int
) -> tuple[list[_Span], list[Line]]:
    """Return those with the most seconds, in the order of time, and what is said of the rest."""
    longest = sorted(spans, key=lambda each: (-seconds(each), each.start_timestamp_s))
    shown, rest = longest[:most], longest[most:]
    duration = seconds_text(sum(map(seconds, spans)) - sum(map(seconds, shown)))
    text = f"And {len(rest)} shorter ones, {duration} together (in the JSON)."
    return (
        sorted(shown, key=lambda each: each.start_timestamp_s),
        [Line(text, "soft")] if rest else [],
    )
