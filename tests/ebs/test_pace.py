"""How often a page is read."""

from hypothesis import given
from hypothesis import strategies as st

from disksla.ebs.helper import LONGEST_S, NORMAL_S, NOT_AGAIN_S, WATCHED_S, Pace
from disksla.ebs.reading import Failure, Reading
from disksla.ebs.statistics import parse
from support.ebs_pages import Page

STATISTICS = parse(Page().written())
FAILURE = Failure("nvme1n1", "status")


def taking(seconds: float, at_s: float = 100.0) -> Reading:
    return Reading("nvme1n1", "vol1", at_s, STATISTICS, seconds / 2)


def test_once_a_second_or_at_every_tick_while_watched() -> None:
    pace = Pace().after(taking(0.0001))
    assert pace.period_s(100.0, is_watched=False) == NORMAL_S
    assert pace.period_s(100.0, is_watched=True) == WATCHED_S


def test_a_disk_that_answers_slowly_is_not_read_more_often_for_a_minute() -> None:
    pace = Pace().after(taking(0.5))
    assert pace.period_s(100.5, is_watched=True) == NORMAL_S
    pace = pace.after(taking(0.001, at_s=101.0))
    assert pace.period_s(101.0, is_watched=True) == NORMAL_S
    assert pace.period_s(100.0 + NOT_AGAIN_S, is_watched=True) == WATCHED_S


@given(st.integers(1, 2000), st.booleans())
def test_failures_in_a_row_are_further_and_further_apart(failures: int, is_watched: bool) -> None:
    pace = Pace()
    periods_s = []
    for _ in range(failures):
        pace = pace.after(FAILURE)
        periods_s.append(pace.period_s(0.0, is_watched=is_watched))
    assert periods_s == sorted(periods_s)
    assert periods_s[0] == NORMAL_S
    assert periods_s[-1] <= LONGEST_S
    assert failures < 7 or periods_s[-1] == LONGEST_S
    assert pace.after(taking(0.001)) == Pace()
