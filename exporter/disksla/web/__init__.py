"""The HTTP server: routes, status page, TLS and access."""

from disksla.web.config import WebConfig, describe

__all__ = ["WebConfig", "describe"]
