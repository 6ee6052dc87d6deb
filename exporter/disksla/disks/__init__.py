"""Block devices: their identity, what they are stacked on, and hotplug."""

from disksla.disks.busy import (
    BENCHMARK_MAX_UTILIZATION,
    PROBE_MAX_LOAD,
    PROBE_MAX_QUEUE_DEPTH,
    VERIFY_MAX_OTHER_LOAD,
    activity_between,
    work_of,
)
from disksla.disks.csi_volume import CsiVolume, handle_hash, with_volume
from disksla.disks.disk import Disk, disk_key
from disksla.disks.multipath import nvme_head, possible_paths, with_paths
from disksla.disks.stacking import (
    at_bottom,
    devices_below,
    devices_on,
    mounted_device,
    parts_of,
    with_stacking,
)
