"""Copies bytes between its standard input and output and a port of this machine.

QEMU starts it for each connection that the virtual machine opens (guestfwd).
"""

import os
import socket
import sys
import threading

_CHUNK_BYTES = 65536


def _send(peer: socket.socket) -> None:
    while chunk := os.read(sys.stdin.fileno(), _CHUNK_BYTES):
        peer.sendall(chunk)
    peer.shutdown(socket.SHUT_WR)


def main(port: int) -> None:
    """Copy until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port)) as peer:
        threading.Thread(target=_send, args=(peer,), daemon=True).start()
        while chunk := peer.recv(_CHUNK_BYTES):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
