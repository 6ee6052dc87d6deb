"""Stop a long command on a signal, without interrupting its cleanup."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Records the signal that stops the command."""

    def __init__(self) -> None:
        """Start without a signal."""
        self.stop = threading.Event()
        """Set when a signal arrives."""
        self.by: int | None = None
        """Number of the signal; None before it arrives."""

    def take(self, signal_number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        self.by = signal_number
        self.stop.set()


@contextlib.contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Handle SIGINT, SIGTERM and SIGHUP until the block ends, then restore their handlers."""
    interrupted = StopRequest()
    before = {number: signal.signal(number, interrupted.take) for number in _SIGNALS}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
