"""Network file storages: which are mounted, and whose they are; no mount is ever looked into."""

from disksla.kernel.nfs.identify import (
    Clues,
    FileStorage,
    is_of_network,
    is_proxied,
    mounted_storages,
    storage_at,
)
