"""Serves Keystone or Cinder by wsgiref; runs with the Python of their environment.

Arguments: module of the application, port, arguments of the application.
"""

import importlib
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


class Threading(ThreadingMixIn, WSGIServer):
    daemon_threads = True


def main(module: str, port: str, *arguments: str) -> None:
    sys.argv[1:] = arguments
    application = importlib.import_module(module).application
    with make_server("127.0.0.1", int(port), application, Threading, Quiet) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
