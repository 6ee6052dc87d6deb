"""The report of disks, from series of a made-up server to records, text, page and CSV."""

import csv
import io
import re
from collections.abc import Callable
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from disksla.measure.prometheus import Selection
from disksla.measure.prometheus.period import Period
from disksla.measure.prometheus.query import Series
from disksla.measure.prometheus.step import FACTS, CounterName
from disksla.measure.report import Report, report_csv, report_html, report_of, report_page
from disksla.measure.report.document import ConsumerEvidence, DiskReport
from disksla.measure.report.evidence import EVIDENCE, OF_DAEMON, VERIFICATION
from disksla.tell.page import html_of
from disksla.tell.printed_page import text_of
from support.example_report import DAY, a_day, extra, reported
from support.report_series import INFO, START_S, TARGET, DiskSeries

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = Path(__file__).parent / "golden"
OTHER = INFO | {"device": "vdc", "serial": "vol-2", "provider": "aws", "terms": "aws.gp3"}


def text_of_report(report: Report) -> str:
    return text_of(report_page(report))


@pytest.fixture(scope="module")
def report() -> Report:
    quiet = DiskSeries(OTHER)
    quiet.scrape()
    quiet.does(1439, met=1.0)
    return reported([*a_day().series, *extra(), *quiet.series])


A_DAY = a_day().series


@cache
def the_day() -> Report:
    return reported(A_DAY)


def of(report: Report, device: str = "vdb") -> DiskReport:
    [disk] = [each for each in report.disks if each.labels["device"] == device]
    return disk


def test_what_the_text_does_not_show(report: Report) -> None:
    """The rest is in golden/report.txt."""
    disk = of(report)
    assert disk.totals.proven_s == 30 * 55 + 30 + 20 * 30
    assert (disk.totals.throttled_iowait_s, disk.totals.throttle_wait_s) == (240, 24_000)
    first, second = disk.incidents
    assert (first.part, first.verification_timestamp_s) == (1, START_S - 3600)
    assert (second.part, second.promised.read_iops, second.given.latency_s) == (2, 2000, None)
    before, after = disk.parts
    assert before.end_timestamp_s == after.start_timestamp_s
    assert before.totals.noncompliant_s + after.totals.noncompliant_s == 1530
    assert disk.uptime is not None
    assert disk.uptime.uptime_ratio is None
    for share, is_compliant in ((0.3, True), (0.5, False)):
        assert of(reported(A_DAY, objective_share=share)).is_compliant is is_compliant


def test_hours_and_disks_add_up(report: Report) -> None:
    for disk in report.disks:
        proven_s = sum(each.totals.proven_s for each in disk.slices)
        assert proven_s == pytest.approx(disk.totals.proven_s)
        assert sum(each.incidents for each in disk.slices) == len(disk.incidents)
        assert len(disk.slices) == 24
    assert report.totals.proven_s == sum(disk.totals.proven_s for disk in report.disks)
    assert report.is_compliant is False


def test_a_disk_that_was_not_tested() -> None:
    disk = DiskSeries(INFO | {"terms": "unknown", "provider": "unknown", "terms_source": "none"})
    disk.scrape()
    disk.does(60)
    found = reported(disk.series)
    assert found.is_compliant is None
    assert of(found).totals.compliance_ratio is None
    assert "nothing says what the disk was sold as" in text_of_report(found)


def test_time_at_an_unknown_limit_is_not_tested() -> None:
    disk = DiskSeries()
    disk.scrape()
    for _ in range(60):
        disk.counts(CounterName.THROTTLED_SECONDS, 60.0, "unknown")
        disk.does(throttled=60.0)
    found = reported(disk.series)
    assert (found.is_compliant, found.totals.proven_s) == (None, 0.0)
    assert "NOT TESTED: 1 disk, 0 tested" in text_of_report(found)
    disk.counts(CounterName.THROTTLED_SECONDS, 30.0, "unknown")
    disk.counts(CounterName.THROTTLED_SECONDS, 20.0, "iops")
    disk.does(below=10.0, throttled=50.0)
    assert of(reported(disk.series)).totals.compliance_ratio == pytest.approx(2 / 3)


