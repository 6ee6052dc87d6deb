"""How long a scrape takes alone, and beside clients that loop on the pages of many disks.

`make bench ARGS='crowded 500 10'`: a machine of files, whose disks are all active; no root. The
clients are a process of their own, and do not wait after 503. A path after the numbers is the
program of another version.
"""

import http.client
import json
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bench.measures import Process, cpu_s, get, started_at, value, wait_for

SCRAPE = "/metrics?name[]=up"
PAGES = ("/", "/api/v1/disks", "/disk?name=sd0007")
PERIOD_S = 0.1
SETTLE_S = 20.0
"""So that there is a history to show."""
SCRAPES = 60
BETWEEN_S = 0.25
TIMEOUT_S = 60.0


class ActiveDisks:
    """A procfs and a sysfs of disks that all read, a bit more ten times a second."""

    def __init__(self, directory: Path, disks: int) -> None:
        self.procfs, self.sysfs = directory / "proc", directory / "sys"
        self._names = [f"sd{number:04d}" for number in range(disks)]
        random = self.procfs / "sys" / "kernel" / "random"
        for path in (self.procfs / "1", self.procfs / "self", random):
            path.mkdir(parents=True)
        for process in ("1", "self"):
            (self.procfs / process / "mountinfo").write_text("")
        (random / "boot_id").write_text("a7f0f4d0-2b0a-4c1d-9a0c-0f5f0f3a9b11\n")
        (self.procfs / "stat").write_text("cpu  100 0 50 1000 250 0 0 0 0 0\n")
        for number, name in enumerate(self._names):
            disk = self.sysfs / "class" / "block" / name
            disk.mkdir(parents=True)
            for attribute, text in (
                ("dev", f"8:{number}"),
                ("size", "209715200"),
                ("serial", f"serial-{number}"),
                ("stat", "0 " * 17),
            ):
                (disk / attribute).write_text(f"{text}\n")
        self.write(0)

    def write(self, ticks: int) -> None:
        """Write the counters after some ticks."""
        draft = self.procfs / "diskstats.new"
        draft.write_text("".join(self._line(number, ticks) for number in range(len(self._names))))
        draft.replace(self.procfs / "diskstats")

    def _line(self, number: int, ticks: int) -> str:
        reads, busy_ms = (10 + number % 20) * ticks, 50 * ticks
        return (
            f"   8 {number} {self._names[number]} {reads} 0 {8 * reads} {2 * busy_ms}"
            f" 0 0 0 0 {number % 3} {busy_ms} {2 * busy_ms} 0 0 0 0 0 0\n"
        )


def write_repeatedly(disks: ActiveDisks, stop: threading.Event) -> None:
    ticks = 0
    while not stop.wait(PERIOD_S):
        ticks += 1
        disks.write(ticks)


@contextmanager
def active(disks: ActiveDisks) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=write_repeatedly, args=(disks, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def loop(address: str, number: int) -> None:
    """Ask for pages, one after the other, until this process is ended."""
    path = PAGES[number % len(PAGES)]
    while True:
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
            while True:
                connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
                connection.getresponse().read()


def run_clients(address: str, clients: int) -> None:
    for number in range(clients):
        threading.Thread(target=loop, args=(address, number), daemon=True).start()
    threading.Event().wait()


@contextmanager
def looping(address: str, clients: int) -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(
        target=run_clients, args=(address, clients), daemon=True
    )
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def durations_ms(address: str, path: str, count: int) -> list[float]:
    """Return how long requests take, one after the other, each over a new connection."""
    times_ms = []
    for _ in range(count):
        time.sleep(BETWEEN_S)
        begun_s = time.perf_counter()
        connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        assert connection.getresponse().read()
        connection.close()
        times_ms.append((time.perf_counter() - begun_s) * 1e3)
    return sorted(times_ms)


def report(name: str, path: str, daemon: Process, count: int) -> float:
    """Print one row; return the median."""
    address = daemon.address or ""
    before, begun_s = cpu_s(daemon.pid), time.monotonic()
    ticks = get(address)
    times_ms = durations_ms(address, path, count)
    used = (cpu_s(daemon.pid) - before) / (time.monotonic() - begun_s)
    after = get(address)
    missed = value(after, "disksla_sampler_missed_ticks_total") - value(
        ticks, "disksla_sampler_missed_ticks_total"
    )
    median = statistics.median(times_ms)
    print(
        f"| {name} | {path} | {median:.0f} | {times_ms[int(0.95 * count)]:.0f} |"
        f" {times_ms[-1]:.0f} | {used:.2f} | {missed:.0f} |",
        flush=True,
    )
    return median


def measure_crowded(disks: str = "500", clients: str = "10", program: str = "") -> None:
    """Print the durations of scrapes alone and beside the clients, and of pages."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        machine = ActiveDisks(directory, int(disks))
        stack.enter_context(active(machine))
        config = directory / "disksla.yml"
        config.write_text(json.dumps({"state": {"directory": str(directory)}}))
        options = (
            f"--config.file={config}",
            f"--path.procfs={machine.procfs}",
            f"--path.sysfs={machine.sysfs}",
            f"--path.udev-data={directory / 'udev'}",
            "--web.unix-socket=",
        )
        daemon = started_at(stack, options, program=Path(program) if program else None)
        address = daemon.address or ""
        wait_for(address, "/-/ready")
        time.sleep(SETTLE_S)
        print(f"{disks} active disks; durations in ms:\n")
        print("| clients | request | median | 95 % | slowest | CPU | ticks missed |")
        print("|:--|:--|--:|--:|--:|--:|--:|")
        for page in (*PAGES, "/-/healthy"):
            report("none", page, daemon, 5)
        alone = report("none", SCRAPE, daemon, SCRAPES)
        with looping(address, int(clients)):
            time.sleep(5.0)
            beside = report(f"{clients} loop on pages", SCRAPE, daemon, SCRAPES)
            report(f"{clients} loop on pages", "/-/healthy", daemon, SCRAPES)
        again = report("none, again", SCRAPE, daemon, SCRAPES)
        print(f"\nbeside the clients, a scrape takes {2 * beside / (alone + again):.2f} as long")
