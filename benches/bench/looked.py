"""Cost of looking closer at disks at which requests wait for a limiter all the time."""

import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.measures import cost_of_both, fio_arguments, get, start_daemon, started, wait_for
from lab.disk import made
from lab.scenario import read_scenario

DISK = "{disk: {size: 64MiB, meters: [{limit: iops, iops: 150, window: 100ms}]}, load: []}"
"""Three quarters of the load that fio tries."""
WITHOUT = """#!{python}
import sys
import disksla.state.pipeline.state
disksla.state.pipeline.state.MOST_LOOKED_AT = 0
from disksla.commands.cli import main
sys.exit(main())
"""
"""A daemon that looks at no disk."""
LOOK_EVERY_S = 10.0
LIMITED = re.compile(
    r'^disksla_verdict_seconds_total\{.*"(?:throttled|below)".*\} [1-9]', re.MULTILINE
)
PAIRS = 5


def measure_looked() -> None:
    """Print the cost of one such disk and of eight, of two daemons at the same time."""
    print("| disks | limited | looked at | not looked at | ratio |\n|--:|--:|--:|--:|--:|")
    for disks in (1, 8):
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
            scenario, program = directory / "scenario.yml", directory / "without"
            program.write_text(WITHOUT.format(python=sys.executable))
            program.chmod(0o755)
            listed = ", ".join([DISK] * disks)
            scenario.write_text(f"caption: disks that are looked at\ndisks: [{listed}]\n")
            limited = [
                stack.enter_context(made(scenario, number, disk, directory))
                for number, disk in enumerate(read_scenario(scenario).disks)
            ]
            names = [each.device for each in limited]
            daemons = [start_daemon(stack, names), start_daemon(stack, names, program=program)]
            for daemon in daemons:
                wait_for(daemon.address or "", "/-/ready")
            for each in limited:
                each.begin()
            load = fio_arguments(names, LOOK_EVERY_S * (PAIRS + 3))
            stack.enter_context(started(load, stderr=subprocess.DEVNULL))
            time.sleep(2 * LOOK_EVERY_S)
            costs = cost_of_both(daemons, LOOK_EVERY_S, PAIRS)
            found = [len(LIMITED.findall(get(each.address or "").decode())) for each in daemons]
            print(f"| {disks} | {found[0]} and {found[1]} | {costs} |", flush=True)
