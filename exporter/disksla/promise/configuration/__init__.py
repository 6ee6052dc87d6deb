"""Configuration: settings, and the terms that apply to each disk."""

from disksla.promise.configuration.configuration import Configuration, ConfigurationText, TermsFile
from disksla.promise.configuration.disk_name import find_array, find_disk, in_order, is_below
from disksla.promise.configuration.found_terms import (
    UnusedEntry,
    find_terms,
    shadowed_entries,
    unused_entries,
)
from disksla.promise.configuration.matched import (
    Matched,
    changes,
    match_disks,
    with_kubernetes_volumes,
)
from disksla.promise.configuration.matching import (
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
from disksla.promise.configuration.settings import (
    PROBE_KINDS,
    PROBE_REQUEST_BYTES,
    DiskEntry,
    ProbeEntry,
    ProbeKind,
    Profile,
    SamplingSettings,
    Settings,
    detected_directory,
)
from disksla.promise.disk_entry import DiskMatch, parse_disk_size
