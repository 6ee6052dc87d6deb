"""Jobs that are repeated."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.operating_system.scheduler import JobTimes, Scheduler
from support.log_events import events
from support.waiting import eventually

PATIENCE_S = 10.0
PERIOD_S = 0.02
BUG = "job failed by a bug of disksla, please report it"


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    scheduler = Scheduler()
    yield scheduler
    scheduler.stop()


class Blocked:
    """A job that runs until `may_end`."""

    def __init__(self) -> None:
        self.started, self.may_end, self.ended = (threading.Event() for _ in range(3))

    def __call__(self) -> None:
        self.started.set()
        self.may_end.wait(PATIENCE_S)
        self.ended.set()


def test_short_job_repeats_until_stop(scheduler: Scheduler) -> None:
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


@pytest.mark.parametrize("are_long", [False, True])
def test_jobs_do_not_overlap(scheduler: Scheduler, are_long: bool) -> None:
    done = threading.Semaphore(0)
    running = threading.Lock()
    overlaps = []

    def job() -> None:
        if not running.acquire(blocking=False):
            overlaps.append(True)
            return
        done.release()
        running.release()

    for name in ("one", "other"):
        if are_long:
            scheduler.at(JobTimes(every_s=PERIOD_S), job, name)
        else:
            scheduler.every(PERIOD_S, job, name)
    scheduler.start()
    for _ in range(6):
        assert done.acquire(timeout=PATIENCE_S)
    assert overlaps == []


def test_long_job_can_be_removed(scheduler: Scheduler) -> None:
    done, after = threading.Semaphore(0), threading.Semaphore(0)
    remove = scheduler.at(JobTimes(every_s=PERIOD_S), done.release, "one")
    scheduler.start()
    assert done.acquire(timeout=PATIENCE_S)
    remove()
    scheduler.at(JobTimes(every_s=PERIOD_S), after.release, "after running jobs")
    assert after.acquire(timeout=PATIENCE_S)
    while done.acquire(blocking=False):
        pass
    assert after.acquire(timeout=PATIENCE_S)
    assert not done.acquire(blocking=False)


def test_short_jobs_do_not_wait_for_long_ones(scheduler: Scheduler) -> None:
    probe, done = Blocked(), threading.Semaphore(0)
    scheduler.at(JobTimes(every_s=PERIOD_S), probe, "probe")
    scheduler.every(PERIOD_S, done.release, "short")
    scheduler.start()
    assert probe.started.wait(PATIENCE_S)
    for _ in range(3):
        assert done.acquire(timeout=PATIENCE_S)
    assert not probe.ended.is_set()
    probe.may_end.set()


def test_job_that_was_due_many_times_runs_once(scheduler: Scheduler) -> None:
    """However late it is, as after a suspend."""
    before, meanwhile = Blocked(), threading.Semaphore(0)
    runs: list[bool] = []
    counts: list[int] = []
    scheduler.every(PERIOD_S, before, "before")
    scheduler.at(JobTimes(every_s=PERIOD_S), meanwhile.release, "meanwhile")
    scheduler.start()
    assert before.started.wait(PATIENCE_S)
    scheduler.every(PERIOD_S, lambda: runs.append(before.ended.is_set()), "late")
    for _ in range(10):
        assert meanwhile.acquire(timeout=PATIENCE_S)
    scheduler.every(PERIOD_S, lambda: counts.append(len(runs)), "next in the queue")
    for _ in range(10):
        assert meanwhile.acquire(timeout=PATIENCE_S)
    before.may_end.set()
    assert eventually(lambda: bool(counts), PATIENCE_S)
    assert counts[0] == 1
    assert runs[0]


def test_failing_job_is_counted_logged_once_and_repeated(
    scheduler: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    attempts, successes, others = (threading.Semaphore(0) for _ in range(3))
    is_repaired = threading.Event()

    def job() -> None:
        attempts.release()
        if not is_repaired.is_set():
            raise RuntimeError("out of order")
        successes.release()

    scheduler.every(PERIOD_S, job, "counting")
    scheduler.every(PERIOD_S, others.release, "other")
    assert scheduler.health() == ("jobs", 0, True, None)
    scheduler.start()
    for _ in range(3):
        assert attempts.acquire(timeout=PATIENCE_S)
        assert others.acquire(timeout=PATIENCE_S)
    health = scheduler.health()
    assert health.errors >= 2
    assert (health.works, health.problem) == (False, "counting: out of order")
    is_repaired.set()
    for _ in range(3):
        assert successes.acquire(timeout=PATIENCE_S)
    scheduler.stop()
    assert scheduler.health().errors >= health.errors
    assert scheduler.health()[2:] == (True, None)
    assert events(caplog) == [
        ("error", BUG, {"job": "counting"}),
        ("info", "job recovered", {"job": "counting"}),
    ]
    assert caplog.records[0].exc_info is not None


def test_failure_of_a_removed_job_still_counts_but_is_no_problem(scheduler: Scheduler) -> None:
    def job() -> None:
        raise RuntimeError("out of order")

    remove = scheduler.at(JobTimes(every_s=PERIOD_S), job, "probe")
    scheduler.start()
    assert eventually(lambda: scheduler.health().works is False, PATIENCE_S)
    remove()
    health = scheduler.health()
    assert health.errors >= 1
    assert (health.works, health.problem) == (True, None)


def test_last_job_follows_the_one_that_runs(scheduler: Scheduler) -> None:
    job, order = Blocked(), []
    scheduler.every(PERIOD_S, job, "slow")
    scheduler.start()
    assert job.started.wait(PATIENCE_S)
    threading.Timer(PERIOD_S, job.may_end.set).start()
    scheduler.stop(lambda: order.append(job.ended.is_set()))
    assert order == [True]


@pytest.mark.parametrize("is_long", [False, True])
def test_stop_does_not_wait_for_a_job_that_hangs(
    is_long: bool, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(stop_timeout_s=0.5)
    job, saved = Blocked(), threading.Event()
    if is_long:
        scheduler.at(JobTimes(every_s=PERIOD_S), job, "hanging")
    else:
        scheduler.every(PERIOD_S, job, "hanging")
    scheduler.start()
    assert job.started.wait(PATIENCE_S)
    scheduler.stop(saved.set)
    assert not job.ended.is_set()
    assert saved.is_set() == is_long
    assert events(caplog) == [("warning", "job did not end", {"job": "hanging"})]
    job.may_end.set()
    assert saved.wait(PATIENCE_S)


HANGING = """
import threading
from disksla.base.operating_system.scheduler import Scheduler
started = threading.Event()
def hang():
    started.set()
    threading.Event().wait()
