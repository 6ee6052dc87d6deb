"""Jobs at times of the wall clock, one after another in one background thread.

APScheduler, which takes 3 MiB, is loaded only where there are such jobs (probes). Short jobs of
every daemon are in `periodic_jobs.py`.
"""

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from disksla.system.job import Job

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = timedelta(microseconds=1)


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
    """Runs jobs in a thread, however long they take.

    Missed runs are coalesced into one. A job that raises an exception stays in the schedule.
    """

    def __init__(self) -> None:
        """Start without jobs; nothing runs before `start`."""
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # jobs are logged here
        self._scheduler = BackgroundScheduler(
            timezone="UTC",
            executors={"default": ThreadPoolExecutor(max_workers=1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )

    def at(self, times: JobTimes, job: Callable[[], object], name: str) -> Callable[[], None]:
        """Run a job at these times, however late; return a function that removes the job."""
        added = self._scheduler.add_job(Job(job, name), OffsetTrigger(times), name=name)
        remove: Callable[[], None] = added.remove
        return remove

    def start(self) -> None:
        """Start the thread; jobs may be added before and after."""
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
        """Stop, after the job that runs has ended."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)


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