def test_another_disk_of_the_same_name_is_another_disk() -> None:
    before, after = DiskSeries(), DiskSeries(INFO | {"serial": "vol-9"})
    before.scrape()
    before.does(60, met=1.0)
    after.now_s = before.now_s
    after.does(60, below=1.0)
    # one series of each name and labels, as one daemon has them
    series = {tuple(sorted(each.metric.items())): each for each in before.series}
    for each in after.series:
        key = tuple(sorted(each.metric.items()))
        values = [*series[key].values, *each.values] if key in series else each.values
        series[key] = Series(each.metric, values)
    found = reported(list(series.values()))
    assert [(disk.serial, disk.is_compliant) for disk in found.disks] == [
        ("vol-9", False),
        ("vol-1", True),
    ]
    selected = reported(list(series.values()), selection=Selection("", ("vol-9",)))
    assert [disk.serial for disk in selected.disks] == ["vol-9"]


@pytest.mark.parametrize(
    "cuts", [cuts for number in range(4) for cuts in combinations((3600, 7200, 40_000), number)]
)
def test_periods_add_up(cuts: tuple[int, ...]) -> None:
    """What is counted in a period is what is counted in its parts."""
    series = A_DAY
    ends = [0, *cuts, 86_400]
    parts = [
        of(reported(series, Period(START_S + start_s, START_S + end_s))).totals
        for start_s, end_s in pairwise(ends)
    ]
    whole = of(the_day()).totals
    assert sum(part.proven_s for part in parts) == pytest.approx(whole.proven_s)
    assert sum(part.assessed_s for part in parts) == pytest.approx(whole.assessed_s)


def test_text_is_as_expected(report: Report, golden: Callable[[Path, str], None]) -> None:
    slow = replace(of(report).totals, slow_seconds={"usual": 90.0})
    used = (ConsumerEvidence("kernel", None, 1.0),)
    disks = [replace(of(report), totals=slow, consumers=used), of(report, "vdc")]
    found = report_of(disks, DAY, ['{team="orders"}', "db-*:vd?"], "0.0.0")
    shown = text_of_report(found)
    assert [line for line in shown.splitlines() if len(line) > 80 and "https" not in line] == []
    golden(GOLDEN / "report.txt", shown)
    golden(GOLDEN / "report.html", html_of(report_page(found)) + "\n")


def test_document_shows_a_report() -> None:
    document = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    found = reported([*a_day().series, *extra()], selection=Selection("", ("db-1:vdb",)))
    assert f"```console\n{text_of_report(found)}```\n" in document


def many(report: Report, number: int) -> Report:
    """Return a report of so many disks, each with many incidents, throttled times and gaps."""
    disk = of(report)
    full = replace(
        disk,
        incidents=disk.incidents * 60,
        throttled_spans=disk.throttled_spans * 30,
        gaps=disk.gaps * 4,
    )
    disks = [
        replace(full, labels=full.labels | {"device": f"vd{index}"}) for index in range(number)
    ]
    return report_of([*disks, of(report, "vdc")], DAY, [], "0.0.0")


def test_the_longest_are_shown_and_the_rest_is_counted(report: Report) -> None:
    text, page = text_of_report(many(report, 25)), report_html(many(report, 25))
    assert "And 110 shorter ones," in text
    assert "And 3 shorter ones" in text
    assert "And 20 shorter ones" in page
    assert "And 10 shorter ones" in page
    assert "vdc, aws.gp3" not in text
    assert page.count("<section>") == 25


