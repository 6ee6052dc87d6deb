"""Jobs at times of the wall clock."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.system.scheduler import JobTimes, OffsetTrigger, Scheduler

PATIENCE_S = 10.0
PERIOD_S = 0.02


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    scheduler = Scheduler()
    yield scheduler
    scheduler.stop()


def test_jobs_do_not_overlap_and_can_be_removed(scheduler: Scheduler) -> None:
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
