"""Prometheus that scrapes the fleet by service discovery, and evaluates the mixin."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST

from disksla.serve.http_server.connection import ListenAddress
from disksla.serve.http_server.http_protocol import Reply, RequestHead
from disksla.serve.http_server.server import WebServer
from fleet.hosts import host_name, page_at
from support import monitoring_stack as monitoring
from support.monitoring_stack import Prometheus

_PATH = re.compile(r"/host-(\d{4})/metrics")


@contextmanager
def serve_fleet(seed: int, start_s: float) -> Iterator[ListenAddress]:
    """Serve a fleet that started at a Unix time, and yield the address."""

    def application(request: RequestHead) -> Reply:
        match = _PATH.fullmatch(request.path)
        if match is None:
            return Reply(b"expected /host-NNNN/metrics\n", 404)
        page = page_at(seed, int(match[1]), start_s, time.time())
        return Reply(page.encode(), headers=(("Content-Type", CONTENT_TYPE_LATEST),))

    server = WebServer(application, [ListenAddress("127.0.0.1", 0)])
    [address] = server.start()
    try:
        yield address
    finally:
        server.stop()


_RETENTION = "--storage.tsdb.retention.time=1y"
"""By default, Prometheus deletes what is older than 15 days."""
MIXIN = Path(__file__).parents[2] / "grafana" / "out"


def missing() -> str | None:
    """Return which programs are missing; None if all are installed."""
    if all(map(shutil.which, ("prometheus", "promtool"))):
        return None
    return "prometheus and promtool are missing (package prometheus of Debian)"


class ScrapeConfig(NamedTuple):
    """What Prometheus scrapes and evaluates."""

    fleet: str
    """Address of the server of the hosts."""
    hosts: int
    interval_s: float = 60.0
    rules: tuple[Path, ...] = (MIXIN / "prometheus_rules.yaml", MIXIN / "prometheus_alerts.yaml")
    alertmanager: str | None = None


NO_TARGETS = ScrapeConfig("127.0.0.1:9", hosts=0, rules=())
"""Scrapes nothing, and answers queries."""


@contextmanager
def prometheus(scrape: ScrapeConfig, home: Path) -> Iterator[Prometheus]:
    """Run Prometheus with its data in `home`/data, its configuration beside it."""
    names = [f"{host_name(number)}:10056" for number in range(scrape.hosts)]
    targets = home / "hosts.json"
    targets.write_text(json.dumps([{"targets": names}]))
    alertmanagers = [scrape.alertmanager] if scrape.alertmanager is not None else []
    document = {
        "global": {
            "scrape_interval": f"{scrape.interval_s:g}s",
            "scrape_timeout": f"{min(10.0, scrape.interval_s):g}s",
            "evaluation_interval": f"{scrape.interval_s:g}s",
        },
        "rule_files": [str(path) for path in scrape.rules],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": alertmanagers}]}]},
        "scrape_configs": [
            {
                "job_name": "disksla",
                "file_sd_configs": [{"files": [str(targets)]}],
                "relabel_configs": [
                    {"source_labels": ["__address__"], "target_label": "instance"},
                    {
                        "source_labels": ["__address__"],
                        "regex": "(.+):.+",
                        "replacement": "/$1/metrics",
                        "target_label": "__metrics_path__",
                    },
                    {"target_label": "__address__", "replacement": scrape.fleet},
                ],
            }
        ],
    }
    config = home / "prometheus.yml"
    config.write_text(json.dumps(document, indent=1))  # JSON is YAML
    options = ["--log.level=warn", "--web.enable-lifecycle", _RETENTION]
    with monitoring.prometheus(config, home / "data", *options) as server:
        yield server
