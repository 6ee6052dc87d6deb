"""Metrics: snapshot -> families of prometheus-client -> the page that Prometheus scrapes.

A metric is one row in one of the tables `*_metrics.py`.
"""

from disksla.serve.metrics.collector import Reports, SnapshotCollector, make_registry
from disksla.serve.metrics.self_metrics import BuildInfo, status_line
