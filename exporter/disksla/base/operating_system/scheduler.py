"""All jobs that are repeated, in one APScheduler.

Short jobs run one after another in one thread, long ones (probes) in another. The sampling loop is
not one of them, because a job that is late must not delay a tick.
"""

import logging
import queue
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from apscheduler.executors.base import BaseExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from disksla.base.operating_system.health import SourceHealth
from disksla.base.operating_system.log import fields

STOP_TIMEOUT_S = 10.0
"""Longer than a probe takes to end fio and to remove its file."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = timedelta(microseconds=1)

log = logging.getLogger("disksla.scheduler")


class JobTimes(NamedTuple):
    """When a job runs: at every whole multiple of a period since 1970, or by a crontab line."""

    every_s: float = 0.0
    cron: str | None = None
    """A crontab line in UTC, instead of a period."""
    offset_s: float = 0.0
    """Constant delay of all runs."""
    jitter_s: float = 0.0
    """Maximum random delay of each run."""


class Scheduler:
    """Runs short jobs in one thread and long jobs in another, from `start` until `stop`."""

    def __init__(self, stop_timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Start without jobs."""
        self._stop_timeout_s = stop_timeout_s
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # jobs are logged here
        self._short, self._long = _JobThread("jobs"), _JobThread("probes")
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"short": self._short, "long": self._long},
            # A job that still runs, or waits for another, when it is due is not run once more.
            job_defaults={"max_instances": 1},
        )

    def every(self, seconds: float, job: Callable[[], object], name: str) -> None:
        """Run a short job `seconds` from now, and then again and again with this period."""
        times = JobTimes(seconds, offset_s=time.time() % seconds)
        self._scheduler.add_job(job, OffsetTrigger(times), name=name, executor="short")

    def at(self, times: JobTimes, job: Callable[[], object], name: str) -> Callable[[], None]:
        """Run a long job at these times; return a function that removes the job."""
        added = self._scheduler.add_job(job, OffsetTrigger(times), name=name, executor="long")

        def remove() -> None:
            with suppress(JobLookupError):  # stopped in the meantime
                added.remove()

        return remove

    def start(self) -> None:
        """Start the threads; jobs may be added before and after."""
        self._scheduler.start()

    def clock_was_set(self) -> None:
        """Compute the next run of each job again, because the wall clock was set.

        APScheduler keeps the next run in wall time: after the clock was set back by two hours, all
        jobs would be two hours late.
        """
        for job in self._scheduler.get_jobs():
            with suppress(JobLookupError):  # removed in the meantime
                job.reschedule(job.trigger)

    def health(self) -> SourceHealth:
        """Return how many runs raised an exception, and the jobs whose last run did."""
        threads = self._short, self._long
        failures = [each for thread in threads for each in list(thread.failures.items())]
        problems = [text for job_id, text in failures if self._scheduler.get_job(job_id)]
        errors = sum(thread.errors for thread in threads)
        return SourceHealth("jobs", errors, not problems, "; ".join(problems) or None)

    def stop(self, last: Callable[[], object] = lambda: None) -> None:
        """Start no other job, and run `last` after the short job that runs.

        Wait for it, and for the long job that runs, but not longer than the timeout: a disk that
        is stalled may block them. Neither runs on when the process ends.
        """
        if self._scheduler.running:
            self._short.last = last
            self._scheduler.shutdown()
            until_s = time.monotonic() + self._stop_timeout_s
            self._short.wait(until_s)
            self._long.wait(until_s)


class _JobThread(BaseExecutor):  # type: ignore[misc]  # APScheduler has no types
    """Runs jobs one after another in a thread. APScheduler's own do not let the process end.

    A job that raises an exception is counted, logged when the text changes, and runs again when it
    is due.
    """

    def __init__(self, name: str) -> None:
        """Name the thread."""
        super().__init__()
        self.errors = 0
        """How many runs raised an exception."""
        self.failures: dict[str, str] = {}
        """What the last run of a job raised, by APScheduler's id."""
        self.last: Callable[[], object] = lambda: None
        """Called at the end."""
        self._due: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._is_ending = False
        self._running = ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self, scheduler: Any, alias: str) -> None:
        """Start the thread."""
        super().start(scheduler, alias)
        self._thread.start()

    def shutdown(self, wait: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002 -- APScheduler's
        """End the thread after the job that runs; `wait` waits for it."""
        self._is_ending = True
        self._due.put(None)

    def wait(self, until_s: float) -> None:
        """Wait for the end of the thread, until this monotonic time."""
        self._thread.join(max(0.0, until_s - time.monotonic()))
        if self._thread.is_alive():
            log.warning("job did not end", extra=fields(job=self._running))

    def _do_submit_job(self, job: Any, _run_times: list[datetime]) -> None:
        """Run a job once, however late it is and however many runs were missed.

        That is what APScheduler's own executors do with `coalesce` and without
        `misfire_grace_time`.
        """
        self._due.put(job)

    def _run(self) -> None:
        while (job := self._due.get()) is not None and not self._is_ending:
            self._running = job.name
            self._call(job)
            self._run_job_success(job.id, [])  # from now on it may be submitted again
        self._running = "the last job"
        self.last()

    def _call(self, job: Any) -> None:
        try:
            job.func()
        except Exception as error:  # any exception: the next run may succeed
            self.errors += 1
            problem = f"{job.name}: {error}"
            if self.failures.get(job.id) != problem:
                self.failures[job.id] = problem
                log.exception(
                    "job failed by a bug of disksla, please report it", extra=fields(job=job.name)
                )
            return
        if self.failures.pop(job.id, None) is not None:
            log.info("job recovered", extra=fields(job=job.name))


class OffsetTrigger(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    """A period or crontab line, shifted by the offset and the jitter of this machine.

    APScheduler's own jitter would shift a period further with each run; here each run is computed
    from the same grid.
    """

    def __init__(self, times: JobTimes) -> None:
        """Set the times; raise ValueError if the crontab line is invalid."""
        self._times = times
        self._grid = (
            IntervalTrigger(seconds=times.every_s, start_date=_EPOCH, timezone=UTC)
            if times.cron is None
            else CronTrigger.from_crontab(times.cron, timezone=UTC)
        )

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> Any:
        """Return the time of the next run after both `previous` and `now`, or None."""
        offset = timedelta(seconds=self._times.offset_s)
        since = max(now, previous or now) - offset + _INSTANT
        due = self._grid.get_next_fire_time(None, since)
        if due is None:
            return None
        delay_s = random.uniform(0.0, self._times.jitter_s)  # noqa: S311 -- not for cryptography
        return due + offset + timedelta(seconds=delay_s)
