"""Verification report as one self-contained HTML page, without scripts or other files."""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator

from disksla.base.package_files import file_beside
from disksla.base.text import escape_html
from disksla.base.units import format_bandwidth, format_count, format_duration, format_size
from disksla.measure.verification.report import (
    LEVEL_TEXT,
    VERDICT_TEXT,
    SuiteTestResult,
    VerificationReport,
    format_amount,
    format_percent,
    format_result,
    format_subject,
    format_terms,
)
from disksla.tell.explanation import SHOWN_TEXT
from disksla.tell.html_page import REPORT_STYLE, HtmlPage

_PAGE = HtmlPage(REPORT_STYLE + file_beside(__file__, "report.css"))
_FULL_BAR_RATIO = 1.5
"""Ratio at which a bar is full; larger ratios are drawn full too."""
_NUMBERS = ("Required", "Measured", "Ratio")
_PLOT_WIDTH = 360.0
_PLOT_LEFT = 8.0
_ROW_HEIGHT = 30.0
_AXIS_HEIGHT = 16.0
_DOT = 2.6
_SHORTEST_S = 1e-6
"""Lower bound of the logarithmic scale; no request of a disk completes faster."""


def report_html(report: VerificationReport) -> str:
    """Return the page. Names of devices and terms are escaped."""
    title = f"Verification report: {format_subject(report)}"
    style = {"kept": "good", "part": ""}.get(report.verdict, "bad")
    verdict = f"{report.summary}. {VERDICT_TEXT[report.verdict]}"
    body = f"""<h1>{escape_html(title)}</h1>
<p class="verdict {style}">{escape_html(verdict)}</p>
{_list(violation.message for violation in report.violations)}
{_list(report.unjudged)}
<dl>
{_facts(report)}
</dl>
<h2>Results</h2>
{_table(report.tests)}
<p class="soft">The ratio is the measured share of the promise; for latency, promised over
measured. A bar is full at {_FULL_BAR_RATIO:.0%}; its mark is the ratio that is required for the
request size. A test passes if it misses its requirement by no more than
{100 * report.tolerance_ratio:.3g}%.</p>
{_skipped(report.tests)}
{_latencies(report.tests)}"""
    return _PAGE.page(f"{title}: {verdict}", f"<main>\n{body}\n</main>")


def _facts(report: VerificationReport) -> str:
    began = dt.datetime.fromtimestamp(report.began_timestamp_s, dt.UTC)
    seconds = report.ended_timestamp_s - report.began_timestamp_s
    duration = f", duration {format_duration(seconds)}" if seconds > 0 else ""
    target = {
        "device": "the whole device",
        "file": "a scratch file on a file system of the disk",
        "elsewhere": "not known: imported result",
    }[report.target]
    facts = (
        ("Disk", report.device),
        ("Model", report.model),
        ("Serial", report.serial),
        ("WWN", report.wwn),
        ("Terms", format_terms(report)),
        ("Size", format_size(report.size_bytes)),
        ("Test suite", f"{report.suite}, {report.procedure}"),
        ("Target", target),
        ("Date", f"{began:%Y-%m-%d %H:%M:%S} UTC{duration}"),
        ("Tools", f"{report.tool}, disksla {report.disksla_version}"),
    )
    return "\n".join(
        f"<dt>{name}</dt><dd>{escape_html(value)}</dd>" for name, value in facts if value
    )


def _table(results: Iterable[SuiteTestResult]) -> str:
    number = ' class="number"'
    headings = "".join(
        f'<th scope="col"{number if column in _NUMBERS else ""}>{column}</th>'
        for column in ("Test", *_NUMBERS, "Share of the promise", "Verdict")
    )
    rows = "\n".join(_row(result) for result in results if not _is_absent(result))
    return f"<table>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"


def _skipped(results: Iterable[SuiteTestResult]) -> str:
    """List the tests that were skipped or are missing, by reason."""
    tests: dict[tuple[str, str], list[str]] = {}
    for result in filter(_is_absent, results):
        heading = "Skipped" if result.verdict == "skipped" else "Not tested"
        tests.setdefault((heading, result.reason), []).append(result.test)
    return "\n".join(
        f'<p class="soft">{heading}: {escape_html(", ".join(names))} ({escape_html(reason)}).</p>'
        for (heading, reason), names in tests.items()
    )


