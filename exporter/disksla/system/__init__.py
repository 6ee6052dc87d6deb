"""Services of the operating system: state file, jobs, systemd, log, lock, events, DMI."""

from disksla.system.dmi_provider import provider_of
from disksla.system.health import SourceHealth
