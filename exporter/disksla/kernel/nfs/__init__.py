"""NFS and other network file storages; no mount is ever looked into.

- `mountstats`: what the kernel counts of NFS mounts, and what of it is in flight.
- `identify`: which file storages are mounted, whose they are, and the NFS mounts that are disks.
- `nfs_files`: reads both, and what efs-utils and aznfs leave beside the mount table.
"""

from disksla.kernel.nfs.identify import FileStorage, is_of_network, nfs_mounts
from disksla.kernel.nfs.mountstats import MountReading, MountState
