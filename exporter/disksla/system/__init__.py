"""Services of the host: state file, scheduler, systemd, log, lock."""

from disksla.system.health import SourceHealth

__all__ = [
    "SourceHealth",
]
