"""The state of the wall clock, as adjtimex(2) reports it."""

import shutil
import subprocess

import pytest

from disksla.base.operating_system.machine import read_clock_state


def test_state_is_read() -> None:
    state = read_clock_state()
    assert state.is_synchronised in {True, False}
    assert 0 <= state.error_s < 3600


@pytest.mark.skipif(shutil.which("adjtimex") is None, reason="NOT TESTED: needs adjtimex")
def test_state_is_that_of_another_program() -> None:
    printed = subprocess.run(
        ["adjtimex", "--print"], capture_output=True, text=True, check=True
    ).stdout
    fields = dict(line.strip().split(": ") for line in printed.splitlines() if ": " in line)
    state = read_clock_state()
    assert state.is_synchronised == (not int(fields["status"]) & 0x40)
    assert state.error_s == pytest.approx(int(fields["maxerror"]) / 1e6, abs=60)
