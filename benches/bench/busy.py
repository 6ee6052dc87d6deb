"""Cost of hundreds of busy disks, which no machine of ours has: a fake procfs and sysfs.

A process of its own writes the counters of all disks ten times a second. The daemon reads them as
those of a kernel. Beside both, one program uses a CPU all the time.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.measures import Process, cpu_s, get, resident_mib, started, value, wait_for
from support.fake_host import FakeMachine

DISKS = 500
SETTLE_S = 15.0
MEASURED_S = 60.0
BUSY = "while True: pass"
STAT = "1 0 8 1 1 0 8 1 1 1 1"
"""A file that is read closely, of a disk that does nothing between two ticks."""
ORIGIN = 10**9
"""Where counters start."""


def write_counters(file: Path, disks: int) -> None:
    """Overwrite /proc/diskstats ten times a second, each disk with 20 to 40 requests more.

    Numbers keep their length, so that a line is at its place whenever the daemon reads it.
    """
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT)
    begin_s = time.monotonic()
    for tick in range(10**9):
        lines = []
        for number in range(disks):
            done = ORIGIN + tick * (20 + number % 20)
            busy = ORIGIN + tick * 100
            numbers = f"{done} {ORIGIN} {done} {done} " * 2
            lines.append(f" 254 {number} vd{number} {numbers}{1 + number % 4} {busy} {done}\n")
        os.pwrite(descriptor, "".join(lines).encode(), 0)
        time.sleep(max(0.0, begin_s + (tick + 1) / 10 - time.monotonic()))


def make_disks(machine: FakeMachine, disks: int) -> None:
    """Write the directories of sysfs, and a configuration with terms."""
    for number in range(disks):
        directory = machine.paths.sysfs / "class" / "block" / f"vd{number}"
        directory.mkdir(parents=True)
        files = {"dev": f"254:{number}", "size": "209715200", "inflight": "0 1", "stat": STAT}
        for name, text in {**files, "serial": f"volume-{number}"}.items():
            (directory / name).write_text(f"{text}\n", encoding="ascii")
    entries = [
        {"match": {"device": f"vd{number}"}, "terms": "vk.ceph-ssd", "size": "500GiB"}
        for number in range(disks)
    ]
    document = {"disks": entries, "state": {"directory": str(machine.state)}}
    machine.config.write_text(json.dumps(document), encoding="utf-8")


def measure_busy() -> None:
    """Print a row of docs/performance.md."""
    print("| disks, all busy | ms per second | MiB | ticks | missed |\n|--:|--:|--:|--:|--:|")
    for disks in (100, DISKS):
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            _measure(stack, FakeMachine(directory), disks)


def _measure(stack: ExitStack, machine: FakeMachine, disks: int) -> None:
    make_disks(machine, disks)
    counters = str(machine.paths.procfs / "diskstats")
    here = [sys.executable, "-m", "bench.busy", counters, str(disks)]
    stack.enter_context(started(here))
    serve = [str(Path(sys.executable).with_name("disksla")), "serve", *machine.options]
    log = stack.enter_context((machine.config.parent / "log").open("w", encoding="utf-8"))
    daemon = stack.enter_context(
        started(
            [*serve, "--web.listen-address", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=log
        )
    )
    assert daemon.stdout is not None
    address = daemon.stdout.readline().partition("://")[2].partition("/")[0]
    process = Process("disksla", daemon.pid, address)
    wait_for(address, "/-/ready")
    stack.enter_context(started([sys.executable, "-c", BUSY]))
    time.sleep(SETTLE_S)
    before, missed_before = cpu_s(process.pid), _missed(address)
    time.sleep(MEASURED_S)
    after, resident = cpu_s(process.pid), resident_mib(process.pid)
    page = get(address)
    ticks = value(page, "disksla_sampler_ticks_total")
    missed = value(page, "disksla_sampler_missed_ticks_total") - missed_before
    cost = 1000 * (after - before) / MEASURED_S
    print(f"| {disks} | {cost:.0f} | {resident:.1f} | {ticks:.0f} | {missed:.0f} |", flush=True)


def _missed(address: str) -> float:
    return value(get(address), "disksla_sampler_missed_ticks_total")


if __name__ == "__main__":
    write_counters(Path(sys.argv[1]), int(sys.argv[2]))
