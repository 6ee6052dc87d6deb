"""Signals that stop a long command."""

import os
import signal

import pytest

from disksla.commands._interrupt import StoppedError, stop_on_signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_stops_at_the_next_progress(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signal() as interrupted:
        interrupted.raise_if_requested(0.5)
        assert not interrupted.stop.is_set()
        os.kill(os.getpid(), number)
        assert interrupted.stop.is_set()
        assert interrupted.by == number
        with pytest.raises(StoppedError):
            interrupted.raise_if_requested(0.5)
    assert signal.getsignal(number) == before
