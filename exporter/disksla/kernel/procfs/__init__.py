"""Files of procfs, and sysfs `inflight`: read whole, then parsed by pure functions."""

from disksla.kernel.procfs.diskstats import (
    LINE_HEAD,
    SECTOR_BYTES,
    CloseSample,
    Counters,
    CounterValues,
    DiskstatsLine,
    MalformedLineError,
    difference,
    has_decreased,
    parse_line,
    to_counters,
    unwrap,
)
from disksla.kernel.procfs.iowait import HostWait
from disksla.kernel.procfs.mountinfo import (
    KubeletMount,
    Mount,
    file_system_mounts,
    kubelet_device,
    kubelet_mount,
    names_in_use,
    parse_mountinfo,
    unescape,
)
