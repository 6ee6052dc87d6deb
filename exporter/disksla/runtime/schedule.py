"""Jobs that are done every so often; the sampling loop is none of them, it has its own thread."""

import logging
from collections.abc import Callable

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

log = logging.getLogger("disksla.schedule")

LATEST_S = 30
"""A job that could not be begun for so long waits for its next turn."""


class Schedule:
    """Does jobs in one thread of its own, one after another.

    Turns that were missed are made up for by one. A job that fails stays in the schedule; how it
    failed is logged when it changes.
    """

    def __init__(self) -> None:
        """Begin with no jobs."""
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # we say what there is to say
        self._scheduler = BackgroundScheduler(
            timezone="UTC",
            executors={"default": ThreadPoolExecutor(max_workers=1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": LATEST_S},
        )

    def every(self, seconds: float, job: Callable[[], object], name: str) -> None:
        """Do a job every so many seconds, for the first time after as many."""
        self._scheduler.add_job(_Guarded(job, name), "interval", seconds=seconds, name=name)

    def start(self) -> None:
        """Begin; jobs may be added before and after."""
        self._scheduler.start()

    def stop(self) -> None:
        """End, when the job that is being done is done."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)


class _Guarded:
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
                log.exception("%s failed; this is a bug of disksla, please report it", self._name)
            return
        if self._failure is not None:
            log.info("%s works again", self._name)
            self._failure = None
