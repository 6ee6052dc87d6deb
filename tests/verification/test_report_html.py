"""The HTML page of a verification report."""

import base64
import hashlib
import re
from html.parser import HTMLParser

from hypothesis import example, given

from disksla.verification.measurement import Percentile
from disksla.verification.preconditions import Violation
from disksla.verification.report import VerificationReport
from disksla.verification.report_html import report_html
from support.examples import scaled
from support.reports import RESULTS, a_report, a_result, reports

VOID = {"meta", "rect", "line", "circle"}

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "ul", "li", "dl",
    "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "div", "span", "svg", "rect", "line",
    "text", "circle",
}  # fmt: skip

HOSTILE = "<script>alert(1)</script>\"'&\udcff\x00"


class PageParser(HTMLParser):
    """Parses a page, and fails on elements that are not allowed or not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.cells: list[list[str]] = []
        self.numbers: list[float] = []
        self.classes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED
        names = {name for name, _ in attrs}
        assert not names & {"src", "href", "style"}
        assert not any(name.startswith("on") for name in names)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in {"th", "td"}:
            self.cells[-1].append("")
        for name, value in attrs:
            if name in {"x", "x1", "x2", "cx", "width"} and tag != "meta":
                self.numbers.append(float(value or "nan"))
            if name == "class" and tag == "rect":
                self.classes.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)
        if "th" in self.open or "td" in self.open:
            self.cells[-1][-1] += f"{data} "


def parse(report: VerificationReport) -> PageParser:
    parser = PageParser()
    page = report_html(report)
    page.encode()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser


def text_of(report: VerificationReport) -> str:
    return " ".join(" ".join(parse(report).text).split())


def test_results_are_rows_and_skipped_tests_listed() -> None:
    parser = parse(a_report(*RESULTS))
    rows = [[cell.strip() for cell in row[1:]] for row in parser.cells[1:]]
    assert rows == [
        ["1000 IOPS", "1002 IOPS", "100.2%", "", "pass"],
        ["750 IOPS", "700 IOPS", "70.0%", "", "fail"],
        ["125 MiB/s", "500 MiB/s", "400.0%", "", "pass"],
        ["3 ms", "2 ms", "150.0%", "", "shown"],
        ["-", "-", "-", "", "unmeasured"],
    ]
    assert parser.classes == ["track", "pass", "track", "fail", "track", "pass", "track", "shown"]
    text = text_of(a_report(*RESULTS))
    assert "Skipped: write-1m, write-4m (no file)." in text
    assert "Verdicts of 100 ms windows: throttled 98%, idle 2%" in text
    assert "Measured while bursting, then at the baseline" in text
    assert "mean 32 ms, 99.9% within" in text
    assert "2023-11-14 22:13:20 UTC, duration 5.01 min" in text


def test_bar_stays_in_its_box() -> None:
    assert max(parse(a_report(a_result(ratio=7.0, percentiles=()))).numbers) == 100


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
    assert len(parser.cells) == 1 + len(judged)
    assert all(0 <= number <= 360 for number in parser.numbers)


def test_content_security_policy_allows_only_the_style() -> None:
    page = report_html(a_report(*RESULTS))
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in page
    assert "url(" not in page
