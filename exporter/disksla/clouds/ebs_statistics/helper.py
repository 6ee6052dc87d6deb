"""The helper: reads statistics pages, and sends what they say to its clients.

It has the privilege that the daemon must not have, so it does little. Each disk has a thread, as
one that does not answer must not delay the others. Pages are read only while there is a client.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.operating_system import packets
from disksla.base.operating_system.log import fields
from disksla.clouds.ebs_statistics.nvme import EbsDevice
from disksla.clouds.ebs_statistics.reading import REQUESTS, Alive, Failure, Message, Reading

NORMAL_S = 1.0
WATCHED_S = 0.1
SLOWEST_WATCHED_S = 0.02
"""A disk that takes longer to answer is not read more often: AWS says that it may queue requests
that come more than once a second."""
NOT_AGAIN_S = 60.0
LONGEST_S = 60.0


class Pace(msgspec.Struct, frozen=True):
    """What decides when a disk is read next."""

    failures: int = 0  # in a row
    not_watched_until_s: float = 0.0  # monotonic time until which it is read at the normal pace

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
        self._server = packets.PacketServer(listening, self._receive, MOST_CLIENTS)
        self._watched: dict[socket.socket, frozenset[str]] = {}  # the disks that clients watch
        self._has_clients = threading.Event()
        self._stopping = threading.Event()
        self._readers: dict[EbsDevice, threading.Thread] = {}
        self._thread = threading.Thread(
            target=self._server.serve, args=(RESCAN_S, self._look), name="clients", daemon=True
        )

    @property
    def clients(self) -> tuple[socket.socket, ...]:
        """Those that are connected."""
        return self._server.clients

    def start(self) -> None:
        """Start to serve clients."""
        self._thread.start()

    def stop(self) -> None:
        """Close all connections; a thread that waits for a disk ends with the process."""
        self._stopping.set()
        self._has_clients.set()
        packets.shut_down(self._listening)
        self._thread.join(STOP_TIMEOUT_S)

    def _look(self) -> None:
        """Look for disks while there are clients, and say that the helper works."""
        if self.clients:
            self._has_clients.set()
            self._start_readers()
            self._send(Alive())
        elif not self._stopping.is_set():
            self._has_clients.clear()

    def _receive(self, client: socket.socket) -> bool:
        """Receive a request; return whether the client is still there."""
        try:
            packet = client.recv(packets.LONGEST_BYTES)
            if packet:
                self._watched[client] = frozenset(packets.decode_packet(REQUESTS, packet).devices)
                return True
        except (OSError, DiskslaError) as error:
            log.warning("client disconnected", extra=fields(err=error))
        self._watched.pop(client, None)
        return False

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
            is_watched = any(device.name in watched for watched in [*self._watched.values()])
            period_s = pace.period_s(now_s, is_watched=is_watched)
            self._stopping.wait(max(0.0, begin_s + period_s - now_s))
            self._has_clients.wait()

    def _send(self, message: Message) -> None:
        """Send a message to all clients; close the connection of one that does not read."""
        packet = packets.encode(message)
        for client in self.clients:
            try:
                client.send(packet, socket.MSG_DONTWAIT)
            except BlockingIOError:
                log.warning("client is too slow", extra=fields(clients=len(self.clients)))
                packets.shut_down(client)
            except OSError:  # closed meanwhile, by the client or by another thread
                continue


def _log_change(device: EbsDevice, message: Reading | Failure) -> None:
    if isinstance(message, Failure):
        extra = fields(device=device.name, reason=message.reason, err=message.message)
        log.warning("statistics page not read", extra=extra)
    else:
        log.info("statistics page readable again", extra=fields(device=device.name))
