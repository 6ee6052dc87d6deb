"""Cost of TLS and passwords, and effect of many clients: `make bench ARGS=web`; see docs/web.md.

64 loop devices are sampled, 8 of them busy, so that pages are as large as in docs/performance.md.
The clients are separate processes on the same cores. Beside them, one scraper with the password
scrapes once a second; missed ticks are those that the daemon counts.
"""

import base64
import http.client
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import bcrypt

from bench.loops import loop_devices
from bench.measures import (
    Process,
    cpu_s,
    fio_arguments,
    resident_mib,
    start_daemon,
    started,
    value,
)
from support.certificates import make_certificates

CROWD = Path(__file__).with_name("crowd.py")
DEVICES, BUSY = 64, 8
SETTLE_S = 2.0
BETWEEN_S = 0.11
"""Time between scrapes: earlier ones would get the same snapshot."""
PASSWORD = b"correct horse"
CREDENTIALS = {"Authorization": "Basic " + base64.b64encode(b"prometheus:" + PASSWORD).decode()}
TLS = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
ALL_KINDS = (("scrapers", 100), ("idle", 300), ("slow", 50), ("guessers", 50))
CROWDS = (
    ("no other clients", ()),
    ("100 concurrent scrapers", (("scrapers", 100),)),
    ("300 idle connections", (("idle", 300),)),
    ("300 without a TLS handshake", (("silent", 300),)),
    ("50 slow clients", (("slow", 50),)),
    ("20 concurrent handshakes", (("handshakers", 20),)),
    ("50 with wrong passwords", (("guessers", 50),)),
    ("all at once", ALL_KINDS),
    ("all at once, again", ALL_KINDS),
    ("no other clients, again", ()),
)


class Client:
    """A scraper that keeps its connection open."""

    def __init__(self, address: str, authority: Path | None, headers: dict[str, str]) -> None:
        port = address.rpartition(":")[2]
        self._headers = headers
        self._connection = (
            http.client.HTTPConnection("localhost", int(port), timeout=20)
            if authority is None
            else http.client.HTTPSConnection(
                "localhost",
                int(port),
                timeout=20,
                context=ssl.create_default_context(cafile=authority),
            )
        )

    def scrape(self) -> tuple[bytes, float]:
        """Return a page and the duration of the scrape; raises OSError if it fails.

        A connection that the server has closed is opened again, as Prometheus does.
        """
        begun_s = time.perf_counter()
        was_open = self._connection.sock is not None
        try:
            page = self._request()
        except ConnectionError:
            self.close()
            if not was_open:
                raise
            page = self._request()
        return page, time.perf_counter() - begun_s

    def _request(self) -> bytes:
        self._connection.request("GET", "/metrics", headers=self._headers)
        response = self._connection.getresponse()
        page = response.read()
        if response.status != http.client.OK:
            raise OSError(f"{response.status} {response.reason}")
        return page

    def close(self) -> None:
        """Close the connection; the next scrape opens another."""
        self._connection.close()


class WebFiles(NamedTuple):
    """Directory of certificates and web configurations."""

    directory: Path

    @property
    def authority(self) -> Path:
        return self.directory / "authority.crt"

    def web_config(self, name: str, text: str) -> str:
        path = self.directory / f"{name}.yml"
        path.write_text(text)
        return str(path)


def users(cost: int) -> str:
    """Return the section basic_auth_users, with one user."""
    hashed = bcrypt.hashpw(PASSWORD, bcrypt.gensalt(cost)).decode()
    return f"basic_auth_users: {{prometheus: {hashed}}}\n"


def ready(client: Client) -> bytes:
    """Return the first page that can be scraped."""
    for _ in range(200):
        try:
            return client.scrape()[0]
        except OSError:
            client.close()
            time.sleep(0.05)
    raise TimeoutError


class Target(NamedTuple):
    """A daemon with one web configuration, and its scraper."""

    name: str
    daemon: Process
    client: Client


def measure_cost_of_tls(
    files: WebFiles, names: list[str], loaded: list[str], scrapes: int
) -> None:
    """Print the cost of a scrape over HTTP, with a password, over TLS, and with both.

    Four daemons are scraped in turn, so that other work on the machine affects all of them.
    """
    kinds = (("HTTP", ""), ("password", users(10)), ("TLS", TLS), ("both", TLS + users(10)))
    print("| | kept connection, ms | CPU | ratio | new connection, ms | CPU | ratio | MiB |")
    print("|:--|--:|--:|--:|--:|--:|--:|--:|")
    with ExitStack() as stack:
        stack.enter_context(started(fio_arguments(loaded, 600)))
        targets = []
        for number, (name, text) in enumerate(kinds):
            web = ["--web.config.file", files.web_config(f"web{number}", text)] if text else []
            daemon = start_daemon(stack, names, *web)
            authority = files.authority if "tls" in text else None
            client = Client(daemon.address or "", authority, CREDENTIALS)
            stack.callback(client.close)
            ready(client)
            targets.append(Target(name, daemon, client))
        kept, new = (costs_of(targets, scrapes, is_new=is_new) for is_new in (False, True))
        for target, *prices in zip(targets, kept, new, strict=True):
            cells = [
                f"{median:.1f} | {cpu:.1f} | {cpu / first:.2f}"
                for (median, cpu), (_, first) in zip(prices, (kept[0], new[0]), strict=True)
            ]
            memory = f"{resident_mib(target.daemon.pid):.1f}"
            print(f"| {' | '.join([target.name, *cells, memory])} |", flush=True)


