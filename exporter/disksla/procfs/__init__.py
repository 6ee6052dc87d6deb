"""Files of procfs, and sysfs `inflight`: read whole, then parsed by pure functions."""

from disksla.procfs.close_sample import CloseSample
from disksla.procfs.diskstats import (
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
    together,
    unwrap,
)
from disksla.procfs.iowait import HostWait
from disksla.procfs.kubelet_mounts import KubeletMount, kubelet_device, kubelet_mount, names_in_use
from disksla.procfs.mountinfo import Mount, parse_mountinfo
from disksla.procfs.mountstats import NFS, MountReading, Mountstats, mount_blocks, parse_mountstats
