"""The API of Prometheus on loopback, with the answers of a made-up server."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer

from disksla.clouds.http_client import Request
from support.report_series import Server


class Api(HTTPServer):
    """The API of Prometheus on loopback."""

    def __init__(self, server: Server) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = server
        self.headers: list[Mapping[str, str]] = []
        self.address = f"http://127.0.0.1:{self.server_port}/prometheus"


class _Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        self.server.headers.append(dict(self.headers))
        response = self.server.answers(Request("", "api", "GET", self.path))
        self.send_response(response.status)
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(server: Server) -> Iterator[Api]:
    """Serve the answers of a server."""
    with Api(server) as api:
        thread = threading.Thread(target=api.serve_forever)
        thread.start()
        try:
            yield api
        finally:
            api.shutdown()
            thread.join()
