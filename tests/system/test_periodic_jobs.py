"""Short jobs that are repeated."""

import logging
import threading
from collections.abc import Iterator

import pytest

from disksla.system.periodic_jobs import PeriodicJobs
from support.log_events import events

PATIENCE_S = 10.0
PERIOD_S = 0.02


@pytest.fixture
def jobs() -> Iterator[PeriodicJobs]:
    jobs = PeriodicJobs()
    yield jobs
    jobs.stop()


def test_job_repeats_until_stop(jobs: PeriodicJobs) -> None:
    done = threading.Semaphore(0)
    jobs.every(PERIOD_S, done.release, "counting")
    jobs.start()
    for _ in range(3):
        assert done.acquire(timeout=PATIENCE_S)
    jobs.stop()
    while done.acquire(blocking=False):
        pass
    assert not done.acquire(timeout=5 * PERIOD_S)
    jobs.stop()


def test_jobs_do_not_overlap(jobs: PeriodicJobs) -> None:
    running = threading.Lock()
    done = threading.Semaphore(0)
    overlaps = []

    def job() -> None:
        if not running.acquire(blocking=False):
            overlaps.append(True)
            return
        done.release()
        running.release()

    jobs.every(PERIOD_S, job, "one")
    jobs.every(PERIOD_S, job, "other")
    jobs.start()
    for _ in range(6):
        assert done.acquire(timeout=PATIENCE_S)
    assert overlaps == []


def test_failing_job_is_logged_once_and_repeated(
    jobs: PeriodicJobs, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    attempts, successes = threading.Semaphore(0), threading.Semaphore(0)
    is_repaired = threading.Event()

    def job() -> None:
        attempts.release()
        if not is_repaired.is_set():
            raise RuntimeError("out of order")
        successes.release()

    jobs.every(PERIOD_S, job, "counting")
    jobs.start()
    for _ in range(3):
        assert attempts.acquire(timeout=PATIENCE_S)
    is_repaired.set()
    for _ in range(3):
        assert successes.acquire(timeout=PATIENCE_S)
    jobs.stop()
    assert events(caplog) == [
        ("error", "job failed by a bug of disksla, please report it", {"job": "counting"}),
        ("info", "job recovered", {"job": "counting"}),
    ]
    assert caplog.records[0].exc_info is not None


def test_job_may_be_added_while_another_is_waited_for(jobs: PeriodicJobs) -> None:
    done = threading.Semaphore(0)
    jobs.every(3600.0, done.release, "hourly")
    jobs.start()
    jobs.every(PERIOD_S, done.release, "frequent")
    for _ in range(3):
        assert done.acquire(timeout=PATIENCE_S)


def test_job_may_be_added_where_there_are_none(jobs: PeriodicJobs) -> None:
    done = threading.Semaphore(0)
    jobs.start()
    jobs.every(PERIOD_S, done.release, "frequent")
    assert done.acquire(timeout=PATIENCE_S)


def test_stop_waits_for_the_job_that_runs(jobs: PeriodicJobs) -> None:
    started, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def job() -> None:
        started.set()
        may_end.wait(PATIENCE_S)
        ended.set()

    jobs.every(PERIOD_S, job, "slow")
    jobs.start()
    assert started.wait(PATIENCE_S)
    threading.Timer(PERIOD_S, may_end.set).start()
    jobs.stop()
    assert ended.is_set()
