"""Sockets that systemd opened for us and passed on, as sd_listen_fds(3) has it."""

import os
import socket
from collections.abc import MutableMapping

from disksla.core.refusal import Refusal

FIRST_DESCRIPTOR = 3  # SD_LISTEN_FDS_START


def inherited_sockets(
    environment: MutableMapping[str, str], first: int = FIRST_DESCRIPTOR
) -> tuple[socket.socket, ...]:
    """Take the sockets that were passed to this process, which listen already; often none.

    What said so is taken from the environment: it concerns no child of ours. Raises Refusal for
    what is no TCP socket that listens.
    """
    pid = environment.pop("LISTEN_PID", "")
    count = environment.pop("LISTEN_FDS", "")
    environment.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdecimal():
        return ()
    return tuple(_socket(descriptor) for descriptor in range(first, first + int(count)))


def _socket(descriptor: int) -> socket.socket:
    try:
        os.set_inheritable(descriptor, False)  # noqa: FBT003 -- has no name
        passed = socket.socket(fileno=descriptor)
    except OSError as error:
        raise Refusal(f"systemd passed descriptor {descriptor}: {error.strerror}") from error
    if (
        passed.family not in {socket.AF_INET, socket.AF_INET6}
        or passed.type != socket.SOCK_STREAM
        or not passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    ):
        passed.close()
        raise Refusal(
            f"systemd passed descriptor {descriptor}, on which nobody can connect by TCP;"
            " expected ListenStream= with a port, and Accept=no"
        )
    return passed
