"""A job that is run again and again: its exceptions are logged, and do not end the thread."""

import logging
from collections.abc import Callable

from disksla.system.log import fields

log = logging.getLogger("disksla.scheduler")


class Job:
    """A function without arguments; an exception is logged when its text changes."""

    def __init__(self, function: Callable[[], object], name: str) -> None:
        """Set what is called, and its name in the log."""
        self._function = function
        self._name = name
        self._failure: str | None = None

    def __call__(self) -> None:
        """Call the function, and log an exception instead of raising it."""
        try:
            self._function()
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
