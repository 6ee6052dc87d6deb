"""Prometheus exporter that explains why a cloud disk is slow."""
