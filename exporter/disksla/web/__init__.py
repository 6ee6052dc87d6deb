"""The HTTP server: routes, pages, JSON, TLS, basic auth and limits on clients."""

from disksla.web.config import WebConfig, describe
from disksla.web.disks_document import DISKS_PATH, DisksDocument

__all__ = ["DISKS_PATH", "DisksDocument", "WebConfig", "describe"]
