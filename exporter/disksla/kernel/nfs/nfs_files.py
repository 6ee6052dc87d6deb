"""Reads mountstats and the mount table, and what efs-utils and aznfs leave beside it.

Nothing is looked up on a mount itself: a server that does not answer would stop the reader. The
kernel makes the text of mountstats anew for each read, and never waits for a server.
"""

import time
from collections.abc import Mapping
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.state_file import read_content
from disksla.kernel.nfs import identify
from disksla.kernel.nfs.mountstats import Mountstats, parse_mountstats
from disksla.kernel.procfs import parse_mountinfo
from disksla.kernel.procfs.files import WholeFile

_EFS = Path("run/efs")
_AZNFS = Path("etc/stunnel/microsoft/aznfs/nfsv4_fileShare")
_MOST_FILES = 1000


def read_file_storages(
    roots: Roots, provider: str | None
) -> tuple[tuple[identify.FileStorage, ...], tuple[str, ...]]:
    """Return the file storages that are mounted, and why some are not known.

    `provider` is that of the machine. Raise OSError if there is no mount table.
    """
    table = roots.mountinfo
    mounts = parse_mountinfo(table.read_bytes().decode(errors="surrogateescape"))
    if not any(map(identify.is_of_network, mounts)):
        return (), ()
    # Without this file, servers of NetApp are not recognized.
    stats = _text(table.with_name("mountstats"), [])
    clues = identify.Clues(provider, implementations=identify.parse_implementations(stats))
    errors: list[str] = []
    if any(map(identify.is_proxied, mounts)):
        clues = clues._replace(
            efs_by_port=_efs_states(roots.rootfs / _EFS, errors),
            efs_by_mount_point=identify.parse_fstab(_text(roots.rootfs / "etc/fstab", errors)),
            azure_accounts=identify.parse_stunnel_names(_names(roots.rootfs / _AZNFS, errors)),
        )
    storages = identify.mounted_storages(mounts, clues)
    proxied = {mount.mount_point for mount in mounts if identify.is_proxied(mount)}
    unknown = [each for each in storages if each.mount_point in proxied and each.service is None]
    return storages, tuple(
        f"the file storage at {each.mount_point} is not known: {error}; permit to read it"
        for each in unknown
        for error in errors
    )


def _efs_states(directory: Path, errors: list[str]) -> dict[int, identify.EfsState]:
    states: dict[int, identify.EfsState] = {}
    for name in _names(directory, errors):
        if name.startswith("fs-") and not name.endswith("+"):  # a directory of certificates
            states |= identify.parse_efs_state(name, _text(directory / name, errors).encode())
    return states


def _names(directory: Path, errors: list[str]) -> list[str]:
    try:
        return sorted(path.name for path in directory.iterdir())[:_MOST_FILES]
    except FileNotFoundError:
        return []
    except OSError as error:
        errors.append(f"cannot read {directory}: {error.strerror}")
        return []


def _text(path: Path, errors: list[str]) -> str:
    """Return the text of a file; nothing of one that is absent or cannot be read."""
    try:
        return read_content(path).decode(errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        errors.append(f"cannot read {path}: {error.strerror}")
    except DiskslaError as error:
        errors.append(f"cannot read {path}: {error}")
    return ""


SLOW_S = 0.001  # a reading that took so much CPU time is repeated once a second
MANY_MOUNTS = 20  # with more mounts, it is once a second, too


class MountstatsFile:
    """The counters of NFS mounts, at every tick or once a second."""

    def __init__(self, path: Path, procfs: Path) -> None:
        """Open nothing; the first `read` opens the file."""
        self._file = WholeFile(path, procfs)
        self._took_s = 0.0
        self._read_at_s = 0.0

    def is_due(self, mounts: int, now_s: float) -> bool:
        """Return whether this many mounts are to be read at a tick of this monotonic time.

        Once a second is at the first tick of each second, as verdicts are on whole seconds.
        """
        is_slow = mounts > MANY_MOUNTS or self._took_s > SLOW_S
        return not is_slow or int(now_s) != int(self._read_at_s)

    def read(self, device_at: Mapping[str, str], now_s: float) -> Mountstats:
        """Return the counters of mounts by device; `device_at` has the devices by mount point.

        Raise OSError if the file cannot be read.
        """
        started_s = time.thread_time()
        found = parse_mountstats(self._file.read(), device_at)
        self._took_s, self._read_at_s = time.thread_time() - started_s, now_s
        return found

    def close(self) -> None:
        """Close the file; `read` opens it again."""
        self._file.close()
