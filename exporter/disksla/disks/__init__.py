"""Block devices: their identity, what they are stacked on, and hotplug."""

from disksla.disks.disk import Disk, disk_key
from disksla.disks.stacking import devices_on, with_stacking

__all__ = [
    "Disk",
    "devices_on",
    "disk_key",
    "with_stacking",
]
