"""Which processes have a device open: the descriptors of all of them, by device number."""

import contextlib
import ctypes
import errno
import os
import stat
import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

_FIRST_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of linux/proc_ns.h
_STATX_BYTES = 256  # linux/stat.h
_INODE = 0x100  # STATX_INO
_MODE_AT, _INODE_AT, _NUMBER_AT, _FILE_SYSTEM_AT = 28, 32, 128, 136
_HERE = -100  # AT_FDCWD
_CACHED_ONLY = 0x4000  # AT_STATX_DONT_SYNC
_NOT_PERMITTED = {errno.EACCES, errno.EPERM, errno.ENOSYS}
_LIBRARY = ctypes.CDLL(None, use_errno=True)


class DeviceNode(NamedTuple):
    """What a descriptor of a device leads to, whatever the path was."""

    kind: Literal["block", "character"]
    major: int
    minor: int


class DeviceUser(NamedTuple):
    """A process that has devices open."""

    name: str
    number: str
    devices: frozenset[DeviceNode]


class DeviceUsers(NamedTuple):
    """The other processes that have devices open, and why there may be more."""

    found: tuple[DeviceUser, ...]
    unknown: str | None
    """Why some processes or descriptors cannot be seen; None if all are."""


def device_users(devices: Collection[DeviceNode], procfs: Path) -> DeviceUsers:
    """Return the other processes that have one of the devices open.

    A program that mapped a device and closed its descriptor is not seen.
    """
    if unknown := _unseen_processes(procfs):
        return DeviceUsers((), unknown)
    found = []
    own = os.fspath((procfs / "self").readlink())
    for process in procfs.glob("[0-9]*"):
        if process.name == own:
            continue
        try:
            opened = frozenset(_open_devices(process)).intersection(devices)
        except PermissionError:
            unknown = f"the descriptors of process {process.name} cannot be read"
            continue
        if opened:
            found.append(DeviceUser(_name(process), process.name, opened))
    return DeviceUsers(tuple(sorted(found)), unknown)


def _unseen_processes(procfs: Path) -> str | None:
    """Return why processes are missing in procfs; None if all of the machine are there."""
    try:
        namespace = os.fspath((procfs / "self/ns/pid").readlink())
    except OSError as error:
        return f"{procfs}/self/ns/pid cannot be read: {error.strerror}"
    if namespace != _FIRST_NAMESPACE:
        return "this is not the first PID namespace of the machine: a container sees only its own"
    if not (procfs / "1").is_dir():
        return f"{procfs} hides processes of other users (hidepid)"
    return None


def _name(process: Path) -> str:
    with contextlib.suppress(OSError):
        return (process / "comm").read_bytes().decode(errors="replace").strip()
    return ""


def _open_devices(process: Path) -> Iterator[DeviceNode]:
    """Return the devices that a process has open. Raise PermissionError if that is not known."""
    opened = [*_descriptors(process / "fd")]
    if not opened:  # the first thread may have ended before the others
        for task in (process / "task").glob("[0-9]*"):
            opened += _descriptors(task / "fd")
    return (node for node in opened if node is not None)


def _descriptors(directory: Path) -> Iterator[DeviceNode | None]:
    """Yield what each descriptor leads to: a device, or something else."""
    try:
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return  # it has ended
    try:
        for name in os.listdir(opened):  # noqa: PTH208 -- no path
            yield device_node(name, opened)
    except (FileNotFoundError, ProcessLookupError):
        return
    finally:
        os.close(opened)


def device_node(path: str, directory: int = _HERE) -> DeviceNode | None:
    """Return the device that a path leads to; None if it leads to something else, or to nothing.

    Only what the kernel has in memory is asked: a file on a server that does not answer keeps
    nobody waiting. Nothing but the type and number is wanted, which FUSE answers by itself, also
    for the files of other users. Raise PermissionError if it must not be known.
    """
    content = _statx(path, directory)
    if content is None:
        return None
    [mode] = struct.unpack_from("=H", content, _MODE_AT)
    if not stat.S_ISBLK(mode) and not stat.S_ISCHR(mode):
        return None
    kind: Literal["block", "character"] = "block" if stat.S_ISBLK(mode) else "character"
    return DeviceNode(kind, *struct.unpack_from("=II", content, _NUMBER_AT))


def file_number(path: str) -> tuple[int, ...] | None:
    """Return numbers that all paths of a file have in common; None if a path leads to nothing.

    Only what the kernel has in memory is asked. Raise PermissionError if it must not be known.
    """
    content = _statx(path, _HERE, _INODE)
    if content is None:
        return None
    return struct.unpack_from("=Q", content, _INODE_AT) + struct.unpack_from(
        "=II", content, _FILE_SYSTEM_AT
    )


def _statx(path: str, directory: int, wanted: int = 0) -> ctypes.Array[ctypes.c_char] | None:
    """Return the answer of statx(2); None if the path leads to nothing. Raise PermissionError."""
    content = ctypes.create_string_buffer(_STATX_BYTES)
    if not hasattr(_LIBRARY, "statx"):
        raise PermissionError(errno.ENOSYS, "the C library has no statx")
    if _LIBRARY.statx(directory, os.fsencode(path), _CACHED_ONLY, wanted, content) < 0:
        code = ctypes.get_errno()
        if code in _NOT_PERMITTED:
            raise PermissionError(code, os.strerror(code))
        return None
    return content
