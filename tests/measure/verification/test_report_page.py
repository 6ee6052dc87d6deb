"""A verification report as text and as HTML."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given

from disksla.measure.verification.measurement import Percentile
from disksla.measure.verification.preconditions import Violation
from disksla.measure.verification.report import VerificationReport
from disksla.measure.verification.report_page import report_html, report_page
from disksla.tell.page import html_of
from disksla.tell.printed_page import text_of
from support.examples import scaled
from support.html_page import HtmlPage
from support.reports import RESULTS, a_report, a_result, reports

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = "<script>alert(1)</script>\"'&\udcff\x00"
WIDE = (
    a_result("latency-randwrite-16k", measured=16891.0, ratio=135.131, level="burst"),
    a_result("read-1m", unit="bytes_per_second", required=3e7, measured=3e7, level="base"),
    *RESULTS,
)
IMPORTED = a_report(
    a_result(percentiles=(), mean_latency_s=None, window_seconds={}),
    *(each for each in RESULTS if each.verdict == "skipped"),
    device=None,
    serial=None,
    model=None,
    wwn=None,
    target="elsewhere",
    ended_timestamp_s=1.7e9,
    violations=(Violation("other_load", "other load"),),
    unjudged=("x: mixed",),
)


@pytest.mark.parametrize(("name", "report"), [("wide", a_report(*WIDE)), ("imported", IMPORTED)])
def test_page(name: str, report: VerificationReport, golden: Callable[[Path, str], None]) -> None:
    text = text_of(report_page(report))
    assert max(map(len, text.splitlines())) <= 80
    golden(GOLDEN / f"{name}.txt", text)
    golden(GOLDEN / f"{name}.html", html_of(report_page(report)) + "\n")


def test_single_percentile_is_drawn() -> None:
    for seconds, shown in ((0.001, "within 1 ms"), (0.0, "within 0 ms")):
        one = a_result(percentiles=(Percentile(0.5, seconds),), mean_latency_s=None)
        assert shown in report_html(a_report(one))


@scaled(80)
@given(reports)
@example(a_report(a_result(test=HOSTILE, why=HOSTILE, reason=HOSTILE), hostile=HOSTILE))
@example(a_report(a_result(ratio=7.0, percentiles=())))
def test_what_is_drawn_stays_in_its_box(report: VerificationReport) -> None:
    page = HtmlPage(report_html(report))
    assert not {"script", "b"} & page.tags
    assert not any("href" in named for _, named in page.elements)
    drawn = [named for tag, named in page.elements if tag != "meta"]
    names = ("x", "x1", "x2", "cx", "width")
    numbers = [float(each[name] or "nan") for each in drawn for name in names if name in each]
    assert all(0 <= number <= 360 for number in numbers)
    bars = [float(each["width"] or "nan") for each in page.of("rect")]
    assert all(width <= 100 for width in bars)
