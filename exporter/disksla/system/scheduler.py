"""Jobs that are done every so often; the sampling loop is none of them, it has its own thread."""

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
"""A job that could not be begun for so long waits for its next turn."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = timedelta(microseconds=1)

Queue = Literal["short", "long"]
"""Jobs of one lane are done one after another; those that take long do not hold up the others."""


class JobTimes(NamedTuple):
    """When a job is done: at every whole multiple of a period since 1970, or by a crontab line."""

    every_s: float = 0.0
    cron: str | None = None
    """In UTC; instead of a period."""
    offset_s: float = 0.0
    """By which all turns are later, always the same."""
    jitter_s: float = 0.0
    """By which, at most, each turn is later by chance."""


class Scheduler:
    """Does jobs in threads of its own.

    Turns that were missed are made up for by one. A job that fails stays in the schedule; how it
    failed is logged when it changes.
    """

    def __init__(self) -> None:
        """Begin with no jobs."""
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # we say what there is to say
        lanes: tuple[Queue, ...] = ("short", "long")
        self._scheduler = BackgroundScheduler(
            timezone="UTC",
            executors={lane: ThreadPoolExecutor(max_workers=1) for lane in lanes},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": MAX_DELAY_S},
        )

    def every(self, seconds: float, job: Callable[[], object], name: str) -> None:
        """Do a short job every so many seconds, for the first time after as many."""
        self._scheduler.add_job(
            _LoggedJob(job, name), RepeatTrigger(seconds), name=name, executor="short"
        )

    def at(self, times: JobTimes, job: Callable[[], object], name: str) -> Callable[[], None]:
        """Do a long job at these times, however late; give what takes it from the schedule."""
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
        """Begin; jobs may be added before and after."""
        self._scheduler.start()

    def clock_was_set(self) -> None:
        """Reckon anew when each job is due.

        Turns are kept in wall time: set back by two hours, all would be two hours late.
        """
        for job in self._scheduler.get_jobs():
            with suppress(JobLookupError):  # taken away meanwhile
                job.reschedule(job.trigger)

    def stop(self) -> None:
        """End, when the jobs that are being done are done."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)


class RepeatTrigger(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    """So many seconds after the turn before, or after now."""

    def __init__(self, seconds: float) -> None:
        """Take the time between turns."""
        self._period = timedelta(seconds=seconds)

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """Give the next turn, which is never one that was missed."""
        due = (previous or now) + self._period
        return due if due > now else now + self._period


class OffsetTrigger(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    """Times that are this machine's own.

    APScheduler's jitter would move a period a little further with every turn; here each turn is
    reckoned from the same grid.
    """

    def __init__(self, times: JobTimes) -> None:
        """Take the times; raises ValueError for a crontab line that is none."""
        self._times = times
        self._grid = (
            IntervalTrigger(seconds=times.every_s, start_date=_EPOCH, timezone=UTC)
            if times.cron is None
            else CronTrigger.from_crontab(times.cron, timezone=UTC)
        )

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> Any:
        """Give the next turn after both the last one and now; None if there is none."""
        offset = timedelta(seconds=self._times.offset_s)
        since = max(now, previous or now) - offset + _MOMENT
        due = self._grid.get_next_fire_time(None, since)
        if due is None:
            return None
        late_s = random.uniform(0.0, self._times.jitter_s)  # noqa: S311 -- nothing to be guessed
        return due + offset + timedelta(seconds=late_s)


class _LoggedJob:
    """A job whose failures do not end it."""

    def __init__(self, job: Callable[[], object], name: str) -> None:
        self._job = job
        self._name = name
        self._failure: str | None = None

    def __call__(self) -> None:
        try:
            self._job()
        except Exception as error:  # whatever it is, the next turn may go well
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
