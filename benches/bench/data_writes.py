"""Cost of exact counts of data writes, of the daemon and of requests, in pairs."""

import os
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.loops import FILE_BYTES, loop_devices
from bench.measures import cost_of_both, fio_arguments, get, start_daemon, started, wait_for
from disksla.base.operating_system.perf_events import close_all, open_counters
from support.loop_device import attached

TRACEPOINT = Path("/sys/kernel/tracing/events/block/block_rq_complete/id")
WITHOUT = ("setpriv", "--bounding-set=-perfmon,-sys_admin", "--inh-caps=-perfmon,-sys_admin")
"""Runs a program as root that may not open performance events."""
SETTLE_S = 3.0
PAIRS = 9
REQUESTS = 20_000


def measure_data_writes(seconds: float) -> None:
    """Print both tables; print the reason if the machine does not allow it."""
    if not TRACEPOINT.exists():
        print(f"bench: SKIPPED: needs {TRACEPOINT} (mount -t tracefs none /sys/kernel/tracing)")
        return
    print("CPU time at 10 Hz, in ms per second, with exact counts and without:\n")
    print("| devices, all flushed | with | without | ratio |\n|--:|--:|--:|--:|")
    for devices in (1, 16):
        measure_daemons(devices, seconds)
    print("\nTime of a request, in microseconds, with events of this many disks and without:\n")
    print("| disks | with | without |\n|--:|--:|--:|")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:  # memory: little else varies
        file = Path(directory) / "disk"
        file.write_bytes(bytes(FILE_BYTES))
        with attached(file) as device:
            for disks in (1, 16, 64):
                measure_requests(device, disks)


def measure_daemons(devices: int, seconds: float) -> None:
    """Print the cost of two daemons that sample the same devices at the same time."""
    with ExitStack() as stack:
        names, loaded = stack.enter_context(loop_devices(devices, devices))
        daemons = [start_daemon(stack, names), start_daemon(stack, names, before=WITHOUT)]
        for daemon in daemons:
            wait_for(daemon.address or "", "/-/ready")
        load = [*fio_arguments(loaded, seconds * PAIRS + 60), "--fdatasync=1"]
        stack.enter_context(started(load))
        time.sleep(SETTLE_S)
        pages = [get(daemon.address or "") for daemon in daemons]
        assert [page.count(b"\ndisksla_data_writes_total{") for page in pages] == [devices, 0]
        print(f"| {devices} | {cost_of_both(daemons, seconds, PAIRS)} |", flush=True)


def measure_requests(device: str, disks: int) -> None:
    """Print the shortest mean time of a write of 4 KiB, with events of several disks."""
    tracepoint = int(TRACEPOINT.read_text(encoding="ascii"))
    number = Path(f"/dev/{device}").stat().st_rdev
    own = os.major(number) << 20 | os.minor(number)
    rest = '&& nr_sector>0 && !(rwbs~"R*") && !(rwbs~"D*")'
    filters = [f"dev=={own + other} {rest}" for other in range(disks)]
    pairs = []
    for _ in range(PAIRS):
        cpus = sorted(os.sched_getaffinity(0))
        opened = [open_counters(cpu, tracepoint, filters) for cpu in cpus]
        exact_us = request_us(device)
        for descriptors in opened:
            close_all(descriptors)
        pairs.append((exact_us, request_us(device)))
    exact_us, without_us = (min(each) for each in zip(*pairs, strict=True))
    print(f"| {disks} | {exact_us:.1f} | {without_us:.1f} |", flush=True)


def request_us(device: str) -> float:
    """Return the duration of a write without a flush."""
    command = ["fio", "--name=load", f"--filename=/dev/{device}", "--rw=randwrite", "--bs=4k"]
    options = ["--direct=1", "--ioengine=psync", f"--number_ios={REQUESTS}", "--io_size=10g"]
    output = ["--thread", "--output-format=terse", "--terse-version=3"]
    finished = subprocess.run(
        [*command, *options, *output], check=True, capture_output=True, text=True
    )
    runtime_ms = int(finished.stdout.split(";")[WRITE_RUNTIME])
    return runtime_ms * 1e3 / REQUESTS


WRITE_RUNTIME = 49
"""Field of fio's terse output, version 3: milliseconds of writing."""
