"""Files of procfs, and sysfs `inflight`: read whole, then parsed by pure functions."""

from disksla.kernel.procfs.close_sample import CloseSample
from disksla.kernel.procfs.diskstats import (
    LINE_HEAD,
    SECTOR_BYTES,
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
from disksla.kernel.procfs.kubelet_mounts import (
    KubeletMount,
    kubelet_device,
    kubelet_mount,
    names_in_use,
)
from disksla.kernel.procfs.mountinfo import Mount, file_system_mounts, parse_mountinfo, unescape
