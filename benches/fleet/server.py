"""Server of the pages of all simulated hosts: http://127.0.0.1:PORT/host-0007/metrics."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST

from disksla.serve.http_server.http_protocol import Reply, RequestHead
from disksla.serve.http_server.listen import ListenAddress
from disksla.serve.http_server.server import WebServer
from fleet.hosts import page_at

_PATH = re.compile(r"/host-(\d{4})/metrics")


@contextmanager
def serve_fleet(seed: int, start_s: float) -> Iterator[ListenAddress]:
    """Serve a fleet that started at a Unix time, and yield the address."""

    def application(request: RequestHead) -> Reply:
        match = _PATH.fullmatch(request.path)
        if match is None:
            return Reply(b"expected /host-NNNN/metrics\n", 404)
        page = page_at(seed, int(match[1]), start_s, time.time())
        return Reply(page.encode(), headers=(("Content-Type", CONTENT_TYPE_LATEST),))

    server = WebServer(application, [ListenAddress("127.0.0.1", 0)])
    [address] = server.start()
    try:
        yield address
    finally:
        server.stop()
