"""Short jobs that are repeated after a time, one after another in one background thread.

They follow the monotonic clock, so it does not matter if the wall clock is set. The sampling loop
is not one of them, because a job that is late must not delay a tick. Jobs at times of the wall
clock are in `scheduler.py`.
"""

import sched
import threading
import time
from collections.abc import Callable

from disksla.system.job import Job


class PeriodicJobs:
    """Runs jobs in a thread, from `start` until `stop`."""

    def __init__(self) -> None:
        """Start without jobs."""
        self._changed = threading.Event()
        self._queue = sched.scheduler(time.monotonic, self._changed.wait)
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def every(self, seconds: float, job: Callable[[], object], name: str) -> None:
        """Run a job `seconds` from now, and then each time that long after its last run ended."""
        self._queue.enter(seconds, 0, self._repeat, (seconds, Job(job, name)))
        self._changed.set()

    def start(self) -> None:
        """Start the thread; jobs may be added before and after."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, after the job that runs has ended."""
        self._is_stopping = True
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _repeat(self, seconds: float, job: Job) -> None:
        if not self._is_stopping:
            job()
            self._queue.enter(seconds, 0, self._repeat, (seconds, job))

    def _run(self) -> None:
        while not self._is_stopping:
            self._changed.wait(self._queue.run(blocking=False))
            self._changed.clear()