def costs_of(targets: list[Target], scrapes: int, *, is_new: bool) -> list[tuple[float, float]]:
    """Return the median duration of a scrape and its CPU time, in ms, for each daemon."""
    times_s: list[list[float]] = [[] for _ in targets]
    spent_s = [0.0 for _ in targets]
    for _ in range(scrapes):
        time.sleep(BETWEEN_S)
        for number, target in enumerate(targets):
            if is_new:
                target.client.close()
            begun_s = cpu_s(target.daemon.pid)
            times_s[number].append(target.client.scrape()[1])
            spent_s[number] += cpu_s(target.daemon.pid) - begun_s
    return [
        (statistics.median(times) * 1e3, spent * 1e3 / scrapes)
        for times, spent in zip(times_s, spent_s, strict=True)
    ]


@contextmanager
def crowds(kinds: tuple[tuple[str, int], ...], port: str, files: WebFiles) -> Iterator[None]:
    """Run clients of these kinds until the end of the block."""
    with ExitStack() as stack:
        for kind, count in kinds:
            command = [sys.executable, str(CROWD), kind, port, str(files.authority), str(count)]
            crowd = stack.enter_context(started(command, stdout=subprocess.PIPE))
            assert crowd.stdout is not None
            stack.callback(crowd.stdout.close)
            crowd.stdout.readline()
        yield


def measure_crowds(files: WebFiles, names: list[str], loaded: list[str], seconds: float) -> None:
    """Print missed ticks, durations of scrapes and memory beside many clients."""
    print("| beside | ticks | missed | % | scrapes | refused | median, ms | slowest, ms | MiB |")
    print("|:--|--:|--:|--:|--:|--:|--:|--:|--:|")
    with ExitStack() as stack:
        stack.enter_context(started(fio_arguments(loaded, seconds * 20 + 120)))
        options = ["--web.config.file", files.web_config("crowds", TLS + users(10))]
        daemon = start_daemon(stack, names, *options)
        client = Client(daemon.address or "", files.authority, CREDENTIALS)
        stack.callback(client.close)
        ready(client)
        time.sleep(SETTLE_S)
        for name, kinds in CROWDS:
            before = ready(client)
            times_s: list[float] = []
            refused = 0
            with crowds(kinds, (daemon.address or "").rpartition(":")[2], files):
                until_s = time.monotonic() + seconds
                while time.monotonic() < until_s:
                    time.sleep(1)
                    try:
                        times_s.append(client.scrape()[1])
                    except OSError:
                        refused += 1
                        client.close()
                resident = resident_mib(daemon.pid)
            after = ready(client)
            report_crowd(name, before, after, times_s, refused, resident)


def report_crowd(
    name: str, before: bytes, after: bytes, times_s: list[float], refused: int, resident: float
) -> None:
    """Print one row."""
    ticks, missed = (
        value(after, f"disksla_sampler_{counter}_total")
        - value(before, f"disksla_sampler_{counter}_total")
        for counter in ("ticks", "missed_ticks")
    )
    times_ms = [each * 1e3 for each in times_s] or [float("nan")]
    print(
        f"| {name} | {ticks:.0f} | {missed:.0f} | {100 * missed / (ticks + missed):.2f} |"
        f" {len(times_s)} | {refused} | {statistics.median(times_ms):.0f} |"
        f" {max(times_ms):.0f} | {resident:.1f} |",
        flush=True,
    )


def measure_web(seconds: float) -> None:
    """Measure the cost of TLS and passwords, then the effect of many clients."""
    with ExitStack() as stack:
        files = WebFiles(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        make_certificates(files.directory)
        names, loaded = stack.enter_context(loop_devices(DEVICES, BUSY))
        print(f"A scrape of {DEVICES} disks, {BUSY} of them busy:\n")
        measure_cost_of_tls(files, names, loaded, 100)
        print("\nThe same over TLS with a password, once a second, beside other clients:\n")
        measure_crowds(files, names, loaded, seconds)
