"""Unix sockets: the file permissions of the path decide who may connect."""

import errno
import fcntl
import logging
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.log import fields

DEFAULT_SOCKET = Path("/run/disksla/disksla.sock")  # that of the daemon
DEFAULT_EBS_SOCKET = Path("/run/disksla-ebs/ebs.sock")
"""That of the helper, `disksla ebs-statistics`."""
DEFAULT_EVENTS_SOCKET = Path("/run/disksla-events/events.sock")
"""That of the helper, `disksla open-events`."""
_MODE = 0o660  # the user and the group of the process may connect, and root

_BACKLOG = 1024

_LOG = logging.getLogger("disksla.socket")


class UnixSocket:
    """A path to listen on, while no other process does.

    A lock file beside the socket is locked (flock(2)) as long as the process runs. With the lock,
    an existing socket is that of a process that was killed, and is replaced.
    """

    def __init__(
        self, path: Path, kind: socket.SocketKind = socket.SocketKind.SOCK_STREAM
    ) -> None:
        """Name the socket; its directory must exist, and is never created."""
        self._path = path
        self._kind = kind
        self._lock: int | None = None

    def open(self) -> socket.socket | None:
        """Return the listening socket, or None, with a line in the log, if there can be none."""
        try:
            listening = self._open()
        except FileNotFoundError:
            reason = f"the directory {self._path.parent} does not exist"
            _LOG.info("no Unix socket", extra=fields(file=self._path, reason=reason))
            return None
        except (OSError, DiskslaError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            _LOG.warning("no Unix socket", extra=fields(file=self._path, err=reason))
            return None
        _LOG.info("listening on a Unix socket", extra=fields(file=self._path))
        return listening

    @contextmanager
    def listening(self) -> Iterator[socket.socket]:
        """Yield the listening socket, and remove it. Raise DiskslaError if there can be none."""
        try:
            listening = self._open()
        except (OSError, DiskslaError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DiskslaError(f"cannot listen on {self._path}: {reason}") from error
        with listening:
            try:
                yield listening
            finally:
                self.close()

    def _open(self) -> socket.socket:
        """Return the listening socket. Raise OSError, DiskslaError."""
        try:
            self._lock = _lock(self._path.with_name(f"{self._path.name}.lock"))
            return _listen(self._path, self._kind)
        except (OSError, DiskslaError):
            self.close()
            raise

    def close(self) -> None:
        """Remove the socket, unless it is that of another process, and release the lock."""
        lock, self._lock = self._lock, None
        if lock is not None:
            with suppress(OSError):
                _remove(self._path)
            os.close(lock)


def _lock(path: Path) -> int:
    """Return the descriptor of the locked file. Raise OSError, DiskslaError if it is locked."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno == errno.EWOULDBLOCK:
            raise DiskslaError("another process listens on it") from error
        raise
    return descriptor


def _listen(path: Path, kind: socket.SocketKind) -> socket.socket:
    """Return a socket that listens on a path. Raise OSError."""
    _remove(path)
    listening = socket.socket(socket.AF_UNIX, kind)
    try:
        os.fchmod(listening.fileno(), _MODE)  # the file gets it, less the umask
        listening.bind(os.fspath(path))
        path.chmod(_MODE)
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def _remove(path: Path) -> None:
    """Remove a socket; leave a file of any other kind. Raise OSError."""
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
