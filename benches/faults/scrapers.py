"""100 concurrent scrapers of the real daemon: what they cost its sampler and its memory."""

import http.client
import threading
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

SCRAPERS = 100
_PATIENCE_S = 60.0


class ScrapeResult(NamedTuple):
    """Result of some rounds of scraping."""

    responses: dict[int, int]
    """Number of responses by status."""
    before: dict[str, float]
    """Metrics of the daemon about itself: those without labels."""
    after: dict[str, float]

    def increase(self, name: str) -> float:
        """Return by how much a metric has grown."""
        return self.after[name] - self.before[name]


def self_metrics(address: str) -> dict[str, float]:
    """Scrape the metrics of the daemon about itself."""
    connection = http.client.HTTPConnection(address, timeout=_PATIENCE_S)
    connection.request("GET", "/metrics")
    page = connection.getresponse().read().decode()
    connection.close()
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if not sample.labels
    }


def scrape_in_rounds(
    address: str, rounds: int, pause_s: float, scrapers: int = SCRAPERS
) -> ScrapeResult:
    """Scrape in rounds: all scrapers at once, each on its own connection, then a pause."""
    responses: dict[int, int] = {}
    lock = threading.Lock()
    start = threading.Barrier(scrapers)

    def scrape() -> None:
        connection = http.client.HTTPConnection(address, timeout=_PATIENCE_S)
        for _ in range(rounds):
            start.wait()
            connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
            response = connection.getresponse()
            response.read()
            with lock:
                responses[response.status] = responses.get(response.status, 0) + 1
            threading.Event().wait(pause_s)
        connection.close()

    before = self_metrics(address)
    threads = [threading.Thread(target=scrape) for _ in range(scrapers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ScrapeResult(responses, before, self_metrics(address))
