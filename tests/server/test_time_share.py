"""How much of the time a worker works in the mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.server.time_share import UNLIMITED, TimeShare


def test_a_worker_that_rested_may_use_ten_seconds_of_its_share_at_once() -> None:
    share = TimeShare(0.25).after(begun_s=100.0, used_s=2.5)
    assert share.rest_s(102.5) == 0.0
    share = share.after(begun_s=102.5, used_s=0.9)
    assert share.rest_s(103.4) == pytest.approx(0.2)
    assert share.rest_s(103.6) == 0.0


def test_a_worker_never_rests_for_long() -> None:
    share = TimeShare(0.25).after(begun_s=100.0, used_s=60.0)
    assert share.rest_s(160.0) == 1.0
    assert share.rest_s(160.5) == pytest.approx(0.5)


def test_a_worker_without_a_limit_never_rests() -> None:
    assert UNLIMITED.after(100.0, 1e9).rest_s(100.0) == 0.0


@given(st.floats(0.25, 1.0), st.lists(st.floats(0.0, 0.3), min_size=1, max_size=100))
def test_the_mean_is_at_most_the_share(part: float, work_s: list[float]) -> None:
    """Of work that is so short that no rest would be longer than a second."""
    share, now_s = TimeShare(part), 0.0
    for used_s in work_s:
        now_s += share.rest_s(now_s)
        share = share.after(now_s, used_s)
        now_s += used_s
    assert sum(work_s) <= part * (now_s + share.rest_s(now_s) + 10.0) + 1e-6
