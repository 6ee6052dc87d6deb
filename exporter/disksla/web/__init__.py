"""The HTTP server: routes, pages, JSON, TLS, basic auth and limits on clients."""

from disksla.web.config import WebConfig, describe
from disksla.web.disks_document import DISKS_PATH, DiskDocument, DisksDocument, disk_document

__all__ = [
    "DISKS_PATH",
    "DiskDocument",
    "DisksDocument",
    "WebConfig",
    "describe",
    "disk_document",
]