def test_page_of_a_disk_of_which_little_is_known() -> None:
    disk = DiskSeries(INFO | {"serial": "", "provider": "sbercloud", "terms": ""})
    disk.scrape()
    nothing = of(reported(disk.series))
    assert (nothing.parts, [gap.reason for gap in nothing.gaps]) == ((), ["no samples"])
    assert "Promise" not in text_of_report(reported(disk.series))
    disk.does(below=60.0)
    found = of(reported(disk.series))
    known = report_of([found], DAY, [], "0.0.0")
    page = report_html(known)
    assert "No service level agreement of this provider about disks is known." in page
    assert "no probes" in page
    assert "vdb, unknown type, 30 GiB: NOT" in text_of_report(known)
    assert "serial" not in text_of_report(known)


@pytest.mark.parametrize("text", ["<b>&\"'", "\udcff"])
def test_names_are_escaped(report: Report, text: str) -> None:
    disk = of(report)
    strange = replace(disk, labels=disk.labels | {"team": text}, mount_points=(text,))
    page = report_html(report_of([strange], DAY, [text], "0.0.0"))
    assert text not in page
    page.encode()


def test_terms_that_are_no_type_have_words(report: Report) -> None:
    disk = of(report)
    last = replace(disk.parts[-1], facts=replace(disk.facts, terms="custom"))
    changed = replace(disk, parts=(*disk.parts[:-1], last))
    text = text_of_report(replace(report, disks=(changed,)))
    assert "vdb, terms written out, 30 GiB: NOT" in text


def test_same_series_make_the_same_bytes(report: Report) -> None:
    quiet = DiskSeries(OTHER)
    quiet.scrape()
    quiet.does(1439, met=1.0)
    again = reported([*quiet.series, *reversed(extra()), *reversed(a_day().series)])
    assert report_html(again) == report_html(report)
    assert report_csv(again) == report_csv(report)
    assert again == report


_NAMES = st.sampled_from((*CounterName, *FACTS, *EVIDENCE, *VERIFICATION, *OF_DAEMON))
_VALUES = st.one_of(st.floats(), st.floats(-10, 1e4), st.integers(0, 3).map(float)).map(repr)
_SERIES = st.builds(
    lambda name, label, value, samples: Series(
        TARGET | {"__name__": name, label: value},
        sorted((START_S + 60.0 * at, text) for at, text in samples.items()),
    ),
    _NAMES,
    st.sampled_from(("verdict", "limit", "resource", "test", "reason", "source", "terms")),
    st.sampled_from(("met", "below", "machine_iops", "unknown", "api", "aws.gp3", "", "\x1b<")),
    st.dictionaries(st.integers(0, 30), _VALUES, max_size=12),
)


@given(st.lists(_SERIES, max_size=12))
def test_any_series_make_a_report(series: list[Series]) -> None:
    disk = DiskSeries()
    disk.scrape()
    disk.does(10)
    found = reported([*disk.series, *series])
    assert len(text_of_report(found)) > 100
    assert len(report_html(found)) > 100
    assert report_csv(found).count("\n") > 24
    for each in found.disks:
        assert each.totals.noncompliant_s <= each.totals.proven_s


def test_csv_has_a_row_for_each_disk_and_hour(report: Report) -> None:
    strange = replace(of(report), serial='=1,"2"')
    two = report_of([strange, of(report, "vdc")], DAY, [], "0.0.0")
    rows = list(csv.DictReader(io.StringIO(report_csv(two), newline="")))
    assert [(row["device"], row["start"]) for row in rows[::12]] == [
        ("vdb", "2026-10-01 00:00"),
        ("vdb", "2026-10-01 12:00"),
        ("vdc", "2026-10-01 00:00"),
        ("vdc", "2026-10-01 12:00"),
    ]
    assert rows[0]["serial"] == '\'=1,"2"', "no formula for a spreadsheet"
    assert sum(float(row["noncompliant_s"]) for row in rows) == 1530
    assert sum(float(row["throttled_machine_iops_s"]) for row in rows) == 200
    assert rows[-1]["throttled_iowait_s"] == "", "absent, not zero"
    assert not re.search(r"[^\r]\n", report_csv(two))
