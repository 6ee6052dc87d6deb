"""The HTTP server: routes, pages, JSON, TLS, basic auth and limits on clients."""

from disksla.web.charts import VERDICT_COLOURS, VERDICT_STYLE
from disksla.web.config import WebConfig, describe
from disksla.web.disk_card import BAD_VERDICTS, Past
from disksla.web.disks_document import (
    DISKS_PATH,
    DiskDocument,
    DisksDocument,
    LiveDiskDocument,
    disk_document,
    disks_document,
)

__all__ = [
    "BAD_VERDICTS",
    "DISKS_PATH",
    "VERDICT_COLOURS",
    "VERDICT_STYLE",
    "DiskDocument",
    "DisksDocument",
    "LiveDiskDocument",
    "Past",
    "WebConfig",
    "describe",
    "disk_document",
    "disks_document",
]
