"""Configuration: settings, and the terms that apply to each disk."""

from disksla.config.configuration import Configuration, ConfigurationText
from disksla.config.disk_name import find_disk, in_order, is_below
from disksla.config.fields import parse_disk_size
from disksla.config.found_terms import UnusedEntry, find_terms, shadowed_entries, unused_entries
from disksla.config.matched import Matched, changes, match_disks, with_kubernetes_volumes
from disksla.config.matching import (
    CUSTOM_TERMS,
    Assignments,
    assign,
    assign_all,
    client_limits,
    is_machine_known,
    is_monitored,
    is_shared_by,
    machine_limits,
    machine_type_of,
    provision_of,
    type_limits,
    why_not_monitored,
)
from disksla.config.settings import (
    PROBE_KINDS,
    PROBE_REQUEST_BYTES,
    DiskEntry,
    DiskMatch,
    ProbeEntry,
    ProbeKind,
    Profile,
    SamplingSettings,
    Settings,
    detected_directory,
)
from disksla.config.terms_file import TermsFile