def _is_absent(result: SuiteTestResult) -> bool:
    return result.verdict == "skipped" or (
        result.verdict == "untested" and result.measured is None
    )


def _row(result: SuiteTestResult) -> str:
    soft = "".join(f'<span class="soft">{escape_html(note)}</span>' for note in _notes(result))
    style = {"pass": ' class="good"', "fail": ' class="bad"', "unmeasured": ' class="bad"'}
    verdict = f"<span{style.get(result.verdict, '')}>{result.verdict}</span>"
    amounts = (
        format_amount(result.unit, result.required),
        format_amount(result.unit, result.measured),
        format_percent(result.ratio),
    )
    numbers = "".join(
        f'<td class="number" data-label="{column}">{amount}</td>\n'
        for column, amount in zip(_NUMBERS, amounts, strict=True)
    )
    return (
        f'<tr><th scope="row">{escape_html(result.test)}'
        f'<span class="soft">{escape_html(result.caption)}</span>{soft}</th>\n'
        f'{numbers}<td class="bar">{_bar(result)}</td>\n'
        f'<td data-label="Verdict">{verdict}</td></tr>'
    )


def _notes(result: SuiteTestResult) -> Iterator[str]:
    """Yield what explains a result, beside the numbers of the table."""
    if result.why:
        yield f"Requirement: {result.why}"
    if result.reason:
        yield f"Note: {result.reason}"
    if result.iops is not None and result.bytes_per_second is not None:
        iops = f"{format_count(result.iops)} IOPS"
        mean = result.mean_latency_s
        also = [format_bandwidth(result.bytes_per_second) if result.unit == "iops" else iops]
        if mean is not None and result.unit != "seconds":
            also.append(f"mean latency {format_duration(mean)}")
        yield f"Also measured: {', '.join(also)}"
    if result.level is not None:
        yield LEVEL_TEXT[result.level].capitalize()
    monitored_s = sum(result.window_seconds.values())
    if monitored_s:
        parts = (
            f"{SHOWN_TEXT[verdict].words} {seconds / monitored_s:.0%}"
            for verdict, seconds in result.window_seconds.items()
            if seconds >= 0.005 * monitored_s
        )
        yield f"Windows of 100 ms: {', '.join(parts)}"


def _bar(result: SuiteTestResult) -> str:
    if result.ratio is None or result.required_ratio is None:
        return ""
    scale = 100 / _FULL_BAR_RATIO
    width = min(result.ratio, _FULL_BAR_RATIO) * scale
    mark = min(result.required_ratio, _FULL_BAR_RATIO) * scale
    return (
        f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape_html(format_result(result))}">'
        f'<rect class="track" width="100" height="10"/>'
        f'<rect class="{result.verdict}" width="{width:.2f}" height="10"/>'
        f'<line class="mark" x1="{mark:.2f}" x2="{mark:.2f}" y1="0" y2="10"'
        f' vector-effect="non-scaling-stroke"/></svg>'
    )


def _latencies(results: Iterable[SuiteTestResult]) -> str:
    """Return a chart with the percentiles of all tests on one logarithmic scale."""
    drawn = [result for result in results if result.percentiles]
    known = [each.seconds for result in drawn for each in result.percentiles]
    if not known:
        return ""
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
    return f"""<h2>Latency</h2>
<div class="plot"><svg viewBox="0 0 {_PLOT_WIDTH:.0f} {height:.0f}" role="img"
 aria-label="Percentiles of latency by test">{axis}
{rows}</svg></div>
<p class="soft">The dots are the 50th, 90th, 99th and 99.9th percentiles, from left to right.
Requests wait in deep queues, so only the tests named latency have a required latency (dashed
line).</p>"""


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
    mean = (
        "" if result.mean_latency_s is None else f"mean {format_duration(result.mean_latency_s)}, "
    )
    return (
        f'<text x="{_PLOT_LEFT}" y="{top + 10:.1f}">{escape_html(result.test)}</text>'
        f'<text class="dim" x="{_PLOT_WIDTH - _PLOT_LEFT:.0f}" y="{top + 10:.1f}"'
        f' text-anchor="end">{mean}{100 * result.percentiles[-1].share:g}% within {last}</text>'
        f'<line class="spread" x1="{xs[0]:.1f}" x2="{xs[-1]:.1f}" y1="{middle:.1f}"'
        f' y2="{middle:.1f}"/>{promise}{dots}'
    )


def _list(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape_html(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""
