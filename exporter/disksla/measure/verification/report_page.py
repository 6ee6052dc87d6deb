"""A verification report as a page: what is printed, and a self-contained HTML page."""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator

from disksla.base.package_files import file_beside
from disksla.base.text import escape_html
from disksla.base.units import format_bandwidth, format_count, format_duration, format_size
from disksla.measure.verification.report import (
    VERDICT_TEXT,
    MeasuredLevel,
    SuiteTestResult,
    VerificationReport,
    format_amount,
    format_result,
    format_subject,
    format_terms,
)
from disksla.tell.explanation import SHOWN_TEXT
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

_SHEET = HtmlPage(REPORT_STYLE + file_beside(__file__, "report.css"))
_LEVELS: dict[MeasuredLevel, str] = {"base": "base", "burst": "burst", "burst_then_base": "both"}
_STYLES = {"kept": "good", "part": "good", "pass": "good", "shown": "", "untested": "note"}
"""Of verdicts; of the others it is bad."""
_FULL_BAR_RATIO = 1.5
"""Ratio at which a bar is full; larger ratios are drawn full too."""
_PLOT_WIDTH = 360.0
_PLOT_LEFT = 8.0
_ROW_HEIGHT = 30.0
_AXIS_HEIGHT = 16.0
_DOT = 2.6
_SHORTEST_S = 1e-6
"""Lower bound of the logarithmic scale; no request of a disk completes faster."""
_RATIO = (
    "The ratio is the measured share of the promise; for latency, promised over measured. Min is"
    " the ratio that is required for the request size: the mark in a bar, which is full at"
    f" {_FULL_BAR_RATIO:.0%}. A test passes if it misses its requirement by no more than"
)
_LEVEL = "Level is whether burst credits were used: burst, base, or both, one after the other."
_DOTS = (
    "The dots are the 50th, 90th, 99th and 99.9th percentiles, from left to right. Requests wait"
    " in deep queues, so only the tests named latency have a required latency (dashed line)."
)


def report_html(report: VerificationReport) -> str:
    """Return the HTML page. Names of devices and terms are escaped."""
    title = ": ".join(_headline(report))
    return _SHEET.page(title, f"<main>\n{html_of(report_page(report))}\n</main>")


def report_page(report: VerificationReport) -> Iterator[PagePart]:
    """Yield the parts of the page, of which a terminal shows verdict, table and reasons."""
    title, verdict = _headline(report)
    yield Heading(title, level=1)
    yield Line(verdict, f"verdict {_STYLES.get(report.verdict, 'bad')}")
    yield Items([f"precondition violated: {each.message}" for each in report.violations])
    yield Items([f"not judged: {each}" for each in report.unjudged])
    yield Section((FactList([*_facts(report)]), Heading("Results")), where="page")
    numbers = ("required", "measured", "ratio", "min")
    yield DataTable(
        ("test", *numbers, "share of the promise", "level", "verdict"),
        [_row(result) for result in report.tests if not _is_absent(result)],
        numbers,
    )
    legend = f"{_RATIO} {100 * report.tolerance_ratio:.3g}%."
    yield Section((Line(legend, "soft"),), where="page")
    if any(result.level for result in report.tests):
        yield Line(_LEVEL, "soft")
    yield from map(Line, _reasons(report.tests))
    yield Section([*_latencies(report.tests)], where="page")


def _headline(report: VerificationReport) -> tuple[str, str]:
    title = f"Verification report: {format_subject(report)}, suite {report.suite}"
    return title, f"{report.summary}. {VERDICT_TEXT[report.verdict]}"


def _facts(report: VerificationReport) -> Iterator[tuple[str, str | None]]:
    began = dt.datetime.fromtimestamp(report.began_timestamp_s, dt.UTC)
    seconds = report.ended_timestamp_s - report.began_timestamp_s
    duration = f", duration {format_duration(seconds)}" if seconds > 0 else ""
    target = {
        "device": "the whole device",
        "file": "a scratch file on a file system of the disk",
        "elsewhere": "not known: imported result",
    }[report.target]
    yield "disk", report.device
    yield "model", report.model
    yield "serial", report.serial
    yield "WWN", report.wwn
    yield "terms", format_terms(report)
    yield "size", format_size(report.size_bytes)
    yield "test suite", f"{report.suite}, {report.procedure}"
    yield "target", target
    yield "date", f"{began:%Y-%m-%d %H:%M:%S} UTC{duration}"
    yield "tools", f"{report.tool}, disksla {report.disksla_version}"


def _is_absent(result: SuiteTestResult) -> bool:
    is_untested = result.verdict == "untested" and result.measured is None
    return result.verdict == "skipped" or is_untested


def _row(result: SuiteTestResult) -> list[Words]:
    notes = (Styled(note, "soft", where="page") for note in (result.caption, *_notes(result)))
    return [
        (result.test, *notes),
        format_amount(result.unit, result.required),
        format_amount(result.unit, result.measured),
        "-" if result.ratio is None else f"{100 * result.ratio:.1f}%",
        "-" if result.required_ratio is None else f"{result.required_ratio:.0%}",
        _bar(result),
        _LEVELS[result.level] if result.level else "",
        Styled(result.verdict, _STYLES.get(result.verdict, "bad")),
    ]


