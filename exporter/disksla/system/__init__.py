"""Services of the operating system: state file, scheduler, systemd, log, lock, events, DMI."""

from disksla.system.health import SourceHealth
from disksla.system.provider import provider_of

__all__ = [
    "SourceHealth",
    "provider_of",
]
