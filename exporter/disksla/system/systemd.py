"""What the service manager is told of us, as sd_notify(3) has it; without one, nobody is told.

A message is one datagram of a few lines. The libraries that send it bring C or wait for a manager
that does not read; whoever feeds a watchdog must not be stopped by it.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Self

from disksla.errors import DiskslaError
from disksla.system.log import fields

log = logging.getLogger("disksla.systemd")

_SHARE_OF_WATCHDOG = 0.25
"""Part of the watchdog's time after which it is fed again: three meals may be lost."""


class ServiceManager:
    """Tells systemd how we are. Never waits and never raises; may be called from any thread.

    A message that did not get through is counted in `errors`, and logged when that changes. If it
    said that we are ready, reloading or stopping, `beat` says it again.
    """

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        """Take the address of its socket (`@` for an abstract one), and how patient it is."""
        self.problem: str | None = None
        """What was wrong with the last message; None if nothing was."""
        self.errors = 0
        self.was_ready = False
        """Whether `ready` was called."""
        self._address = address
        self._every_s = watchdog_s * _SHARE_OF_WATCHDOG if watchdog_s is not None else None
        self._due_s = 0.0
        self._owed: str | None = None
        self._saying = threading.Lock()
        self._status = ""

    @classmethod
    def of(cls, environment: MutableMapping[str, str]) -> Self:
        """Take what systemd left for us from the environment: it concerns no child of ours."""
        address = environment.pop("NOTIFY_SOCKET", None)
        pid = environment.pop("WATCHDOG_PID", str(os.getpid()))
        patience = environment.pop("WATCHDOG_USEC", "")
        if pid != str(os.getpid()) or not patience.isdecimal() or not int(patience):
            return cls(address)
        return cls(address, int(patience) / 1e6)

    @property
    def is_there(self) -> bool:
        """Whether there is anybody to tell."""
        return self._address is not None

    def ready(self) -> None:
        """Say that we serve."""
        self.was_ready = True
        self._say("READY=1")

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """Say that the configuration is read again, and when that is over, well or not."""
        if self.was_ready:
            # The time is for Type=notify-reload, which holds it against that of its signal.
            self._say(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            yield
        finally:
            if self.was_ready:
                self.ready()

    def stopping(self) -> None:
        """Say that we end."""
        self._say("STOPPING=1")

    def status(self, line: str) -> None:
        """Say how we are to people, if that has changed."""
        if line != self._status and self._send(f"STATUS={line.replace(chr(10), ' ')}"):
            self._status = line

    def beat(self, now_s: float) -> None:
        """Say, as often as need be, that what we are for is being done; call it more often."""
        with self._saying:
            self._pay()
        if self._every_s is not None and now_s >= self._due_s and self._send("WATCHDOG=1"):
            self._due_s = now_s + self._every_s

    def _say(self, state: str) -> None:
        with self._saying:
            self._owed = state
            self._pay()

    def _pay(self) -> None:
        if self._owed is not None and self._send(self._owed):
            self._owed = None

    def _send(self, message: str) -> bool:
        if self._address is None:
            return True
        address = f"\0{self._address[1:]}" if self._address[:1] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as ours:
                ours.sendto(message.encode(errors="replace"), address)
        except OSError as error:
            self.errors += 1
            self._note(error.strerror or str(error))
            return False
        self._note(None)
        return True

    def _note(self, problem: str | None) -> None:
        if problem is not None and problem != self.problem:
            log.warning("cannot notify systemd", extra=fields(err=problem))
        elif problem is None and self.problem is not None:
            log.info("systemd notifications restored")
        self.problem = problem


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
        raise DiskslaError(f"systemd passed descriptor {descriptor}: {error.strerror}") from error
    if (
        passed.family not in {socket.AF_INET, socket.AF_INET6}
        or passed.type != socket.SOCK_STREAM
        or not passed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    ):
        passed.close()
        raise DiskslaError(
            f"systemd passed descriptor {descriptor}, on which nobody can connect by TCP;"
            " expected ListenStream= with a port, and Accept=no"
        )
    return passed
