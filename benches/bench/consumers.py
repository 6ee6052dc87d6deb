"""Cost of sampling who makes the requests of a disk, of this process."""

import os
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

from bench.loops import FILE_BYTES
from bench.measures import started
from disksla.base.operating_system.roots import Roots
from disksla.kernel.consumers.attribution import NONE_OPEN, UNATTRIBUTED, attributed
from disksla.kernel.performance_events.opened import open_events
from disksla.kernel.performance_events.opening import EventFiles
from disksla.kernel.performance_events.request_sampler import RequestSampler
from disksla.kernel.performance_events.source import EventSource
from support.loop_device import attached

TRACEPOINT = Path("/sys/kernel/tracing/events/block/block_getrq/format")
RATES = (0, 300, 3_000, 30_000)
SETTLE_S, SECONDS, EVERY_S = 3.0, 10.0, 0.25
TAKES = round(1 / EVERY_S)
"""After so many, the periods are adapted."""


def measure_consumers() -> None:
    """Print a row for each rate of requests; print the reason if the machine does not allow it."""
    if not TRACEPOINT.exists():
        print(f"bench: SKIPPED: needs {TRACEPOINT} (mount -t tracefs none /sys/kernel/tracing)")
        return
    print("| requests/s | CPU, ms/s | samples/s | periods | unattributed |\n|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        file = Path(directory) / "disk"
        file.write_bytes(bytes(FILE_BYTES))
        with attached(file, "--direct-io=on") as device:
            for rate in RATES:
                measure(device, rate)


def measure(device: str, rate: int) -> None:
    """Print the row of a rate of requests, which fio makes in four threads."""
    command = ["fio", "--output=/dev/null", "--name=load", f"--filename=/dev/{device}", "--bs=4k"]
    options = ["--rw=randrw", "--direct=1", "--ioengine=libaio", "--iodepth=8", "--thread"]
    pace = [f"--rate_iops={rate // 8},{rate // 8}", "--numjobs=4", "--time_based"]
    runtime = f"--runtime={SETTLE_S + SECONDS + 60:.0f}"
    load = [*command, *options, *pace, runtime] if rate else ["sleep", "1000"]
    with started(load):
        time.sleep(SETTLE_S)
        print(row(device), flush=True)


def row(device: str) -> str:
    """Return what was measured while the load runs."""
    number = Path(f"/dev/{device}").stat().st_rdev
    opener = partial(open_events, helper=Path("/nonexistent"), files=EventFiles(Roots()))
    sampler = RequestSampler(EventSource(opener, "consumers", Path("/sys")))
    reader = Reader(sampler, {device: (os.major(number), os.minor(number))})
    reader.read(SETTLE_S)
    reader.samples, reader.used = 0, Counter()
    begin_s, begin_cpu_s = time.monotonic(), time.process_time()
    reader.read(SECONDS)
    seconds, cpu_s = time.monotonic() - begin_s, time.process_time() - begin_cpu_s
    sampler.close()
    requests = reader.used.total()
    share = reader.used[UNATTRIBUTED] / requests if requests else 0.0
    return (
        f"| {requests / seconds:,.0f} | {cpu_s / seconds * 1e3:.1f}"
        f" | {reader.samples / seconds:,.0f} | {reader.periods[0]}, {reader.periods[1]}"
        f" | {share:.1%} |"
    )


class Reader:
    """Reads samples four times a second, and adapts the periods once."""

    def __init__(self, sampler: RequestSampler, disks: dict[str, tuple[int, int]]) -> None:
        self._sampler, self._disks = sampler, disks
        self._before = NONE_OPEN
        self.samples = 0
        self.used: Counter[str] = Counter()
        """Requests by consumer."""
        self.periods = (1, 1)

    def read(self, seconds: float) -> None:
        """Read for so long."""
        for _ in range(round(seconds)):
            counted = [self._take() for _ in range(TAKES)]
            requests, sizes = (sum(each) for each in zip(*counted, strict=True))
            self._sampler.adapt((requests, sizes), EVERY_S * TAKES)

    def _take(self) -> tuple[int, int]:
        time.sleep(EVERY_S)
        self._sampler.watch(self._disks, with_bytes=True)
        taken = self._sampler.take()
        if taken is None:
            return 0, 0
        self._before, used = attributed(
            self._before, taken, self._disks, lambda _, comm: ("", comm), with_bytes=True
        )
        self.samples, self.periods = self.samples + taken.seen.total(), taken.periods
        for each in used:
            self.used[each.consumer] += round(each.requests or 0.0)
        return taken.counted
