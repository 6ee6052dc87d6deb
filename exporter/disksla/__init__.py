"""Prometheus exporter that explains why a cloud disk is slow."""

VERSION = "0.1.0"
