"""Wording of reports."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from disksla.measure.prometheus.period import Period
from disksla.measure.prometheus.step import Facts
from disksla.measure.report.compliance_wording import (
    period_text,
    promise_sources,
    rates_text,
    seconds_text,
    share_text,
    slow_text,
    throttled_text,
)
from disksla.measure.report.document import Part, Report
from disksla.measure.report.step_totals import total_of, totals_of
from disksla.promise.catalogue.limits import Rates
from support.report_series import START_S

NOTHING = totals_of([], 60.0)
HOUR_S = 3600
PERIOD = Period(0, 60)


def test_period_has_times_unless_both_ends_are_midnight() -> None:
    def text(start_s: int, end_s: int, offset_s: int = 0) -> str:
        return period_text(Report(1, "0.0.0", start_s, end_s, offset_s, (), None, NOTHING, ()))

    assert text(START_S, START_S + 24 * HOUR_S) == "2026-10-01 to 2026-10-02 UTC"
    assert text(START_S, START_S + HOUR_S) == "2026-10-01 00:00:00 to 2026-10-01 01:00:00 UTC"
    assert text(START_S - 3 * HOUR_S, START_S + 21 * HOUR_S, 3 * HOUR_S) == (
        "2026-10-01 to 2026-10-02 UTC+03:00"
    )


def test_rates_of_reads_and_writes_are_one_where_they_are_equal() -> None:
    assert rates_text(Rates(1000, 1000, 2**20, None), 0.003) == (
        "1000 IOPS, 1 MiB/s for reads, latency 3 ms"
    )
    assert rates_text(Rates()) == "nothing"


def test_sources_name_what_is_not_certain() -> None:
    part = Part(0, 1, Facts(terms="x.y"), NOTHING, title="Y", confidence="medium")
    assert list(promise_sources(part, PERIOD)) == [
        "confidence in the row of the catalogue: medium"
    ]
    new = Part(0, 1, Facts(terms="x.new", terms_source="api"), NOTHING)
    assert list(promise_sources(new, PERIOD)) == [
        "who says what the disk is: the API of the provider",
        "not a type of the catalogue of this version",
    ]


def test_iowait_is_left_out_where_it_is_not_counted() -> None:
    throttled = replace(
        NOTHING,
        throttled_seconds={"unknown": 5.0, "iops": 0.0},
        slow_seconds={"usual": 90.0, "promise": 0.0},
    )
    assert total_of([NOTHING, NOTHING]).throttled_iowait_s is None
    assert throttled_text(throttled) == "at an unknown limit (not tested) 5 s"
    assert slow_text(throttled) == "far above the usual latency 1 min 30 s"
    assert (throttled_text(NOTHING), slow_text(NOTHING)) == ("not throttled", "")


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1e7))
def test_only_all_of_the_time_is_a_hundred_percent(ratio: float, seconds: float) -> None:
    assert share_text(1.0) == "100 %"
    assert ratio > 1 - 1e-10 or share_text(ratio) != "100 %"
    assert seconds_text(seconds).endswith((" s", " min"))
