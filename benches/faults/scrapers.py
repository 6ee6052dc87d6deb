"""100 concurrent scrapers of the real daemon: what they cost its sampler and its memory."""

import http.client
import threading
import time
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

SCRAPERS = 100
_PATIENCE_S = 60.0


class SelfMetrics(NamedTuple):
    """Metrics of the daemon about itself."""

    ticks: float
    missed_ticks: float
    resident_bytes: float
    cpu_s: float


class ScrapeResult(NamedTuple):
    """Result of some rounds of scraping."""

    responses: dict[int, int]
    """Number of responses by status."""
    seconds: float
    slowest_s: float
    before: SelfMetrics
    after: SelfMetrics

    @property
    def missed_share(self) -> float:
        """Missed ticks as a share of those that were due."""
        missed = self.after.missed_ticks - self.before.missed_ticks
        return missed / (missed + self.after.ticks - self.before.ticks)

    @property
    def growth_bytes(self) -> float:
        """Growth of the daemon's resident memory."""
        return self.after.resident_bytes - self.before.resident_bytes


def self_metrics(address: str) -> SelfMetrics:
    """Scrape the metrics of the daemon about itself."""
    connection = http.client.HTTPConnection(address, timeout=_PATIENCE_S)
    connection.request("GET", "/metrics")
    page = connection.getresponse().read().decode()
    connection.close()
    values = {
        sample.name: sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if not sample.labels
    }
    return SelfMetrics(
        values["disksla_sampler_ticks_total"],
        values["disksla_sampler_missed_ticks_total"],
        values["process_resident_memory_bytes"],
        values["process_cpu_seconds_total"],
    )


def scrape_in_rounds(
    address: str, rounds: int, pause_s: float, scrapers: int = SCRAPERS
) -> ScrapeResult:
    """Scrape in rounds: all scrapers at once, each on its own connection, then a pause."""
    responses: dict[int, int] = {}
    slowest_s = 0.0
    lock = threading.Lock()
    start = threading.Barrier(scrapers)

    def scrape() -> None:
        nonlocal slowest_s
        connection = http.client.HTTPConnection(address, timeout=_PATIENCE_S)
        for _ in range(rounds):
            start.wait()
            started_s = time.monotonic()
            connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
            response = connection.getresponse()
            response.read()
            took_s = time.monotonic() - started_s
            with lock:
                responses[response.status] = responses.get(response.status, 0) + 1
                slowest_s = max(slowest_s, took_s)
            threading.Event().wait(pause_s)
        connection.close()

    before = self_metrics(address)
    started_s = time.monotonic()
    threads = [threading.Thread(target=scrape) for _ in range(scrapers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - started_s
    return ScrapeResult(responses, seconds, slowest_s, before, self_metrics(address))


def idle(address: str, seconds: float) -> ScrapeResult:
    """Do not scrape for a while: ticks missed then are missed because of the machine."""
    before = self_metrics(address)
    threading.Event().wait(seconds)
    return ScrapeResult({}, seconds, 0.0, before, self_metrics(address))


def header() -> str:
    """Return the header of the table."""
    return (
        "| scrapers | scrapes | per s | slowest ms | ticks | missed | RSS MiB before | after |"
        " CPU |\n|:--|--:|--:|--:|--:|--:|--:|--:|--:|"
    )


def table_row(name: str, result: ScrapeResult) -> str:
    """Return the table row of one result."""
    before, after = result.before, result.after
    scrapes = sum(result.responses.values())
    return (
        f"| {name} | {scrapes} | {scrapes / result.seconds:.0f} | {1e3 * result.slowest_s:.0f} |"
        f" {after.ticks - before.ticks:.0f} | {result.missed_share:.2%} |"
        f" {before.resident_bytes / 2**20:.1f} | {after.resident_bytes / 2**20:.1f} |"
        f" {(after.cpu_s - before.cpu_s) / result.seconds:.0%} |"
    )
