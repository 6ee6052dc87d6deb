"""Services of the operating system: state file, scheduler, systemd, log, lock, events."""

from disksla.system.health import SourceHealth

__all__ = [
    "SourceHealth",
]
