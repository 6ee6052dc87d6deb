"""NFS and other network file storages; no mount is ever looked into.

- `mountstats`: what the kernel counts of NFS mounts.
- `identify`: which file storages are mounted, and whose they are.
- `nfs_files`: reads both, and what efs-utils and aznfs leave beside the mount table.
"""

from disksla.kernel.nfs.identify import (
    Clues,
    FileStorage,
    is_of_network,
    is_proxied,
    mounted_storages,
    storage_at,
)
from disksla.kernel.nfs.mountstats import (
    NFS,
    MountReading,
    Mountstats,
    mount_blocks,
    parse_mountstats,
)
