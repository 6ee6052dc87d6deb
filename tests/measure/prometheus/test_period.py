"""The period of a report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.measure.prometheus.period import Period, parse_period

NOW_S = 1_800_000_000.0
OCTOBER_S = 1_790_812_800


def test_dates_are_midnight_in_utc() -> None:
    period = parse_period("2026-10-01", "2026-11-01", NOW_S)
    assert period == Period(OCTOBER_S, OCTOBER_S + 31 * 86_400)
    assert period.zone == "UTC"
    assert list(period.slices())[::30] == ["2026-10-01", "2026-10-31"]


def test_times_are_written_in_the_zone_of_the_start() -> None:
    period = parse_period("2026-10-01T00:00:00+03:00", "2026-10-01T12:30:00Z", NOW_S)
    assert period.seconds == 15.5 * 3600
    assert period.zone == "UTC+03:00"
    assert period.text(period.start_timestamp_s) == "2026-10-01 00:00:00"
    assert period.text(period.end_timestamp_s) == "2026-10-01 15:30:00"
    assert list(period.slices().items())[-2:] == [
        ("2026-10-01 14:00", 3600),
        ("2026-10-01 15:00", 1800),
    ]


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("yesterday", "2026-11-01", "found --from 'yesterday'; expected a date such as"),
        ("2026-10-01", "2026-13-01", "found --to '2026-13-01'; expected a date such as"),
        (
            "2026-10-01T00:00:00",
            "2026-11-01",
            "expected a date such as 2026-10-01, or a time with",
        ),
        ("2026-10-01", "2026-11-01T00:00:00.5Z", "found --to '2026-11-01T00:00:00.5Z'"),
        ("2026-10-01", "2026-10-01", "expected a moment after --from 2026-10-01"),
        ("2026-10-01", "2027-10-01", "in the future; expected the end of a period that is over"),
    ],
)
def test_invalid_period(start: str, end: str, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        parse_period(start, end, NOW_S)


periods = st.builds(
    lambda start_s, seconds, offset_s: Period(start_s, start_s + seconds, offset_s),
    st.integers(10**9, 2 * 10**9),
    st.integers(1, 40 * 86_400),
    st.sampled_from((0, 10_800, -12_600, 45_900)),
)


@given(periods, st.floats(0.001, 1))
def test_slices_make_up_the_period_and_have_all_its_moments(period: Period, share: float) -> None:
    slices = period.slices()
    assert sum(slices.values()) == period.seconds
    assert len(slices) <= 73 or period.seconds > 72 * 3600
    assert all(0 < seconds <= 86_400 for seconds in slices.values())
    moment_s = period.start_timestamp_s + max(0.01, share * period.seconds)
    assert period.slice_of(moment_s) in slices


@given(periods, st.floats(allow_nan=False))
def test_any_moment_can_be_written(period: Period, timestamp_s: float) -> None:
    assert len(period.text(timestamp_s)) == len("2026-10-01 00:00:00")
