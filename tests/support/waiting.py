"""Waiting for what other threads and processes do."""

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], within_s: float, every_s: float = 0.005) -> bool:
    """Wait until a condition is true. Return whether it became true in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(every_s)
    return condition()
