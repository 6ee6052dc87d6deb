"""Configuration: settings, and the terms that apply to each disk."""

from disksla.config.matching import (
    CUSTOM_TERMS,
    assign,
    assign_all,
    find_entry,
    is_monitored,
    machine_limits,
    provision_of,
    type_limits,
    why_not_monitored,
)
from disksla.config.settings import (
    PROBE_KINDS,
    PROBE_REQUEST_BYTES,
    Configuration,
    DiskEntry,
    DiskMatch,
    ProbeEntry,
    ProbeKind,
    SamplingSettings,
    Settings,
)

__all__ = [
    "CUSTOM_TERMS",
    "PROBE_KINDS",
    "PROBE_REQUEST_BYTES",
    "Configuration",
    "DiskEntry",
    "DiskMatch",
    "ProbeEntry",
    "ProbeKind",
    "SamplingSettings",
    "Settings",
    "assign",
    "assign_all",
    "find_entry",
    "is_monitored",
    "machine_limits",
    "provision_of",
    "type_limits",
    "why_not_monitored",
]