scheduler = Scheduler(stop_timeout_s=0.1)
scheduler.every(0.02, hang, "hanging")
scheduler.start()
started.wait()
scheduler.stop()
"""


def test_process_ends_although_a_job_hangs() -> None:
    subprocess.run([sys.executable, "-c", HANGING], check=True, timeout=PATIENCE_S)


NOW_S = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC).timestamp()  # a Friday


@given(
    st.floats(1.5e9, 2.1e9),
    st.integers(10, 3600),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 0.5),
)
def test_runs_stay_on_the_grid_despite_jitter(
    now_s: float, every_s: int, offset_share: float, jitter_share: float
) -> None:
    offset_s, jitter_s = offset_share * every_s, jitter_share * every_s
    times = JobTimes(float(every_s), offset_s=offset_s, jitter_s=jitter_s)
    previous_s = None
    for _ in range(5):
        due_s = times.next_s(now_s)
        assert due_s is not None
        assert due_s > now_s - 1e-3
        late_s = (due_s - offset_s) % every_s
        assert late_s <= jitter_s + 1e-3 or late_s >= every_s - 1e-3
        if previous_s is not None:
            periods = (due_s - previous_s) / every_s
            assert 1 - jitter_share - 1e-3 <= periods <= 1 + jitter_share + 1e-3
        previous_s = now_s = due_s


def test_crontab_runs_are_shifted_by_the_offset() -> None:
    times = JobTimes(cron="30 4 * * mon-fri", offset_s=90.0)
    first_s = times.next_s(NOW_S)
    assert first_s == datetime(2026, 11, 23, 4, 31, 30, tzinfo=UTC).timestamp()
    assert times.next_s(first_s) == first_s + 86_400


def test_impossible_crontab_has_no_run() -> None:
    assert JobTimes(cron="0 0 30 feb *").next_s(NOW_S) is None
