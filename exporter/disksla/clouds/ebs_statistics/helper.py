"""The helper: reads statistics pages, and sends what they say to its clients.

It has the privilege that the daemon must not have, so it does little. Each disk has a thread, as
one that does not answer must not delay the others, and so has each client. Pages are read only
while there is a client.
"""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.log import fields
from disksla.clouds.ebs_statistics.nvme import EbsDevice
from disksla.clouds.ebs_statistics.reading import (
    LONGEST_LINE_BYTES,
    Alive,
    Failure,
    Message,
    Reading,
    decode_request,
    encode,
    split_lines,
)

NORMAL_S = 1.0
WATCHED_S = 0.1
SLOWEST_WATCHED_S = 0.02
"""A disk that takes longer to answer is not read more often: AWS says that it may queue requests
that come more than once a second."""
NOT_AGAIN_S = 60.0
LONGEST_S = 60.0


class Pace(msgspec.Struct, frozen=True):
    """What decides when a disk is read next."""

    failures: int = 0
    """In a row."""
    not_watched_until_s: float = 0.0
    """Monotonic time until which it is read at the normal pace."""

    def after(self, message: Reading | Failure) -> "Pace":
        """Return the pace after a reading or a failure."""
        if isinstance(message, Failure):
            return Pace(self.failures + 1, self.not_watched_until_s)
        if 2 * message.within_s > SLOWEST_WATCHED_S:
            return Pace(0, message.monotonic_s + NOT_AGAIN_S)
        return Pace(0, self.not_watched_until_s)

    def period_s(self, now_s: float, *, is_watched: bool) -> float:
        """Return the time from one reading to the next; it doubles with each failure in a row."""
        if self.failures:
            return min(NORMAL_S * 2.0 ** min(self.failures - 1, 10), LONGEST_S)
        return WATCHED_S if is_watched and now_s >= self.not_watched_until_s else NORMAL_S


MOST_CLIENTS = 16
RESCAN_S = 1.0
STOP_TIMEOUT_S = 3.0

log = logging.getLogger("disksla.ebs")


class Helper:
    """Reads and sends, from `start` until `stop`."""

    def __init__(
        self,
        listening: socket.socket,
        find: Callable[[], tuple[EbsDevice, ...]],
        read: Callable[[EbsDevice], Reading | Failure],
    ) -> None:
        """Prepare to serve on a socket; `find` returns the disks, `read` the page of one."""
        self._listening = listening
        self._find = find
        self._read = read
        self._watched: dict[socket.socket, frozenset[str]] = {}
        """The clients, and the disks that each watches. Replaced under the lock, never changed."""
        self._lock = threading.Lock()
        self._has_clients = threading.Event()
        self._stopping = threading.Event()
        self._readers: dict[EbsDevice, threading.Thread] = {}
        self._thread = threading.Thread(target=self._serve, name="clients", daemon=True)

    def start(self) -> None:
        """Start to serve clients."""
        self._thread.start()

    def stop(self) -> None:
        """Close all connections; a thread that waits for a disk ends with the process."""
        self._stopping.set()
        self._has_clients.set()
        _shut_down(self._listening)
        self._thread.join(STOP_TIMEOUT_S)
        for connection in self._watched:
            _shut_down(connection)

    def _serve(self) -> None:
        """Accept clients, and look for disks once a second while there are some."""
        self._listening.settimeout(RESCAN_S)
        problem = None
        while not self._stopping.is_set():
            try:
                connection, _ = self._listening.accept()
            except TimeoutError:
                pass
            except OSError as error:  # too many open files
                before, problem = problem, error.strerror
                if problem != before and not self._stopping.is_set():
                    log.warning("cannot accept a client", extra=fields(err=problem))
                self._stopping.wait(RESCAN_S)
            else:
                problem = None
                self._accept(connection)
            if self._has_clients.is_set():
                self._start_readers()
                self._send(Alive())

    def _accept(self, connection: socket.socket) -> None:
        connection.settimeout(None)
        if len(self._watched) >= MOST_CLIENTS:
            log.warning("client refused", extra=fields(err=f"{MOST_CLIENTS} are connected"))
            connection.close()
            return
        self._set_watched(connection, frozenset())
        threading.Thread(
            target=self._receive, args=(connection,), name="client", daemon=True
        ).start()

    def _receive(self, connection: socket.socket) -> None:
        """Read the requests of a client until it, or `_send`, closes the connection."""
        received = b""
        with connection:
            try:
                while more := connection.recv(LONGEST_LINE_BYTES):
                    lines, received = split_lines(received, more)
                    for line in lines:
                        self._set_watched(connection, frozenset(decode_request(line).devices))
            except (OSError, DiskslaError) as error:
                log.warning("client disconnected", extra=fields(err=error))
            self._set_watched(connection, None)

    def _set_watched(self, connection: socket.socket, devices: frozenset[str] | None) -> None:
        """Set what a client watches; None for one that is gone."""
        with self._lock:
            watched = {each: of for each, of in self._watched.items() if each is not connection}
            if devices is not None:
                watched[connection] = devices
            self._watched = watched
            if watched:
                self._has_clients.set()
            elif not self._stopping.is_set():
                self._has_clients.clear()

    def _start_readers(self) -> None:
        """Start a thread for each disk that has none."""
        running = {device: each for device, each in self._readers.items() if each.is_alive()}
        for device in self._find():
            if device not in running:
                running[device] = threading.Thread(
                    target=self._read_repeatedly, args=(device,), name=device.name, daemon=True
                )
                running[device].start()
        self._readers = running

    def _read_repeatedly(self, device: EbsDevice) -> None:
        """Read a disk until it is removed, and log when the page is readable and when not."""
        pace, problem = Pace(), None
        while not self._stopping.is_set():
            begin_s = time.monotonic()
            message = self._read(device)
            self._send(message)
            pace = pace.after(message)
            before, problem = problem, message.reason if isinstance(message, Failure) else None
            if problem != before:
                _log_change(device, message)
            if problem == "removed":
                return
            now_s = time.monotonic()
            is_watched = any(device.name in watched for watched in self._watched.values())
            period_s = pace.period_s(now_s, is_watched=is_watched)
            self._stopping.wait(max(0.0, begin_s + period_s - now_s))
            self._has_clients.wait()

    def _send(self, message: Message) -> None:
        """Send a message to all clients; close the connection of one that does not read."""
        line = encode(message)
        for connection in self._watched:
            try:
                is_sent = connection.send(line, socket.MSG_DONTWAIT) == len(line)
            except BlockingIOError:
                is_sent = False
            except OSError:  # closed meanwhile, by the client or by another thread
                continue
            if not is_sent:
                log.warning("client is too slow", extra=fields(clients=len(self._watched)))
                _shut_down(connection)


def _log_change(device: EbsDevice, message: Reading | Failure) -> None:
    if isinstance(message, Failure):
        extra = fields(device=device.name, reason=message.reason, err=message.message)
        log.warning("statistics page not read", extra=extra)
    else:
        log.info("statistics page readable again", extra=fields(device=device.name))


def _shut_down(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
