"""All jobs that are repeated.

Short jobs run one after another in one thread, long ones (probes) in another. The sampling loop is
not one of them, because a job that is late must not delay a tick. The threads are not those of a
pool of Python or APScheduler: a job that hangs in one of these does not let the process end.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from apscheduler.triggers.cron import CronTrigger

from disksla.base.operating_system.health import SourceHealth
from disksla.base.operating_system.log import fields

STOP_TIMEOUT_S = 10.0  # longer than a probe takes to end fio and to remove its file
_INSTANT = timedelta(microseconds=1)

log = logging.getLogger("disksla.scheduler")


class JobTimes(NamedTuple):
    """When a job runs: at every whole multiple of a period since 1970, or by a crontab line."""

    every_s: float = 0.0
    cron: str | None = None  # a crontab line in UTC, instead of a period
    offset_s: float = 0.0  # constant delay of all runs
    jitter_s: float = 0.0  # maximum random delay of each run

    def next_s(self, now_s: float) -> float | None:
        """Return the first run after a time, both in seconds since 1970; None if there is none.

        Jitter does not add up: each run is computed from the same grid.
        """
        since_s = now_s - self.offset_s
        if self.cron is None:
            due_s = (since_s // self.every_s + 1) * self.every_s
        else:
            trigger = CronTrigger.from_crontab(self.cron, timezone=UTC)
            since = datetime.fromtimestamp(since_s, UTC) + _INSTANT
            due = trigger.get_next_fire_time(None, since)
            if due is None:
                return None
            due_s = due.timestamp()
        delay_s = random.uniform(0.0, self.jitter_s)  # noqa: S311 -- not for cryptography
        return due_s + self.offset_s + delay_s


class Scheduler:
    """Runs short jobs in one thread and long jobs in another, from `start` until `stop`."""

    def __init__(self, stop_timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Start without jobs."""
        self._stop_timeout_s = stop_timeout_s
        self._short, self._long = _JobThread("jobs"), _JobThread("probes")
        self._is_running = False

    def every(self, seconds: float, job: Callable[[], object], name: str) -> None:
        """Run a short job `seconds` from now, and then again and again with this period."""
        self._short.add(_Job(JobTimes(seconds, offset_s=time.time() % seconds), job, name))

    def at(self, times: JobTimes, job: Callable[[], object], name: str) -> Callable[[], None]:
        """Run a long job at these times; return a function that removes the job."""
        added = _Job(times, job, name)
        self._long.add(added)
        return lambda: self._long.remove(added)

    def start(self) -> None:
        """Start the threads; jobs may be added before and after."""
        self._is_running = True
        self._short.start()
        self._long.start()

    def clock_was_set(self) -> None:
        """Compute the next run of each job again, because the wall clock was set.

        After the clock was set back by two hours, all jobs would be two hours late.
        """
        self._short.plan_again()
        self._long.plan_again()

    def health(self) -> SourceHealth:
        """Return how many runs raised an exception, and the jobs whose last run did."""
        jobs = [*self._short.jobs, *self._long.jobs]
        problems = [job.problem for job in jobs if job.problem is not None]
        errors = self._short.errors + self._long.errors
        return SourceHealth("jobs", errors, not problems, "; ".join(problems) or None)

    def stop(self, last: Callable[[], object] = lambda: None) -> None:
        """Start no other job, and run `last` after the short job that runs.

        Wait for it, and for the long job that runs, but not longer than the timeout: a disk that
        is stalled may block them. Neither runs on when the process ends.
        """
        if self._is_running:
            self._is_running = False
            until_s = time.monotonic() + self._stop_timeout_s
            self._short.end(last)
            self._long.end()
            self._short.wait(until_s)
            self._long.wait(until_s)


class _Job:
    """A job, and when it runs next."""

    def __init__(self, times: JobTimes, call: Callable[[], object], name: str) -> None:
        self.times, self.call, self.name = times, call, name
        self.problem: str | None = None  # what the last run raised
        self.plan()

    def plan(self) -> None:
        self.due_s = self.times.next_s(time.time())


class _JobThread(threading.Thread):
    """Runs jobs one after another. However often a job was due meanwhile, it runs once.

    A job that raises an exception is counted, logged when the text changes, and runs again when it
    is due.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.jobs: tuple[_Job, ...] = ()
        self.errors = 0  # how many runs raised an exception
        self._changed = threading.Condition()
        """Locked while jobs are added, removed and planned, not while one runs."""
        self._last: Callable[[], object] | None = None  # called at the end, if there is one
        self._running = ""

    def add(self, job: _Job) -> None:
        with self._changed:
            self.jobs = (*self.jobs, job)
            self._changed.notify()

    def remove(self, job: _Job) -> None:
        with self._changed:
            self.jobs = tuple(each for each in self.jobs if each is not job)

    def plan_again(self) -> None:
        with self._changed:
            for job in self.jobs:
                job.plan()
            self._changed.notify()

    def end(self, last: Callable[[], object] = lambda: None) -> None:
        """End the thread after the job that runs, and `last`."""
        with self._changed:
            self._last = last
            self._changed.notify()

    def wait(self, until_s: float) -> None:
        """Wait for the end of the thread, until this monotonic time."""
        self.join(max(0.0, until_s - time.monotonic()))
        if self.is_alive():
            log.warning("job did not end", extra=fields(job=self._running))

    def run(self) -> None:
        while (job := self._due()) is not None:
            self._running = job.name
            self._call(job)
            with self._changed:
                job.plan()
        self._running = "the last job"
        if self._last is not None:
            self._last()

    def _due(self) -> _Job | None:
        """Wait until a job is due, and return it; None at the end."""
        with self._changed:
            while self._last is None:
                due = [(job.due_s, job) for job in self.jobs if job.due_s is not None]
                due_s, job = min(due, key=lambda each: each[0], default=(None, None))
                wait_s = None if due_s is None else due_s - time.time()
                if wait_s is not None and wait_s <= 0:
                    return job
                self._changed.wait(wait_s)
        return None

    def _call(self, job: _Job) -> None:
        try:
            job.call()
        except Exception as error:  # any exception: the next run may succeed
            self.errors += 1
            problem = f"{job.name}: {error}"
            if job.problem != problem:
                job.problem = problem
                log.exception(
                    "job failed by a bug of disksla, please report it", extra=fields(job=job.name)
                )
            return
        if job.problem is not None:
            job.problem = None
            log.info("job recovered", extra=fields(job=job.name))