def _reasons(results: Iterable[SuiteTestResult]) -> Iterator[str]:
    """Yield the tests without a result, and those whose result needs a reason, by reason."""
    tests: dict[tuple[str, str], list[str]] = {}
    for result in results:
        what = "Skipped" if result.verdict == "skipped" else "Not tested"
        of = (what if _is_absent(result) else "", result.reason)
        tests.setdefault(of, []).append(result.test)
    for (what, reason), names in tests.items():
        if what:
            yield f"{what}: {', '.join(names)} ({reason})."
        elif reason:
            yield f"{', '.join(names)}: {reason}"


def _notes(result: SuiteTestResult) -> Iterator[str]:
    """Yield what explains a result, beside the numbers of the table."""
    if result.why:
        yield f"Requirement: {result.why}"
    if result.iops is not None and result.bytes_per_second is not None:
        iops = f"{format_count(result.iops)} IOPS"
        mean = result.mean_latency_s
        also = [format_bandwidth(result.bytes_per_second) if result.unit == "iops" else iops]
        if mean is not None and result.unit != "seconds":
            also.append(f"mean latency {format_duration(mean)}")
        yield f"Also measured: {', '.join(also)}"
    monitored_s = sum(result.window_seconds.values())
    if monitored_s:
        parts = (
            f"{SHOWN_TEXT[verdict].words} {seconds / monitored_s:.0%}"
            for verdict, seconds in result.window_seconds.items()
            if seconds >= 0.005 * monitored_s
        )
        yield f"Windows of 100 ms: {', '.join(parts)}"


def _bar(result: SuiteTestResult) -> Drawing:
    if result.ratio is None or result.required_ratio is None:
        return Drawing("")
    scale = 100 / _FULL_BAR_RATIO
    width = min(result.ratio, _FULL_BAR_RATIO) * scale
    mark = min(result.required_ratio, _FULL_BAR_RATIO) * scale
    return Drawing(
        f'<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape_html(format_result(result))}">'
        f'<rect class="track" width="100" height="10"/>'
        f'<rect class="{result.verdict}" width="{width:.2f}" height="10"/>'
        f'<line class="mark" x1="{mark:.2f}" x2="{mark:.2f}" y1="0" y2="10"'
        f' vector-effect="non-scaling-stroke"/></svg>'
    )


def _latencies(results: Iterable[SuiteTestResult]) -> Iterator[PagePart]:
    """Yield a chart with the percentiles of all tests on one logarithmic scale."""
    drawn = [result for result in results if result.percentiles]
    known = [each.seconds for result in drawn for each in result.percentiles]
    if not known:
        return
    first = math.floor(math.log10(max(min(known), _SHORTEST_S)))
    decades = max(1, math.ceil(math.log10(max(*known, _SHORTEST_S))) - first)
    height = len(drawn) * _ROW_HEIGHT + _AXIS_HEIGHT

    def place(seconds: float) -> float:
        share = (math.log10(max(seconds, 10.0**first)) - first) / decades
        return _PLOT_LEFT + (_PLOT_WIDTH - 2 * _PLOT_LEFT) * min(max(share, 0.0), 1.0)

    axis = "".join(
        f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - _AXIS_HEIGHT:.1f}"/>'
        f'<text class="dim" x="{x:.1f}" y="{height - 5:.1f}" text-anchor="{anchor}">'
        f"{format_duration(10.0 ** (first + step))}</text>"
        for step in range(decades + 1)
        for x in (place(10.0 ** (first + step)),)
        for anchor in ("start" if step == 0 else "end" if step == decades else "middle",)
    )
    rows = "\n".join(_percentile_row(result, number, place) for number, result in enumerate(drawn))
    yield Heading("Latency")
    yield Drawing(f"""<div class="plot">
<svg viewBox="0 0 {_PLOT_WIDTH:.0f} {height:.0f}" role="img"
 aria-label="Percentiles of latency by test">{axis}
{rows}</svg></div>""")
    yield Line(_DOTS, "soft")


def _percentile_row(result: SuiteTestResult, number: int, place: Callable[[float], float]) -> str:
    top = number * _ROW_HEIGHT
    middle = top + 2 * _ROW_HEIGHT / 3
    xs = [place(each.seconds) for each in result.percentiles]
    dots = "".join(
        f'<circle class="shown" cx="{x:.1f}" cy="{middle:.1f}" r="{_DOT}"/>' for x in xs
    )
    promise = ""
    if result.unit == "seconds" and result.required is not None:
        x = place(result.required)
        promise = (
            f'<line class="promise" x1="{x:.1f}" x2="{x:.1f}" y1="{top + 13:.1f}"'
            f' y2="{top + _ROW_HEIGHT:.1f}"/>'
        )
    last = format_duration(result.percentiles[-1].seconds)
    mean_s = result.mean_latency_s
    mean = "" if mean_s is None else f"mean {format_duration(mean_s)}, "
    return (
        f'<text x="{_PLOT_LEFT}" y="{top + 10:.1f}">{escape_html(result.test)}</text>'
        f'<text class="dim" x="{_PLOT_WIDTH - _PLOT_LEFT:.0f}" y="{top + 10:.1f}"'
        f' text-anchor="end">{mean}{100 * result.percentiles[-1].share:g}% within {last}</text>'
        f'<line class="spread" x1="{xs[0]:.1f}" x2="{xs[-1]:.1f}" y1="{middle:.1f}"'
        f' y2="{middle:.1f}"/>{promise}{dots}'
    )
