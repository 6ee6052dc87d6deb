"""Clocks that are set, and time that passes while no daemon runs.

The clocks of the machine are not set: libfaketime fakes the wall clock of a process, and a time
namespace shifts its time since boot.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.state_files import (
    BASELINE_IOPS,
    LEVEL,
    Elapsed,
    first_bounds,
    saved_state,
    write_state,
)
from support.daemon_process import Daemon
from support.fake_host import CAPACITY, FakeMachine

StartDaemon = Callable[..., Daemon]

ROOT = Path(__file__).resolve().parent.parent.parent
FAKETIME = next(
    (
        library
        for root in (Path("/"), ROOT / ".cache" / "tools")
        for library in root.glob("usr/lib/*/faketime/libfaketimeMT.so.1")
    ),
    None,
)
SET_BACK = """
import sys, threading
from pathlib import Path
from disksla.base.operating_system.scheduler import JobTimes, Scheduler

short, long = threading.Semaphore(0), threading.Semaphore(0)
scheduler = Scheduler()
scheduler.every(0.1, short.release, "short")
scheduler.at(JobTimes(every_s=0.1), long.release, "long")
scheduler.start()
for set_to in ("+0", "-7200", "+7200", "-86400"):
    Path(sys.argv[1]).write_text(set_to)
    scheduler.clock_was_set()
    for done in (short, long):
        assert all(done.acquire(timeout=20.0) for _ in range(3)), set_to
scheduler.stop()
"""


needs_time_namespace = pytest.mark.skipif(
    subprocess.run(["unshare", "--time", "true"], check=False, capture_output=True).returncode
    != 0,
    reason="NOT TESTED: this needs root and time namespaces",
)


@pytest.mark.skipif(FAKETIME is None, reason="NOT TESTED: libfaketime is missing")
def test_jobs_continue_after_the_wall_clock_is_set(tmp_path: Path) -> None:
    """Without `clock_was_set`, they would wait for the old time."""
    time_file = tmp_path / "time"
    time_file.write_text("+0")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(time_file),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    subprocess.run([sys.executable, "-c", SET_BACK, time_file], check=True, env=environment)


@needs_time_namespace
def test_time_since_boot_without_a_daemon_adds_credits(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    """As on a machine that was suspended for a minute after its daemon was killed."""
    elapsed = Elapsed()
    write_state(machine, saved_state(machine))
    minute_later = ("unshare", "--time", "--boottime", "60")
    lower, upper = first_bounds(start_daemon(*machine.options, before=minute_later))
    gain = elapsed.gain()
    assert 0 <= lower <= gain
    assert 60 * BASELINE_IOPS <= upper - LEVEL <= 60 * BASELINE_IOPS + gain


@needs_time_namespace
def test_time_since_boot_that_went_back_widens_the_bounds(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    """The wall clock is used instead, which may be wrong by a minute."""
    elapsed = Elapsed()
    write_state(machine, saved_state(machine))
    earlier = ("unshare", "--time", "--boottime", "-500")
    lower, upper = first_bounds(start_daemon(*machine.options, before=earlier))
    assert 0 <= lower <= elapsed.gain()
    assert LEVEL + 60 * BASELINE_IOPS <= upper <= CAPACITY
