"""Configurations that scrape the simulated fleet every two seconds."""

from typing import Any

import yaml

from engines.documented import yaml_blocks
from engines.history import HOSTS
from fleet.schedule import DISKS_PER_HOST, host_name

DISKS = HOSTS * DISKS_PER_HOST
INTERVAL_S = 2


def scrape(fleet: str, *relabeling: dict[str, Any], **external: str) -> dict[str, Any]:
    """Return a configuration for Prometheus or vmagent, with external labels."""
    return {
        "global": {"scrape_interval": f"{INTERVAL_S}s", "external_labels": external},
        "scrape_configs": [
            {
                "job_name": "disksla",
                "static_configs": [
                    {"targets": [f"{host_name(host)}:10056" for host in range(HOSTS)]}
                ],
                "relabel_configs": [
                    *relabeling,
                    {"source_labels": ["__address__"], "target_label": "instance"},
                    {
                        "source_labels": ["__address__"],
                        "regex": "(.+):.+",
                        "replacement": "/$1/metrics",
                        "target_label": "__metrics_path__",
                    },
                    {"target_label": "__address__", "replacement": fleet},
                ],
            }
        ],
    }


def shard(number: int) -> list[dict[str, Any]]:
    """Return the relabeling of docs/fleet.md with which a server scrapes its part of the hosts."""
    [config] = [yaml.safe_load(block) for block in yaml_blocks() if "hashmod" in block]
    [job] = config["scrape_configs"]
    hashed, kept = job["relabel_configs"]
    return [hashed, {**kept, "regex": str(number)}]
