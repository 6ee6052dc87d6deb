"""Block devices: their identity, what they are stacked on, and hotplug."""

from disksla.kernel.disks.csi_volume import CsiVolume, handle_hash, with_volume
from disksla.kernel.disks.disk import Disk, disk_key
from disksla.kernel.disks.layer import Layer
from disksla.kernel.disks.multipath import nvme_head, possible_paths, with_paths
from disksla.kernel.disks.stacking import (
    at_bottom,
    devices_below,
    devices_on,
    mounted_device,
    parts_of,
    with_stacking,
)
