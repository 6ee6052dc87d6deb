"""Signals that stop a long command."""

import os
import signal

import pytest

from disksla.commands._interrupt import stop_on_signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_is_recorded_and_its_handler_restored(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signal() as interrupted:
        assert not interrupted.stop.is_set()
        os.kill(os.getpid(), number)
        assert interrupted.stop.is_set()
        assert interrupted.by == number
    assert signal.getsignal(number) == before
