"""The HTTP server: sockets, HTTP, TLS, basic auth, limits on clients and their configuration."""

from disksla.serve.http_server.config import WebConfig, describe
from disksla.serve.http_server.http_protocol import (
    PLAIN_TEXT,
    HeaderLines,
    Reply,
    RequestHead,
    ServiceClass,
    accepted,
    accepts_gzip,
)
