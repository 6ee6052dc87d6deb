"""Prometheus exporter that explains why a cloud disk is slow."""

VERSION = "0.1.0"
"""The last version that was prepared; packaging/wheel writes that of the build."""
REVISION = "unknown"
"""The commit, which packaging/wheel writes; `-dirty` follows if files differed from it."""
DEFAULT_PORT = 10056
"""Of the daemon."""
