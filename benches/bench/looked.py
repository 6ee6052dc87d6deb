"""Cost of looking closer at disks at which requests wait for a limiter all the time."""

import re
import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.measures import Process, cpu_s, fio_arguments, get, start_daemon, started, wait_for
from lab.disk import made
from lab.scenario import read_scenario

DISK = "{disk: {size: 64MiB, meters: [{limit: iops, iops: 150, window: 100ms}]}, load: []}"
"""Three quarters of the load that fio tries."""
LOOK_EVERY_S = 10.0
THROTTLED = re.compile(r'^disksla_verdict_seconds_total\{.*"throttled".*\} [1-9]', re.MULTILINE)
PERIODS = 6


def measure_looked() -> None:
    """Print the cost of one such disk and of eight, as medians of whole periods of looking."""
    print(
        "| disks looked at | found throttled | ms per second | without load |\n|--:|--:|--:|--:|"
    )
    for disks in (1, 8):
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
            scenario = directory / "scenario.yml"
            listed = ", ".join([DISK] * disks)
            scenario.write_text(f"caption: disks that are looked at\ndisks: [{listed}]\n")
            limited = [
                stack.enter_context(made(scenario, number, disk, directory))
                for number, disk in enumerate(read_scenario(scenario).disks)
            ]
            names = [each.device for each in limited]
            daemon = start_daemon(stack, names)
            wait_for(daemon.address or "", "/-/ready")
            time.sleep(LOOK_EVERY_S)
            idle_ms = _cost_ms(daemon, 1)
            for each in limited:
                each.begin()
            load = fio_arguments(names, LOOK_EVERY_S * (PERIODS + 3))
            stack.enter_context(started(load, stderr=subprocess.DEVNULL))
            time.sleep(2 * LOOK_EVERY_S)
            cost_ms = _cost_ms(daemon, PERIODS)
            found = len(THROTTLED.findall(get(daemon.address or "").decode()))
            print(f"| {disks} | {found} | {cost_ms:.1f} | {idle_ms:.1f} |", flush=True)


def _cost_ms(daemon: Process, periods: int) -> float:
    costs_ms = []
    for _ in range(periods):
        before_s, begun_s = cpu_s(daemon.pid), time.monotonic()
        time.sleep(LOOK_EVERY_S)
        costs_ms.append((cpu_s(daemon.pid) - before_s) * 1e3 / (time.monotonic() - begun_s))
    return statistics.median(costs_ms)
