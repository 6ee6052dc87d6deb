"""A Prometheus that finds the fleet as a user's does, and evaluates the mixin."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fleet.history import host_name
from support import monitoring_stack as monitoring
from support.monitoring_stack import Prometheus

MIXIN = Path(__file__).parents[2] / "grafana" / "out"


def missing() -> str | None:
    """Say what cannot be done without Debian's prometheus; None if it is there."""
    if all(map(shutil.which, ("prometheus", "promtool"))):
        return None
    return "prometheus and promtool are missing (Debian's package prometheus)"


class Scraping(NamedTuple):
    """What a Prometheus is told to do."""

    fleet: str
    """Where the hosts are served."""
    hosts: int
    interval_s: float = 60.0
    rules_interval_s: float | None = None
    """None for that of scrapes."""
    block_minutes: int | None = None
    """What a block of data spans; None for Prometheus' two hours. A block is cut off the head when
    that spans half as much again."""
    rules: tuple[Path, ...] = (
        MIXIN / "prometheus_rules.yaml",
        MIXIN / "prometheus_alerts.yaml",
    )
    alertmanager: str | None = None


SILENT = Scraping("127.0.0.1:9", hosts=0, rules=())
"""It only answers."""


@contextmanager
def prometheus(scraping: Scraping, home: Path) -> Iterator[Prometheus]:
    """Run a Prometheus with its data in `home`/data."""
    config = write_configuration(scraping, home)
    options = ["--log.level=warn"]
    if scraping.block_minutes is not None:
        options.append(f"--storage.tsdb.min-block-duration={scraping.block_minutes}m")
        options.append(f"--storage.tsdb.max-block-duration={scraping.block_minutes}m")
    with monitoring.prometheus(config, home / "data", *options) as server:
        yield server


def write_configuration(scraping: Scraping, home: Path) -> Path:
    """Write prometheus.yml, and the list of hosts as service discovery would."""
    names = [f"{host_name(number)}:10056" for number in range(scraping.hosts)]
    targets = home / "hosts.json"
    targets.write_text(json.dumps([{"targets": names}]))
    pagers = [scraping.alertmanager] if scraping.alertmanager is not None else []
    document = {
        "global": {
            "scrape_interval": f"{scraping.interval_s:g}s",
            "scrape_timeout": f"{min(10.0, scraping.interval_s):g}s",
            "evaluation_interval": f"{scraping.rules_interval_s or scraping.interval_s:g}s",
        },
        "rule_files": [str(path) for path in scraping.rules],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": pagers}]}]},
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
                    {"target_label": "__address__", "replacement": scraping.fleet},
                ],
            }
        ],
    }
    path = home / "prometheus.yml"
    path.write_text(json.dumps(document, indent=1))  # JSON is YAML
    return path
