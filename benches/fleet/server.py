"""Server of the pages of all simulated hosts: http://127.0.0.1:PORT/host-0007/metrics."""

import gzip
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST

from disksla.serve.http_server.http_protocol import Reply, RequestHead
from disksla.serve.http_server.listen import ListenAddress
from disksla.serve.http_server.server import WebServer
from fleet.page import page_at

_PATH = re.compile(r"/host-(\d{4})/metrics")
_SAMPLE = re.compile(r"^[^#\n].*$", re.MULTILINE)
GZIP_LEVEL = 1
"""The level that the daemon uses."""


@contextmanager
def serve_fleet(
    seed: int,
    fleet_start_s: float,
    clock: Callable[[], float] = time.time,
    *,
    with_times: bool = False,
) -> Iterator[ListenAddress]:
    """Serve a fleet that started at a Unix time, and yield the address.

    The samples of a page may have the time of the clock, which need not be that of the scrape.
    """

    def application(request: RequestHead) -> Reply:
        match = _PATH.fullmatch(request.path)
        if match is None:
            return Reply(b"expected /host-NNNN/metrics\n", 404)
        now_s = clock()
        page = page_at(seed, int(match[1]), fleet_start_s, now_s)
        body = (_SAMPLE.sub(rf"\g<0> {now_s:.3f}", page) if with_times else page).encode()
        headers = [("Content-Type", CONTENT_TYPE_LATEST)]
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers.append(("Content-Encoding", "gzip"))
            body = gzip.compress(body, GZIP_LEVEL, mtime=0)
        return Reply(body, headers=tuple(headers))

    page_at(seed, 0, fleet_start_s, fleet_start_s)  # makes the playbacks before the first scrape
    server = WebServer(application, [ListenAddress("127.0.0.1", 0)])
    [address] = server.start()
    try:
        yield address
    finally:
        server.stop()
