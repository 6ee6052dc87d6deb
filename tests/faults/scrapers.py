"""A hundred scrapers at once on the real daemon: what that does to its sampler and its memory."""

import http.client
import threading
import time
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

SCRAPERS = 100
_PATIENCE_S = 60.0


class Account(NamedTuple):
    """What the daemon says of itself."""

    ticks: float
    missed_ticks: float
    resident_bytes: float
    cpu_s: float


class Flood(NamedTuple):
    """What scraping came to."""

    answers: dict[int, int]
    """By status."""
    seconds: float
    slowest_s: float
    before: Account
    after: Account

    @property
    def missed_share(self) -> float:
        """Of the ticks that were due."""
        missed = self.after.missed_ticks - self.before.missed_ticks
        return missed / (missed + self.after.ticks - self.before.ticks)

    @property
    def grown_bytes(self) -> float:
        """By which the daemon is larger afterwards."""
        return self.after.resident_bytes - self.before.resident_bytes


def account(address: str) -> Account:
    """Ask the daemon."""
    connection = http.client.HTTPConnection(address, timeout=_PATIENCE_S)
    connection.request("GET", "/metrics")
    page = connection.getresponse().read().decode()
    connection.close()
    told = {
        sample.name: sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if not sample.labels
    }
    return Account(
        told["disksla_sampler_ticks_total"],
        told["disksla_sampler_missed_ticks_total"],
        told["process_resident_memory_bytes"],
        told["process_cpu_seconds_total"],
    )


def flood(address: str, rounds: int, pause_s: float, scrapers: int = SCRAPERS) -> Flood:
    """Scrape in rounds: all scrapers at once, each on its connection, with a pause between."""
    answers: dict[int, int] = {}
    slowest_s = 0.0
    counting = threading.Lock()
    start = threading.Barrier(scrapers)

    def scrape() -> None:
        nonlocal slowest_s
        connection = http.client.HTTPConnection(address, timeout=_PATIENCE_S)
        for _ in range(rounds):
            start.wait()
            begun_s = time.monotonic()
            connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            answer.read()
            took_s = time.monotonic() - begun_s
            with counting:
                answers[answer.status] = answers.get(answer.status, 0) + 1
                slowest_s = max(slowest_s, took_s)
            threading.Event().wait(pause_s)
        connection.close()

    before = account(address)
    begun_s = time.monotonic()
    threads = [threading.Thread(target=scrape) for _ in range(scrapers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Flood(answers, time.monotonic() - begun_s, slowest_s, before, account(address))


def quiet(address: str, seconds: float) -> Flood:
    """Let the daemon be for a while: what it misses then is the machine's doing."""
    before = account(address)
    threading.Event().wait(seconds)
    return Flood({}, seconds, 0.0, before, account(address))


def head() -> str:
    """Give the headings of the table."""
    return (
        "| scrapers | scrapes | per s | slowest ms | ticks | missed | RSS MiB before | after |"
        " CPU |\n|:--|--:|--:|--:|--:|--:|--:|--:|--:|"
    )


def row(name: str, seen: Flood) -> str:
    """Give the row of one flood."""
    scrapes = sum(seen.answers.values())
    ticks = seen.after.ticks - seen.before.ticks
    return (
        f"| {name} | {scrapes} | {scrapes / seen.seconds:.0f} | {1e3 * seen.slowest_s:.0f} |"
        f" {ticks:.0f} | {seen.missed_share:.2%} | {seen.before.resident_bytes / 2**20:.1f} |"
        f" {seen.after.resident_bytes / 2**20:.1f} |"
        f" {(seen.after.cpu_s - seen.before.cpu_s) / seen.seconds:.0%} |"
    )
