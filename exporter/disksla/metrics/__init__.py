"""Metrics: snapshot -> metric families -> the page that Prometheus scrapes.

A metric is one row in one of the tables `*_metrics.py`.
"""

from disksla.metrics.families import Family, Reports, page_families, snapshot_families
from disksla.metrics.self_metrics import BuildInfo
from disksla.metrics.status_line import status_line

__all__ = [
    "BuildInfo",
    "Family",
    "Reports",
    "page_families",
    "snapshot_families",
    "status_line",
]
