"""The thread that gets readings of statistics pages from the helper.

Without the socket of the helper it does nothing, and says nothing: most machines have none.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.operating_system import SourceHealth
from disksla.base.operating_system.log import fields
from disksla.base.operating_system.packets import LONGEST_BYTES, connect, decode_packet, encode
from disksla.clouds.ebs_statistics.reading import MESSAGES, Alive, Failure, Message, Reading, Watch

RETRY_S = 5.0
SILENT_S = 10.0
"""A helper that sends nothing for longer does not work: it says each second that it does."""
WATCH_EVERY_S = 0.5
STOP_TIMEOUT_S = 2.0

log = logging.getLogger("disksla.ebs")


class EbsClient:
    """Posts what the helper sends, from `start` until `stop`."""

    def __init__(
        self,
        path: Path,
        post: Callable[[Reading | Failure], None],
        watched: Callable[[], frozenset[str]] = frozenset,
        retry_s: float = RETRY_S,
        silent_s: float = SILENT_S,
    ) -> None:
        """Prepare to connect to a socket; `watched` returns the disks to read more often."""
        self.path = path
        self._post = post
        self._watched = watched
        self._retry_s = retry_s
        self._silent_s = silent_s
        self._errors = 0
        self._problem: str | None = None
        self._is_connected = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ebs", daemon=True)

    @property
    def health(self) -> SourceHealth | None:
        """Whether the helper sends messages; None without a socket."""
        if not self._is_connected and self._problem is None and not self._errors:
            return None
        works = True if self._is_connected else False if self._problem else None
        return SourceHealth("ebs", self._errors, works, self._problem)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Disconnect."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            path = self.path
            try:
                with connect(path, WATCH_EVERY_S) as connection:
                    self._receive(connection, path)
                self._disconnected(None)
            except FileNotFoundError:
                self._disconnected(None)
            except OSError as error:
                self._disconnected(f"cannot connect to {path}: {error.strerror or error}")
            except DiskslaError as error:
                self._disconnected(str(error))
            self._stopping.wait(self._retry_s)

    def _disconnected(self, problem: str | None) -> None:
        """Keep and log a problem, if it is another; None if the helper does not run."""
        if problem is not None:
            self._errors += 1
            if problem != self._problem:
                log.warning("no readings from the helper", extra=fields(err=problem))
        elif self._is_connected:
            log.info("the helper has ended", extra=fields(file=self.path))
        self._is_connected, self._problem = False, problem

    def _receive(self, connection: socket.socket, path: Path) -> None:
        """Post messages until `stop`, another path, or the end of the helper.

        Raise OSError, DiskslaError.
        """
        watched: frozenset[str] = frozenset()
        due_s, heard_s = 0.0, time.monotonic()
        while not self._stopping.is_set() and self.path == path:
            now_s = time.monotonic()
            if now_s >= due_s:
                due_s = now_s + WATCH_EVERY_S
                before, watched = watched, self._watched()
                if watched != before:
                    connection.send(encode(Watch(tuple(sorted(watched)))))
            try:
                packet = connection.recv(LONGEST_BYTES)
            except TimeoutError:
                if now_s - heard_s > self._silent_s:
                    raise DiskslaError(f"{path}: the helper sends nothing") from None
                continue
            if not packet:
                return
            heard_s = now_s
            self._handle(decode_packet(MESSAGES, packet))

    def _handle(self, message: Message) -> None:
        if not self._is_connected:
            self._is_connected, self._problem = True, None
            log.info("connected to the helper", extra=fields(file=self.path))
        if not isinstance(message, Alive):
            self._post(message)
