"""Services of the operating system: state file, jobs, systemd, log, lock, events, DMI."""

from disksla.base.operating_system.dmi_provider import provider_of
from disksla.base.operating_system.health import SourceHealth
