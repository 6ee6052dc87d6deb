"""Periodic jobs in background threads; the sampling loop is not one of them.

The sampler has its own thread, because a job that is late must not delay a tick.
"""

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from disksla.system.log import fields

log = logging.getLogger("disksla.scheduler")

MAX_DELAY_S = 30
"""A run of a short job that could not start for this long is skipped."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = timedelta(microseconds=1)

Queue = Literal["short", "long"]
"""Jobs of one queue run one after another, so that long jobs do not delay short ones."""


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
    """Runs jobs in two background threads, one for each queue.

    Missed runs are coalesced into one. A job that raises an exception stays in the schedule; the
    exception is logged when its text changes.
    """

    def __init__(self) -> None:
        """Create the threads without jobs; nothing runs before `start`."""
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # jobs are logged here
        queues: tuple[Queue, ...] = ("short", "long")
        self._scheduler = BackgroundScheduler(
            timezone="UTC",
            executors={queue: ThreadPoolExecutor(max_workers=1) for queue in queues},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": MAX_DELAY_S},
        )

    def every(self, seconds: float, job: Callable[[], object], name: str) -> None:
        """Run a short job periodically, for the first time after one period."""
        self._scheduler.add_job(
            _LoggedJob(job, name), RepeatTrigger(seconds), name=name, executor="short"
        )

    def at(self, times: JobTimes, job: Callable[[], object], name: str) -> Callable[[], None]:
        """Run a long job at these times, however late; return a function that removes the job."""
        added = self._scheduler.add_job(
            _LoggedJob(job, name),
            OffsetTrigger(times),
            name=name,
            executor="long",
            misfire_grace_time=None,
        )
        remove: Callable[[], None] = added.remove
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

    def stop(self) -> None:
        """Stop, after the jobs that run have ended."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)


class RepeatTrigger(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    """One period after the previous run, or after now."""

    def __init__(self, seconds: float) -> None:
        """Set the period."""
        self._period = timedelta(seconds=seconds)

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """Return the time of the next run, which is always in the future."""
        due = (previous or now) + self._period
        return due if due > now else now + self._period


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


class _LoggedJob:
    """A job whose exceptions are logged instead of raised."""

    def __init__(self, job: Callable[[], object], name: str) -> None:
        self._job = job
        self._name = name
        self._failure: str | None = None

    def __call__(self) -> None:
        try:
            self._job()
        except Exception as error:  # any exception: the next run may succeed
            if self._failure != str(error):
                self._failure = str(error)
                log.exception(
                    "job failed by a bug of disksla, please report it",
                    extra=fields(job=self._name),
                )
            return
        if self._failure is not None:
            log.info("job recovered", extra=fields(job=self._name))
            self._failure = None
