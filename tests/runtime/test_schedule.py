"""Jobs that are done every so often."""

import logging
import threading
from collections.abc import Iterator

import pytest

from disksla.runtime.schedule import Schedule

WITHIN_S = 10.0
OFTEN_S = 0.02


@pytest.fixture
def schedule() -> Iterator[Schedule]:
    schedule = Schedule()
    yield schedule
    schedule.stop()


def test_a_job_is_done_again_and_again_until_the_end(schedule: Schedule) -> None:
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


def test_jobs_are_done_one_after_another(schedule: Schedule) -> None:
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
    schedule: Schedule, caplog: pytest.LogCaptureFixture
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
    assert [record.getMessage() for record in caplog.records] == [
        "counting failed; this is a bug of disksla, please report it",
        "counting works again",
    ]
    assert caplog.records[0].exc_info is not None
