"""Metrics: from a snapshot to the page that Prometheus scrapes."""

from disksla.metrics.self_metrics import BuildInfo
from disksla.metrics.status_line import status_line

__all__ = [
    "BuildInfo",
    "status_line",
]
