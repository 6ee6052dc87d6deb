"""What TLS and passwords cost, and what crowds do: `make bench ARGS=web`; see docs/web.md.

64 loop devices are watched, 8 of them busy, so that pages are as large as in docs/performance.md.
Crowds are processes of their own on the same cores. Beside each, one scraper that knows the
password asks once a second; sampling is judged by the daemon's own account.
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
APART_S = 0.11
"""Closer scrapes would get the same page."""
PASSWORD = b"correct horse"
ALICE = {"Authorization": "Basic " + base64.b64encode(b"prometheus:" + PASSWORD).decode()}
TLS = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
EVERYBODY = (("scrapers", 100), ("idle", 300), ("slow", 50), ("guessers", 50))
CROWDS = (
    ("nobody else", ()),
    ("100 scrapers at once", (("scrapers", 100),)),
    ("300 idle connections", (("idle", 300),)),
    ("300 that never begin TLS", (("silent", 300),)),
    ("50 slow clients", (("slow", 50),)),
    ("20 handshakes at a time", (("handshakers", 20),)),
    ("50 that guess passwords", (("guessers", 50),)),
    ("all at once", EVERYBODY),
    ("all at once, again", EVERYBODY),
    ("nobody else, again", ()),
)


class Client:
    """A scraper that keeps its connection."""

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
        """Give a page, and how long it took; raises OSError where there was none.

        A connection that was closed meanwhile is made anew, as Prometheus does it.
        """
        begun_s = time.perf_counter()
        was_open = self._connection.sock is not None
        try:
            page = self._ask()
        except ConnectionError:
            self.close()
            if not was_open:
                raise
            page = self._ask()
        return page, time.perf_counter() - begun_s

    def _ask(self) -> bytes:
        self._connection.request("GET", "/metrics", headers=self._headers)
        answer = self._connection.getresponse()
        page = answer.read()
        if answer.status != http.client.OK:
            raise OSError(f"{answer.status} {answer.reason}")
        return page

    def close(self) -> None:
        """Close the connection; the next scrape makes another."""
        self._connection.close()


class Papers(NamedTuple):
    """Where certificates and web configurations lie."""

    directory: Path

    @property
    def authority(self) -> Path:
        return self.directory / "authority.crt"

    def web_config(self, name: str, text: str) -> str:
        path = self.directory / f"{name}.yml"
        path.write_text(text)
        return str(path)


def users(cost: int) -> str:
    """Give the section of the one user that there is."""
    hashed = bcrypt.hashpw(PASSWORD, bcrypt.gensalt(cost)).decode()
    return f"basic_auth_users: {{prometheus: {hashed}}}\n"


def ready(client: Client) -> bytes:
    """Scrape as soon as there is something to be scraped."""
    for _ in range(200):
        try:
            return client.scrape()[0]
        except OSError:
            client.close()
            time.sleep(0.05)
    raise TimeoutError


class Priced(NamedTuple):
    """A daemon that is scraped in one way."""

    name: str
    daemon: Process
    client: Client


def measure_price(papers: Papers, names: list[str], loaded: list[str], scrapes: int) -> None:
    """Print what a scrape takes in clear, with a password, in TLS, and with both.

    Four daemons are scraped in turn, so that what else the machine does falls on all of them.
    """
    kinds = (("in clear", ""), ("password", users(10)), ("TLS", TLS), ("both", TLS + users(10)))
    print("| | kept connection, ms | CPU | ratio | new connection, ms | CPU | ratio | MiB |")
    print("|:--|--:|--:|--:|--:|--:|--:|--:|")
    with ExitStack() as stack:
        stack.enter_context(started(fio_arguments(loaded, 600)))
        priced = []
        for number, (name, text) in enumerate(kinds):
            web = ["--web.config.file", papers.web_config(f"price{number}", text)] if text else []
            daemon = start_daemon(stack, names, *web)
            authority = papers.authority if "tls" in text else None
            client = Client(daemon.address or "", authority, ALICE)
            stack.callback(client.close)
            ready(client)
            priced.append(Priced(name, daemon, client))
        kept, new = (prices_of(priced, scrapes, is_new=is_new) for is_new in (False, True))
        for one, *prices in zip(priced, kept, new, strict=True):
            cells = [
                f"{median:.1f} | {cpu:.1f} | {cpu / first:.2f}"
                for (median, cpu), (_, first) in zip(prices, (kept[0], new[0]), strict=True)
            ]
            memory = f"{resident_mib(one.daemon.pid):.1f}"
            print(f"| {' | '.join([one.name, *cells, memory])} |", flush=True)


def prices_of(priced: list[Priced], scrapes: int, *, is_new: bool) -> list[tuple[float, float]]:
    """Give for each the median time of a scrape, and its CPU time, in ms."""
    times_s: list[list[float]] = [[] for _ in priced]
    spent_s = [0.0 for _ in priced]
    for _ in range(scrapes):
        time.sleep(APART_S)
        for number, one in enumerate(priced):
            if is_new:
                one.client.close()
            begun_s = cpu_s(one.daemon.pid)
            times_s[number].append(one.client.scrape()[1])
            spent_s[number] += cpu_s(one.daemon.pid) - begun_s
    return [
        (statistics.median(times) * 1e3, spent * 1e3 / scrapes)
        for times, spent in zip(times_s, spent_s, strict=True)
    ]


@contextmanager
def crowds(kinds: tuple[tuple[str, int], ...], port: str, papers: Papers) -> Iterator[None]:
    """Let crowds of these kinds be there until the end of the block."""
    with ExitStack() as stack:
        for kind, count in kinds:
            words = [sys.executable, str(CROWD), kind, port, str(papers.authority), str(count)]
            crowd = stack.enter_context(started(words, stdout=subprocess.PIPE))
            assert crowd.stdout is not None
            stack.callback(crowd.stdout.close)
            crowd.stdout.readline()
        yield


def measure_crowds(papers: Papers, names: list[str], loaded: list[str], seconds: float) -> None:
    """Print how sampling, a rightful scraper and memory fare beside crowds."""
    print("| beside | ticks | missed | % | scrapes | refused | median, ms | slowest, ms | MiB |")
    print("|:--|--:|--:|--:|--:|--:|--:|--:|--:|")
    with ExitStack() as stack:
        stack.enter_context(started(fio_arguments(loaded, seconds * 20 + 120)))
        options = ["--web.config.file", papers.web_config("crowds", TLS + users(10))]
        daemon = start_daemon(stack, names, *options)
        client = Client(daemon.address or "", papers.authority, ALICE)
        stack.callback(client.close)
        ready(client)
        time.sleep(SETTLE_S)
        for name, kinds in CROWDS:
            before = ready(client)
            times_s: list[float] = []
            refused = 0
            with crowds(kinds, (daemon.address or "").rpartition(":")[2], papers):
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
        value(after, f"disksla_sampler_{what}_total")
        - value(before, f"disksla_sampler_{what}_total")
        for what in ("ticks", "missed_ticks")
    )
    times_ms = [each * 1e3 for each in times_s] or [float("nan")]
    print(
        f"| {name} | {ticks:.0f} | {missed:.0f} | {100 * missed / (ticks + missed):.2f} |"
        f" {len(times_s)} | {refused} | {statistics.median(times_ms):.0f} |"
        f" {max(times_ms):.0f} | {resident:.1f} |",
        flush=True,
    )


def measure_web(seconds: float) -> None:
    """Measure both."""
    with ExitStack() as stack:
        papers = Papers(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        make_certificates(papers.directory)
        names, loaded = stack.enter_context(loop_devices(DEVICES, BUSY))
        print(f"A scrape of {DEVICES} disks, {BUSY} of them busy:\n")
        measure_price(papers, names, loaded, 100)
        print("\nThe same over TLS with a password, once a second, beside crowds:\n")
        measure_crowds(papers, names, loaded, seconds)
