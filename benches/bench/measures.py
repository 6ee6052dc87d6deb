"""Start processes, and measure their CPU time and memory.

CPU time is that of the scheduler in nanoseconds (/proc/PID/task/*/schedstat, fields 1 and 2
of Documentation/scheduler/sched-stats.rst).
"""

import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """A process to measure."""

    name: str
    pid: int
    address: str | None = None


def cpu_s(pid: int) -> float:
    """Return the CPU time of all threads of a process."""
    total_ns = 0
    for schedstat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        total_ns += int(schedstat.read_text().split()[0])
    return total_ns / 1e9


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def started(arguments: list[str], **options: object) -> Iterator[subprocess.Popen[str]]:
    """Run a program until the end of the block."""
    process = subprocess.Popen(arguments, text=True, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def get(address: str, path: str = "/metrics", accept: str = "text/plain") -> bytes:
    """Return the body of a scrape."""
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET", path, headers={"Accept": accept})
    body = connection.getresponse().read()
    connection.close()
    return body


def value(page: bytes, name: str) -> float:
    """Return the value of a metric without labels."""
    (line,) = [line for line in page.decode().splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])


def wait_for(address: str, path: str) -> None:
    """Wait until a server answers."""
    for _ in range(200):
        try:
            get(address, path)
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(address)


def start_daemon(
    stack: ExitStack,
    names: list[str],
    *options: str,
    before: tuple[str, ...] = (),
    program: Path | None = None,
) -> Process:
    """Start the daemon with only these devices.

    `before` is a command that runs it, and `program` is that of another version.
    """
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    config = directory / "config.yml"
    devices = [
        {"match": {"device": name}, "terms": "vk.ceph-ssd", "size": "500GiB"} for name in names
    ]
    config.write_text(json.dumps({"discovery": {"include": ["^nothing else$"]}, "disks": devices}))
    return started_at(stack, (f"--config.file={config}", *options), before, program)


def started_at(
    stack: ExitStack,
    options: Sequence[str],
    before: Sequence[str] = (),
    program: Path | None = None,
) -> Process:
    """Start the daemon with these options, on a free port of loopback."""
    command = [*before, str(program or Path(sys.executable).with_name("disksla")), "serve"]
    daemon = stack.enter_context(
        started(
            [*command, "--web.listen-address", "127.0.0.1:0", *options], stdout=subprocess.PIPE
        )
    )
    assert daemon.stdout is not None
    address = daemon.stdout.readline().partition("://")[2].partition("/")[0]
    return Process("disksla", daemon.pid, address)


def cost_of_both(daemons: list[Process], seconds: float, pairs: int) -> str:
    """Return cells of a table: CPU time in ms per second of two daemons, and their ratio.

    Both are measured at the same time, and medians of several times are returned.
    """
    costs_ms = []
    for _ in range(pairs):
        before = [cpu_s(daemon.pid) for daemon in daemons]
        started_s = time.monotonic()
        time.sleep(seconds)
        elapsed_s = time.monotonic() - started_s
        costs_ms.append(
            [
                (cpu_s(daemon.pid) - cpu) * 1e3 / elapsed_s
                for daemon, cpu in zip(daemons, before, strict=True)
            ]
        )
    one, other = (statistics.median(each) for each in zip(*costs_ms, strict=True))
    ratio = statistics.median(first / second for first, second in costs_ms)
    return f"{one:.1f} | {other:.1f} | {ratio:.2f}"


def fio_arguments(devices: list[str], seconds: float) -> list[str]:
    """Return the fio command of a light, steady load on each device."""
    arguments = [
        "fio",
        "--output=/dev/null",
        "--ioengine=libaio",
        "--direct=1",
        "--rw=randrw",
        "--bs=4k",
        "--iodepth=4",
        "--rate_iops=100,100",
        "--time_based",
        f"--runtime={seconds:.0f}",
        "--thread",
    ]
    for device in devices:
        arguments += [f"--name={device}", f"--filename=/dev/{device}"]
    return arguments
