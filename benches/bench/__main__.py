"""Cost of disksla: `make bench` prints the tables of docs/performance.md.

Three processes are measured at the same time, because other work on the machine affects all: the
daemon, a process that only reads /proc/diskstats at the same rate, and node_exporter with its
diskstats collector, scraped at the same rate.
"""

import http.client
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.crowded import measure_crowded
from bench.looked import measure_looked
from bench.loops import loop_devices
from bench.measures import (
    Process,
    cpu_s,
    fio_arguments,
    get,
    resident_mib,
    start_daemon,
    started,
    value,
    wait_for,
)

HERE = Path(__file__).parent
PERIOD_S = 0.1
SETTLE_S = 2.0
BUSY = 8


def start_node_exporter(stack: ExitStack) -> Process | None:
    """Start node_exporter with only its diskstats collector, for loop devices too."""
    program = shutil.which("prometheus-node-exporter")
    if program is None:
        return None
    address = "127.0.0.1:19100"
    exporter = stack.enter_context(
        started(
            [
                program,
                "--collector.disable-defaults",
                "--collector.diskstats",
                "--collector.diskstats.device-exclude=^nothing$",
                "--web.disable-exporter-metrics",
                f"--web.listen-address={address}",
            ],
            stderr=subprocess.DEVNULL,
        )
    )
    wait_for(address, "/metrics")
    return Process("node_exporter", exporter.pid, address)


def scrape_repeatedly(address: str, stop: threading.Event) -> None:
    """Scrape ten times a second, on one connection, as Prometheus does."""
    connection = http.client.HTTPConnection(address, timeout=10)
    due_s = time.monotonic()
    while not stop.wait(max(0.0, due_s - time.monotonic())):
        connection.request("GET", "/metrics")
        connection.getresponse().read()
        due_s = max(due_s + PERIOD_S, time.monotonic())
    connection.close()


def measure_cost(devices: int, busy: int, seconds: float) -> None:
    """Print the cost of sampling `devices`, of which `busy` are under load."""
    with ExitStack() as stack:
        names, loaded = stack.enter_context(loop_devices(devices, min(BUSY, devices)))
        bare = stack.enter_context(started([sys.executable, str(HERE / "bare_read.py")]))
        daemon = start_daemon(stack, names)
        wait_for(daemon.address or "", "/-/ready")
        processes = [Process("bare read", bare.pid), daemon]
        exporter = start_node_exporter(stack)
        if exporter is not None and exporter.address is not None:
            processes.append(exporter)
            stop = threading.Event()
            scraper = threading.Thread(target=scrape_repeatedly, args=(exporter.address, stop))
            scraper.start()
            stack.callback(scraper.join)
            stack.callback(stop.set)
        if busy:
            stack.enter_context(started(fio_arguments(loaded[:busy], seconds + 60)))
        time.sleep(SETTLE_S)
        before = {process.name: cpu_s(process.pid) for process in processes}
        started_s = time.monotonic()
        time.sleep(seconds)
        elapsed_s = time.monotonic() - started_s
        cost_ms = {
            process.name: (cpu_s(process.pid) - before[process.name]) * 1e3 / elapsed_s
            for process in processes
        }
        page = get(processes[1].address or "")
        report_cost(devices, busy, cost_ms, resident_mib(processes[1].pid), page)


def report_cost(
    devices: int, busy: int, cost_ms: dict[str, float], resident: float, page: bytes
) -> None:
    """Print one row."""
    disksla_ms, bare_ms = cost_ms["disksla"], cost_ms["bare read"]
    exporter_ms = cost_ms.get("node_exporter")
    print(
        f"| {devices} | {busy} | {disksla_ms:.1f} | {bare_ms:.1f} | {disksla_ms / bare_ms:.1f} |"
        + (
            f" {exporter_ms:.1f} | {disksla_ms / exporter_ms:.2f} |"
            if exporter_ms
            else " not installed | |"
        )
        + f" {resident:.1f} | {value(page, 'disksla_sampler_ticks_total'):.0f} |"
        f" {value(page, 'disksla_sampler_missed_ticks_total'):.0f} |",
        flush=True,
    )


def measure_scrapes(devices: int, scrapes: int) -> None:
    """Print the duration of scrapes while the sampler runs, and the ticks that it missed."""
    with ExitStack() as stack:
        names, loaded = stack.enter_context(loop_devices(devices, BUSY))
        daemon = start_daemon(stack, names)
        address = daemon.address or ""
        wait_for(address, "/-/ready")
        stack.enter_context(started(fio_arguments(loaded, 120)))
        time.sleep(SETTLE_S)
        for name, accept in (
            ("text", "text/plain;version=0.0.4"),
            ("OpenMetrics", "application/openmetrics-text;version=1.0.0"),
        ):
            missed = value(get(address), "disksla_sampler_missed_ticks_total")
            times_ms, page = [], b""
            for number in range(scrapes):
                time.sleep(0.1 + 0.007 * (number % 15))
                begun_s = time.perf_counter()
                page = get(address, accept=accept)
                times_ms.append((time.perf_counter() - begun_s) * 1e3)
            missed = value(get(address), "disksla_sampler_missed_ticks_total") - missed
            samples = sum(1 for line in page.splitlines() if not line.startswith(b"#"))
            times_ms.sort()
            print(
                f"| {name} | {samples} | {len(page) / 1024:.0f} |"
                f" {statistics.median(times_ms):.1f} | {times_ms[int(0.95 * scrapes)]:.1f} |"
                f" {times_ms[-1]:.1f} | {missed:.0f} |",
                flush=True,
            )


PARTS: dict[str, Callable[..., None]] = {"looked": measure_looked, "crowded": measure_crowded}


def main() -> int:
    """Measure everything, or a part; print the reason if the machine does not allow it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that disks are removed
    part, *rest = sys.argv[1:] or [""]
    may_make_disks = os.geteuid() == 0 and Path("/dev/loop-control").exists()
    if part != "crowded" and not may_make_disks:
        print("bench: SKIPPED: needs root and /dev/loop-control to create devices")
        return 0
    if part in PARTS:
        PARTS[part](*rest)
        return 0
    seconds = float(part or 20.0)
    print("CPU time at 10 Hz, in ms per second:\n")
    print(
        "| devices | busy | disksla | bare read | ratio | node_exporter | ratio"
        " | disksla MiB | ticks | missed |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for devices in (8, 64):
        for busy in (0, BUSY):
            measure_cost(devices, busy, seconds)
    print("\nScrapes of 64 disks, 8 of them busy, while sampling; durations in ms:\n")
    print("| format | samples | KiB | median | 95 % | slowest | ticks missed |")
    print("|:--|--:|--:|--:|--:|--:|--:|")
    measure_scrapes(64, 100)
    return 0


if __name__ == "__main__":
    sys.exit(main())
