"""Cost of this version and of another, in pairs: `make bench ARGS='against PROGRAM'`.

PROGRAM is the `disksla` of an environment in which the other version is installed. Both daemons
sample the same devices at the same time, so that other work on the machine affects both.
"""

import time
from contextlib import ExitStack
from pathlib import Path

from bench.loops import loop_devices
from bench.measures import cost_of_both, fio_arguments, start_daemon, started, wait_for

BUSY = 8
SETTLE_S = 4.0
PAIRS = 9
SECONDS = 3.0


def measure_versions(other: Path) -> None:
    """Print the table."""
    print("CPU time at 10 Hz, in ms per second, of this version and of the other:\n")
    print("| devices | busy | this | other | ratio |\n|--:|--:|--:|--:|--:|")
    for devices, busy in ((8, 0), (8, BUSY), (64, 0), (64, BUSY), (512, 0)):
        with ExitStack() as stack:
            names, loaded = stack.enter_context(loop_devices(devices, BUSY))
            daemons = [start_daemon(stack, names), start_daemon(stack, names, program=other)]
            for daemon in daemons:
                wait_for(daemon.address or "", "/-/ready")
            if busy:
                seconds = SETTLE_S + SECONDS * PAIRS + 30
                stack.enter_context(started(fio_arguments(loaded[:busy], seconds)))
            time.sleep(SETTLE_S)
            cells = cost_of_both(daemons, SECONDS, PAIRS)
            print(f"| {devices} | {busy} | {cells} |", flush=True)
