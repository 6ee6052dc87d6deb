"""Somebody wants a long command to end: taken as a wish, so that what cleans up is never cut."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from disksla.errors import DiskslaError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StoppedError(DiskslaError):
    """What was under way was given up."""


class StopRequest:
    """Whether somebody wants the command to end."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self.stop = threading.Event()
        """Set when somebody does."""
        self.by: int | None = None
        """The number of the signal by which it was said."""

    def end_if_wanted(self, _progress: float) -> None:
        """Give up what reports its progress here, by raising Ended, if that is wanted."""
        if self.by is not None:
            raise StoppedError

    def take(self, signal_number: int, _frame: FrameType | None) -> None:
        """Take note of a signal."""
        self.by = signal_number
        self.stop.set()


@contextlib.contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Take the signals of a terminal, a service manager and a lost connection until the end."""
    interrupted = StopRequest()
    before = {number: signal.signal(number, interrupted.take) for number in _SIGNALS}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
