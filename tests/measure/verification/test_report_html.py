"""The HTML page of a verification report."""

import base64
import hashlib
import re

from hypothesis import example, given

from disksla.measure.verification.measurement import Percentile
from disksla.measure.verification.preconditions import Violation
from disksla.measure.verification.report import VerificationReport
from disksla.measure.verification.report_html import report_html
from support.examples import scaled
from support.html_page import HtmlPage
from support.reports import RESULTS, a_report, a_result, reports

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "ul", "li", "dl",
    "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "div", "span", "svg", "rect", "line",
    "text", "circle",
}  # fmt: skip

HOSTILE = "<script>alert(1)</script>\"'&\udcff\x00"


def parse(report: VerificationReport) -> HtmlPage:
    page = HtmlPage(report_html(report))
    assert page.tags <= ALLOWED
    assert not any("href" in named for _, named in page.elements)
    return page


def numbers(page: HtmlPage) -> list[float]:
    """Return all places and widths of what is drawn."""
    drawn = [named for tag, named in page.elements if tag != "meta"]
    names = ("x", "x1", "x2", "cx", "width")
    return [float(named[name] or "nan") for named in drawn for name in names if name in named]


def text_of(report: VerificationReport) -> str:
    return parse(report).text


def test_results_are_rows_and_skipped_tests_listed() -> None:
    parser = parse(a_report(*RESULTS))
    rows = [row[1:] for row in parser.rows[1:]]
    assert rows == [
        ["1000 IOPS", "1002 IOPS", "100.2%", "", "pass"],
        ["750 IOPS", "700 IOPS", "70.0%", "", "fail"],
        ["125 MiB/s", "500 MiB/s", "400.0%", "", "pass"],
        ["3 ms", "2 ms", "150.0%", "", "shown"],
        ["-", "-", "-", "", "unmeasured"],
    ]
    drawn = [named["class"] for named in parser.of("rect") if "class" in named]
    assert drawn[::2] == ["track"] * 4
    assert drawn[1::2] == ["pass", "fail", "pass", "shown"]
    text = text_of(a_report(*RESULTS))
    assert "Skipped: write-1m, write-4m (no file)." in text
    assert "Windows of 100 ms: throttled 98%, idle 2%" in text
    assert "Measured while bursting, then at the baseline" in text
    assert "mean 32 ms, 99.9% within" in text
    assert "2023-11-14 22:13:20 UTC, duration 5.01 min" in text


def test_bar_stays_in_its_box() -> None:
    assert max(numbers(parse(a_report(a_result(ratio=7.0, percentiles=()))))) == 100


def test_verdict_is_followed_by_its_reasons() -> None:
    violation = Violation("other_load", "other load")
    text = text_of(a_report(a_result(), violations=(violation,), unjudged=("x: mixed",)))
    assert "NOT VALID: a precondition is violated other load x: mixed" in text
    assert "PASSED: all judged tests meet the promise" in text_of(a_report(a_result()))


def test_imported_result_has_no_disk_and_duration() -> None:
    report = a_report(
        a_result(percentiles=(), mean_latency_s=None, window_seconds={}),
        device=None,
        serial=None,
        model=None,
        wwn=None,
        target="elsewhere",
        ended_timestamp_s=1.7e9,
    )
    text = text_of(report)
    assert "imported result, terms vk.ceph-ssd" in text
    assert "2023-11-14 22:13:20 UTC Tools" in text
    assert "Latency" not in text
    assert "3.914 MiB/s" in text


def test_single_percentile_is_drawn() -> None:
    one = (Percentile(0.5, 0.001),)
    assert "within 1 ms" in text_of(a_report(a_result(percentiles=one, mean_latency_s=None)))
    assert "within 0 ms" in text_of(a_report(a_result(percentiles=(Percentile(0.5, 0.0),))))


@scaled(80)
@given(reports)
@example(a_report(a_result(test=HOSTILE, why=HOSTILE, reason=HOSTILE), hostile=HOSTILE))
def test_names_never_become_markup(report: VerificationReport) -> None:
    parser = parse(report)
    judged = [
        line
        for line in report.tests
        if line.verdict != "skipped" and (line.verdict != "untested" or line.measured is not None)
    ]
    assert len(parser.rows) == 1 + len(judged)
    assert all(0 <= number <= 360 for number in numbers(parser))


def test_content_security_policy_allows_only_the_style() -> None:
    page = report_html(a_report(*RESULTS))
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in page
    assert "url(" not in page
