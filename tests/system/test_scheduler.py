"""Jobs that are done every so often."""

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.system.scheduler import JobTimes, OffsetTrigger, RepeatTrigger, Scheduler
from support.log_events import events

WITHIN_S = 10.0
OFTEN_S = 0.02


@pytest.fixture
def schedule() -> Iterator[Scheduler]:
    schedule = Scheduler()
    yield schedule
    schedule.stop()


def test_a_job_is_done_again_and_again_until_the_end(schedule: Scheduler) -> None:
    done = threading.Semaphore(0)
    schedule.every(OFTEN_S, done.release, "counting")
    schedule.start()
    for _ in range(3):
        assert done.acquire(timeout=WITHIN_S)
    schedule.stop()
    while done.acquire(blocking=False):
        pass
    assert not done.acquire(timeout=5 * OFTEN_S)
    schedule.stop()


def test_jobs_are_done_one_after_another(schedule: Scheduler) -> None:
    at_once = threading.Lock()
    done = threading.Semaphore(0)
    overlaps = []

    def job() -> None:
        if not at_once.acquire(blocking=False):
            overlaps.append(True)
            return
        done.release()
        at_once.release()

    schedule.every(OFTEN_S, job, "one")
    schedule.every(OFTEN_S, job, "other")
    schedule.start()
    for _ in range(6):
        assert done.acquire(timeout=WITHIN_S)
    assert overlaps == []


def test_a_job_that_fails_is_said_once_and_goes_on(
    schedule: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    tried = threading.Semaphore(0)
    works = threading.Event()

    def job() -> None:
        tried.release()
        if not works.is_set():
            raise RuntimeError("out of order")

    schedule.every(OFTEN_S, job, "counting")
    schedule.start()
    for _ in range(3):
        assert tried.acquire(timeout=WITHIN_S)
    works.set()
    for _ in range(3):
        assert tried.acquire(timeout=WITHIN_S)
    schedule.stop()
    assert events(caplog) == [
        ("error", "job failed by a bug of disksla, please report it", {"job": "counting"}),
        ("info", "job recovered", {"job": "counting"}),
    ]
    assert caplog.records[0].exc_info is not None


def test_a_long_job_does_not_hold_up_a_short_one(schedule: Scheduler) -> None:
    begun, may_end = threading.Event(), threading.Event()
    done = threading.Semaphore(0)

    def long() -> None:
        begun.set()
        may_end.wait(WITHIN_S)

    schedule.at(JobTimes(every_s=OFTEN_S), long, "long")
    schedule.every(OFTEN_S, done.release, "short")
    schedule.start()
    assert begun.wait(WITHIN_S)
    for _ in range(3):
        assert done.acquire(timeout=WITHIN_S)
    may_end.set()


def test_long_jobs_are_done_one_after_another_until_they_are_removed(schedule: Scheduler) -> None:
    done = threading.Semaphore(0)
    at_once = threading.Lock()
    overlaps = []

    def job() -> None:
        if not at_once.acquire(blocking=False):
            overlaps.append(True)
            return
        done.release()
        at_once.release()

    removes = [schedule.at(JobTimes(every_s=OFTEN_S), job, name) for name in ("one", "other")]
    schedule.start()
    for _ in range(6):
        assert done.acquire(timeout=WITHIN_S)
    for remove in removes:
        remove()
    after = threading.Semaphore(0)
    schedule.at(JobTimes(every_s=OFTEN_S), after.release, "after what was begun")
    assert after.acquire(timeout=WITHIN_S)
    while done.acquire(blocking=False):
        pass
    assert after.acquire(timeout=WITHIN_S)
    assert not done.acquire(blocking=False)
    assert overlaps == []


def test_a_job_of_every_so_often_is_never_due_in_the_past() -> None:
    again = RepeatTrigger(60.0)
    assert again.get_next_fire_time(None, NOW) == NOW + timedelta(seconds=60)
    before = NOW - timedelta(seconds=1)
    assert again.get_next_fire_time(before, NOW) == NOW + timedelta(seconds=59)
    assert again.get_next_fire_time(NOW - timedelta(hours=2), NOW) == NOW + timedelta(seconds=60)


NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(
    moments,
    st.integers(10, 3600),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 0.5),
)
def test_turns_stay_on_the_grid_whatever_chance_adds(
    now: datetime, every_s: int, offset_share: float, jitter_share: float
) -> None:
    offset_s, jitter_s = offset_share * every_s, jitter_share * every_s
    trigger = OffsetTrigger(JobTimes(float(every_s), offset_s=offset_s, jitter_s=jitter_s))
    previous: datetime | None = None
    for _ in range(5):
        due = trigger.get_next_fire_time(previous, now)
        assert due > now - timedelta(seconds=1e-3)
        late_s = (due.timestamp() - offset_s) % every_s
        assert late_s <= jitter_s + 1e-3 or late_s >= every_s - 1e-3
        if previous is not None:
            periods = (due - previous).total_seconds() / every_s
            assert 1 - jitter_share - 1e-3 <= periods <= 1 + jitter_share + 1e-3
        previous = now = due


def test_turns_by_crontab_are_shifted_too() -> None:
    trigger = OffsetTrigger(JobTimes(cron="30 4 * * mon-fri", offset_s=90.0))
    first = trigger.get_next_fire_time(None, NOW)  # a Friday
    assert first == datetime(2026, 11, 23, 4, 31, 30, tzinfo=UTC)
    assert trigger.get_next_fire_time(first, first) == datetime(
        2026, 11, 24, 4, 31, 30, tzinfo=UTC
    )


def test_a_day_that_never_comes_has_no_turn() -> None:
    assert OffsetTrigger(JobTimes(cron="0 0 30 feb *")).get_next_fire_time(None, NOW) is None


def test_missed_turns_are_left_behind() -> None:
    trigger = OffsetTrigger(JobTimes(every_s=600.0))
    late = NOW + timedelta(hours=5, seconds=1)
    assert trigger.get_next_fire_time(NOW, late) == NOW + timedelta(hours=5, minutes=10)
