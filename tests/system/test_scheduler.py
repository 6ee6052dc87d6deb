"""Periodic jobs."""

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.system.scheduler import JobTimes, OffsetTrigger, RepeatTrigger, Scheduler
from support.log_events import events

PATIENCE_S = 10.0
PERIOD_S = 0.02


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    scheduler = Scheduler()
    yield scheduler
    scheduler.stop()


def test_job_repeats_until_stop(scheduler: Scheduler) -> None:
    done = threading.Semaphore(0)
    scheduler.every(PERIOD_S, done.release, "counting")
    scheduler.start()
    for _ in range(3):
        assert done.acquire(timeout=PATIENCE_S)
    scheduler.stop()
    while done.acquire(blocking=False):
        pass
    assert not done.acquire(timeout=5 * PERIOD_S)
    scheduler.stop()


def test_short_jobs_do_not_overlap(scheduler: Scheduler) -> None:
    running = threading.Lock()
    done = threading.Semaphore(0)
    overlaps = []

    def job() -> None:
        if not running.acquire(blocking=False):
            overlaps.append(True)
            return
        done.release()
        running.release()

    scheduler.every(PERIOD_S, job, "one")
    scheduler.every(PERIOD_S, job, "other")
    scheduler.start()
    for _ in range(6):
        assert done.acquire(timeout=PATIENCE_S)
    assert overlaps == []


def test_failing_job_is_logged_once_and_repeated(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    attempts, successes = threading.Semaphore(0), threading.Semaphore(0)
    is_repaired = threading.Event()

    def job() -> None:
        attempts.release()
        if not is_repaired.is_set():
            raise RuntimeError("out of order")
        successes.release()

    scheduler.every(PERIOD_S, job, "counting")
    scheduler.start()
    for _ in range(3):
        assert attempts.acquire(timeout=PATIENCE_S)
    is_repaired.set()
    for _ in range(3):
        assert successes.acquire(timeout=PATIENCE_S)
    scheduler.stop()
    assert events(caplog) == [
        ("error", "job failed by a bug of disksla, please report it", {"job": "counting"}),
        ("info", "job recovered", {"job": "counting"}),
    ]
    assert caplog.records[0].exc_info is not None


def test_long_job_does_not_delay_a_short_one(scheduler: Scheduler) -> None:
    started, may_end = threading.Event(), threading.Event()
    done = threading.Semaphore(0)

    def long() -> None:
        started.set()
        may_end.wait(PATIENCE_S)

    scheduler.at(JobTimes(every_s=PERIOD_S), long, "long")
    scheduler.every(PERIOD_S, done.release, "short")
    scheduler.start()
    assert started.wait(PATIENCE_S)
    for _ in range(3):
        assert done.acquire(timeout=PATIENCE_S)
    may_end.set()


def test_long_jobs_do_not_overlap_and_can_be_removed(scheduler: Scheduler) -> None:
    done = threading.Semaphore(0)
    running = threading.Lock()
    overlaps = []

    def job() -> None:
        if not running.acquire(blocking=False):
            overlaps.append(True)
            return
        done.release()
        running.release()

    removes = [scheduler.at(JobTimes(every_s=PERIOD_S), job, name) for name in ("one", "other")]
    scheduler.start()
    for _ in range(6):
        assert done.acquire(timeout=PATIENCE_S)
    for remove in removes:
        remove()
    after = threading.Semaphore(0)
    scheduler.at(JobTimes(every_s=PERIOD_S), after.release, "after running jobs")
    assert after.acquire(timeout=PATIENCE_S)
    while done.acquire(blocking=False):
        pass
    assert after.acquire(timeout=PATIENCE_S)
    assert not done.acquire(blocking=False)
    assert overlaps == []


def test_repeat_trigger_is_never_due_in_the_past() -> None:
    trigger = RepeatTrigger(60.0)
    assert trigger.get_next_fire_time(None, NOW) == NOW + timedelta(seconds=60)
    before = NOW - timedelta(seconds=1)
    assert trigger.get_next_fire_time(before, NOW) == NOW + timedelta(seconds=59)
    assert trigger.get_next_fire_time(NOW - timedelta(hours=2), NOW) == NOW + timedelta(seconds=60)


NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(
    moments,
    st.integers(10, 3600),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 0.5),
)
def test_runs_stay_on_the_grid_despite_jitter(
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


def test_crontab_runs_are_shifted_by_the_offset() -> None:
    trigger = OffsetTrigger(JobTimes(cron="30 4 * * mon-fri", offset_s=90.0))
    first = trigger.get_next_fire_time(None, NOW)  # a Friday
    assert first == datetime(2026, 11, 23, 4, 31, 30, tzinfo=UTC)
    assert trigger.get_next_fire_time(first, first) == datetime(
        2026, 11, 24, 4, 31, 30, tzinfo=UTC
    )


def test_impossible_crontab_has_no_run() -> None:
    assert OffsetTrigger(JobTimes(cron="0 0 30 feb *")).get_next_fire_time(None, NOW) is None


def test_missed_runs_are_skipped() -> None:
    trigger = OffsetTrigger(JobTimes(every_s=600.0))
    now = NOW + timedelta(hours=5, seconds=1)
    assert trigger.get_next_fire_time(NOW, now) == NOW + timedelta(hours=5, minutes=10)
