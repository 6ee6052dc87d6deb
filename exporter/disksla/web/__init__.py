"""The HTTP server: routes, status page, TLS, basic auth and limits on clients."""

from disksla.web.config import WebConfig, describe

__all__ = ["WebConfig", "describe"]
