"""The interface to systemd: sd_notify(3) messages, the watchdog, and socket activation.

A message is one datagram of a few lines. The libraries that send it either need a C extension or
wait for a manager that does not read its socket; the thread that feeds the watchdog must not be
blocked by that.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Self

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.log import fields

log = logging.getLogger("disksla.systemd")

_WATCHDOG_SHARE = 0.25
"""Share of the watchdog's timeout after which a keep-alive is sent: three of them may be lost."""


class ServiceManager:
    """Sends status messages to systemd; does nothing if systemd did not start this process.

    No method blocks or raises an exception, and each may be called from any thread. A message that
    could not be sent is counted in `errors`, and logged when the problem changes. If it reported a
    change of state (ready, reloading, stopping), `feed_watchdog` sends it again.
    """

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        """Set the address of systemd's socket (`@`: abstract) and the timeout of its watchdog."""
        self.problem: str | None = None  # why the last message could not be sent; None if it was
        self.errors = 0
        self.was_ready = False  # whether `ready` was called
        self._address = address
        self._keepalive_every_s = watchdog_s * _WATCHDOG_SHARE if watchdog_s is not None else None
        self._keepalive_due_s = 0.0
        self._unsent_state: str | None = None
        self._state_lock = threading.Lock()
        self._status = ""

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str]) -> Self:
        """Read systemd's variables, and remove them, since no child process needs them."""
        address = environment.pop("NOTIFY_SOCKET", None)
        pid = environment.pop("WATCHDOG_PID", str(os.getpid()))
        timeout_us = environment.pop("WATCHDOG_USEC", "")
        if pid != str(os.getpid()) or not timeout_us.isdecimal() or not int(timeout_us):
            return cls(address)
        return cls(address, int(timeout_us) / 1e6)

    @property
    def is_present(self) -> bool:
        """Whether systemd expects messages."""
        return self._address is not None

    def ready(self) -> None:
        """Report that the service is ready."""
        self.was_ready = True
        self._send_state("READY=1")

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """Report a reload of the configuration, and its end, whether it succeeded or not."""
        if self.was_ready:
            # Type=notify-reload compares the time with that of the signal it sent.
            self._send_state(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            yield
        finally:
            if self.was_ready:
                self.ready()

    def stopping(self) -> None:
        """Report that the service stops."""
        self._send_state("STOPPING=1")

    def status(self, line: str) -> None:
        """Set the status line that `systemctl status` shows, if it changed."""
        if line != self._status and self._send(f"STATUS={line.replace(chr(10), ' ')}"):
            self._status = line

    def feed_watchdog(self, now_s: float) -> None:
        """Send a keep-alive if one is due; call this more often than one is due."""
        with self._state_lock:
            self._send_unsent_state()
        if self._keepalive_every_s is None or now_s < self._keepalive_due_s:
            return
        if self._send("WATCHDOG=1"):
            self._keepalive_due_s = now_s + self._keepalive_every_s

    def _send_state(self, state: str) -> None:
        with self._state_lock:
            self._unsent_state = state
            self._send_unsent_state()

    def _send_unsent_state(self) -> None:
        if self._unsent_state is not None and self._send(self._unsent_state):
            self._unsent_state = None

    def _send(self, message: str) -> bool:
        if self._address is None:
            return True
        address = f"\0{self._address[1:]}" if self._address[:1] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
                sender.sendto(message.encode(errors="replace"), address)
        except OSError as error:
            self.errors += 1
            self._record(error.strerror or str(error))
            return False
        self._record(None)
        return True

    def _record(self, problem: str | None) -> None:
        if problem is not None and problem != self.problem:
            log.warning("cannot notify systemd", extra=fields(err=problem))
        elif problem is None and self.problem is not None:
            log.info("systemd notifications restored")
        self.problem = problem


FIRST_DESCRIPTOR = 3  # SD_LISTEN_FDS_START


def inherited_sockets(
    environment: MutableMapping[str, str], first: int = FIRST_DESCRIPTOR
) -> tuple[socket.socket, ...]:
    """Return the listening sockets that systemd passed to this process; often there are none.

    Removes systemd's variables from the environment, as no child needs them. Raises DiskslaError
    for a descriptor that is not a listening TCP socket.
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
        raise DiskslaError(
            f"cannot use descriptor {descriptor} from systemd: {error.strerror}"
        ) from error
    if (
        passed.family not in {socket.AF_INET, socket.AF_INET6}
        or passed.type != socket.SOCK_STREAM
        or not passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    ):
        passed.close()
        raise DiskslaError(
            f"cannot use descriptor {descriptor} from systemd: not a listening TCP socket;"
            " the socket unit needs ListenStream= with a port, and Accept=no"
        )
    return passed
