"""Clocks that are set, and time that passes while nobody looks.

Nobody's clock is set for it: a library between the process and the kernel tells another wall time,
and a time namespace another time since boot.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.saved import A_WINDOW_OR_TWO_S, LEVEL, REFILL_IOPS, bounds, leave, state_of
from support.daemon_process import Daemon
from support.fake_host import CAPACITY, FakeMachine

StartDaemon = Callable[..., Daemon]

ROOT = Path(__file__).resolve().parent.parent.parent
FAKETIME = next(
    (
        library
        for place in (Path("/"), ROOT / ".cache" / "tools")
        for library in place.glob("usr/lib/*/faketime/libfaketimeMT.so.1")
    ),
    None,
)
SET_BACK = """
import sys, threading
from pathlib import Path
from disksla.system.scheduler import Scheduler

done = threading.Semaphore(0)
schedule = Scheduler()
schedule.every(0.1, done.release, "short")
schedule.start()
for set_to in ("+0", "-7200", "+7200", "-86400"):
    Path(sys.argv[1]).write_text(set_to)
    schedule.clock_was_set()
    assert all(done.acquire(timeout=20.0) for _ in range(3)), set_to
schedule.stop()
"""


needs_time_namespace = pytest.mark.skipif(
    subprocess.run(["unshare", "--time", "true"], check=False, capture_output=True).returncode
    != 0,
    reason="NOT TESTED: this needs root and time namespaces",
)


@pytest.mark.skipif(FAKETIME is None, reason="NOT TESTED: libfaketime is missing")
def test_jobs_go_on_when_the_wall_clock_is_set(tmp_path: Path) -> None:
    """Without being told, they would wait until the old time comes again."""
    told = tmp_path / "time"
    told.write_text("+0")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(told),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    subprocess.run([sys.executable, "-c", SET_BACK, told], check=True, env=environment)


@needs_time_namespace
def test_time_that_passed_since_boot_while_nobody_looked_fills_the_bucket(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    """A machine that was suspended for a minute after its daemon was killed."""
    begun_s = time.monotonic()
    leave(machine, state_of(machine))
    later_by_a_minute = ("unshare", "--time", "--boottime", "60")
    lower, upper = bounds(start_daemon(*machine.options, before=later_by_a_minute))
    most_s = 60 + time.monotonic() - begun_s + A_WINDOW_OR_TWO_S
    assert lower == 0
    assert LEVEL + 60 * REFILL_IOPS <= upper <= LEVEL + most_s * REFILL_IOPS


@needs_time_namespace
def test_a_time_since_boot_that_went_back_leaves_a_doubt_of_a_minute(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    leave(machine, state_of(machine))
    earlier = ("unshare", "--time", "--boottime", "-500")
    lower, upper = bounds(start_daemon(*machine.options, before=earlier))
    assert lower == 0
    assert LEVEL + 60 * REFILL_IOPS <= upper <= CAPACITY
