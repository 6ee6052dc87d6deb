"""Metrics: snapshot -> families of prometheus-client -> the page that Prometheus scrapes.

A metric is one row in one of the tables `*_metrics.py`.
"""

from disksla.metrics.collector import Reports, SnapshotCollector, make_registry
from disksla.metrics.self_metrics import BuildInfo
from disksla.metrics.status_line import status_line
