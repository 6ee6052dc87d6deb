"""A program that answers as it is told, on a port or a Unix socket."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def answering(
    *answers: bytes, path: Path | None = None, asked: list[bytes] | None = None
) -> Iterator[str]:
    """Answer one request after another with these bytes; yield the address.

    It is a Unix socket if a path is given, else a port on loopback. The requests are added to
    `asked`.
    """
    with socket.create_server(("127.0.0.1", 0)) if path is None else listening(path) as server:

        def serve() -> None:
            for answer in answers:
                client, _ = server.accept()
                with client:
                    request = client.recv(65536)
                    if asked is not None:
                        asked.append(request)
                    client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}" if path is None else f"unix://{path}"
        thread.join()


def listening(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    return server


def page(body: str, status: int = 200) -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
