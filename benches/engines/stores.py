"""The same history in Prometheus, Thanos and VictoriaMetrics."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from engines.history import history, last_hour
from engines.programs import Programs, Store, local
from engines.recording import record
from engines.remote_write import await_ready, send
from support.monitoring_stack import Prometheus

_AHEAD_S = 1200
"""The history ends so long after the present: time for rules that are evaluated on it."""


class Stores(NamedTuple):
    """Stores with the same samples, and what runs more programs beside them."""

    programs: Programs
    start_s: int
    end_s: int
    prometheus: Store
    thanos: Prometheus
    """Thanos Query over two receivers, of which each has all samples."""
    victoria: Store
    receive_url: str
    endpoints: list[str]
    """Addresses of gRPC of two receivers, and of two rulers that a test may run."""

    @property
    def write_urls(self) -> list[str]:
        """Addresses that take remote write."""
        return [self.prometheus.write_url, self.receive_url, self.victoria.write_url]


@contextmanager
def stores_in(home: Path, length_s: int, deduplicated: str) -> Iterator[Stores]:
    """Run the stores, and write the history of the last hours to all of them."""
    end_s = int(time.time()) // 60 * 60 + _AHEAD_S
    with ExitStack() as stack:
        programs = Programs(stack, home)
        endpoints, writers = [local() for _ in range(4)], [local(), local()]
        hashring = programs.write("hashring.json", [{"endpoints": endpoints[:2]}])
        for name, grpc, write in zip(("a", "b"), endpoints, writers, strict=False):
            programs.receiver(name, grpc, local(), write, hashring)
        stores = Stores(
            programs,
            end_s - length_s,
            end_s,
            programs.prometheus("prometheus", {}),
            programs.query("query", endpoints),
            programs.victoria("victoria", {"-dedup.minScrapeInterval": deduplicated}),
            f"http://{writers[0]}/api/v1/receive",
            endpoints,
        )
        fill(stores)
        yield stores


def fill(stores: Stores) -> None:
    """Write the scraped samples to all stores."""
    for url in stores.write_urls:
        await_ready(url, stores.start_s * 1000)
    for series in history(stores.start_s, stores.end_s):
        for url in stores.write_urls:
            send(url, series)
    for url in stores.write_urls:
        send(url, last_hour(stores.end_s))


def record_all(stores: Stores) -> None:
    """Write the series that the rules record of the history to all stores."""
    record(stores.prometheus.api, stores.write_urls, stores.start_s, stores.end_s)
