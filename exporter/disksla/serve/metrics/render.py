"""Rendering of a metrics page: content negotiation, format and compression.

There are two formats: OpenMetrics 1.0, which Prometheus prefers, and the text format 0.0.4 for all
other clients.
"""

import gzip
import os
import sys
import time
from collections.abc import Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from disksla import REVISION, VERSION
from disksla.serve.http_server import Reply, accepted, accepts_gzip
from disksla.serve.metrics.self_metrics import BuildInfo

GZIP_LEVEL = 1
"""Takes a third of the time of level 6, for a quarter more bytes."""


def render_metrics(
    registry: CollectorRegistry,
    accept: str = "",
    accept_encoding: str = "",
    names: Sequence[str] = (),
) -> Reply:
    """Render what a registry collects, or only the samples called `names`.

    `accept` and `accept_encoding` are the values of these request headers.
    """
    chosen = registry.restricted_registry(names) if names else registry
    headers = {"Vary": "Accept, Accept-Encoding"}
    if _prefers_openmetrics(accept):
        headers["Content-Type"] = openmetrics.CONTENT_TYPE_LATEST
        body: bytes = openmetrics.generate_latest(chosen, openmetrics.ALLOWUTF8)  # type: ignore[no-untyped-call]
    else:
        headers["Content-Type"] = CONTENT_TYPE_PLAIN_0_0_4
        body = generate_latest(chosen, openmetrics.ALLOWUTF8)
    if accepts_gzip(accept_encoding):
        headers["Content-Encoding"] = "gzip"
        body = gzip.compress(body, GZIP_LEVEL, mtime=0)
    return Reply(body, headers=tuple(headers.items()))


def _prefers_openmetrics(accept: str) -> bool:
    """Return whether an Accept header has OpenMetrics 1.0, and does not prefer the text format."""
    openmetrics_quality = text_quality = 0.0
    for each in accepted(accept):
        if each.value == "application/openmetrics-text":
            versions = {pair for pair in each.parameters if pair.startswith("version=")}
            if versions <= {"version=1.0.0"}:
                openmetrics_quality = max(openmetrics_quality, each.quality)
        elif each.value == "text/plain":
            text_quality = max(text_quality, each.quality)
    return openmetrics_quality > 0 and openmetrics_quality >= text_quality


def read_build_info() -> BuildInfo:
    """Return the versions of this process, with a configuration that was loaded just now."""
    return BuildInfo(
        version=VERSION,
        revision=REVISION,
        python_version=".".join(map(str, sys.version_info[:3])),
        kernel_release=os.uname().release,
        reload_successful=True,
        reload_success_timestamp_s=time.time(),
    )
