"""The HTTP server: sockets, HTTP, TLS, basic auth, limits on clients and their configuration."""

from disksla.server.config import WebConfig, describe
from disksla.server.http import (
    PLAIN_TEXT,
    HeaderLines,
    Reply,
    RequestHead,
    ServiceClass,
    accepted,
    accepts_gzip,
)
