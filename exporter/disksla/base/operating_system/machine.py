"""This machine: its identity and boot, its firmware, its clock, and where its files are."""

import ctypes
import hashlib
import os
import pwd
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from disksla.base.errors import DiskslaError


class Roots(msgspec.Struct, frozen=True):
    """Root directories, which differ in a container and in tests."""

    procfs: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    udev_data: Path = Path("/run/udev/data")
    rootfs: Path = Path("/")
    """The host's root directory; of it, only files of kubelet, efs-utils and aznfs and /etc/fstab
    are read, and the names of those in /var/log/containers."""

    @property
    def mountinfo(self) -> Path:
        """The mount table of this process, or of the host if procfs is that of the host.

        In a host's procfs that is mounted into a container, `self` is still this process, with the
        few mounts of the container; process 1 has those of the host.
        """
        return self.procfs / ("self" if self.procfs == Path("/proc") else "1") / "mountinfo"

    @property
    def mountstats(self) -> Path:
        """The counters of the mounts in `mountinfo`."""
        return self.mountinfo.with_name("mountstats")

    def block_device(self, device: str) -> Path:
        """Return the sysfs directory of a block device; sysfs writes / in a name as !."""
        return self.sysfs / "class" / "block" / device.replace("/", "!")


def default_roots(environment: Mapping[str, str] = os.environ) -> Roots:
    """Return the paths below $DISKSLA_HOST, which images set to where the host's are mounted."""
    host = Path(environment.get("DISKSLA_HOST") or "/")
    return Roots(procfs=host / "proc", sysfs=host / "sys", udev_data=host / "run/udev/data")


MACHINE_ID = Path("/etc/machine-id")
UNKNOWN_MACHINE = "unknown"
_PLACEHOLDERS = (b"", b"uninitialized")
DMI_ATTRIBUTES = ("sys_vendor", "product_name", "chassis_asset_tag", "bios_version")
"""Attributes that every user may read and that name the provider. The serial numbers and the UUID
beside them belong to root alone, and are not needed."""
_MAX_CHARACTERS = 256
_MAX_PAGE = 4096  # an attribute of sysfs is at most one page


def read_machine_id(file: Path = MACHINE_ID) -> str:
    """Return a hash of the machine id; machine-id(5) asks to keep the id itself private.

    Return UNKNOWN_MACHINE if there is none, as in images before their first boot and in many
    containers.
    """
    try:
        machine_id = file.read_bytes().strip()
    except OSError:
        return UNKNOWN_MACHINE
    if machine_id in _PLACEHOLDERS:
        return UNKNOWN_MACHINE
    return hashlib.sha256(b"disksla " + machine_id).hexdigest()


def read_boot_id(roots: Roots) -> str:
    """Return the kernel's random id of this boot (random(4)).

    If it cannot be read, return a new random id: without the kernel's, two boots cannot be
    recognised as the same one.
    """
    try:
        boot = roots.procfs / "sys" / "kernel" / "random" / "boot_id"
        return boot.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return os.urandom(16).hex()


def read_dmi(roots: Roots) -> dict[str, str]:
    """Return the DMI attributes of the machine that it has, without spaces around them.

    Many machines have none: containers without sysfs, and boards without such a firmware.
    Source: Documentation/ABI/testing/sysfs-devices-dmi_tables of Linux; drivers/firmware/dmi-id.c.
    """
    directory = roots.sysfs / "class" / "dmi" / "id"
    texts = {name: _read_attribute(directory / name) for name in DMI_ATTRIBUTES}
    return {name: text for name, text in texts.items() if text}


def _read_attribute(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_PAGE).strip()[:_MAX_CHARACTERS]
    except OSError:
        return ""


Mode = Literal["r", "w"]
_MODES = {"r": os.R_OK, "w": os.W_OK}
_TEST = 'for path; do if [ -{} "$path" ]; then echo yes; else echo no; fi; done'
_TIMEOUT_S = 10.0


def user_name() -> str:
    """Return the name of the user of this process, or its number."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def has_user(user: str) -> bool:
    """Return whether there is a user of this name; that of this process need not have one."""
    if user == user_name():
        return True
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def may_access(user: str, paths: Sequence[Path], mode: Mode) -> Mapping[Path, bool]:
    """Return whether a user may read or write each path.

    Nothing is opened. Raise DiskslaError if it is another user than that of this process, which is
    not root. The user must exist.
    """
    if user == user_name():
        return {path: os.access(path, _MODES[mode], effective_ids=True) for path in paths}
    if os.geteuid() != 0:
        raise DiskslaError(f"only root can check what the user {user} may read and write")
    entry = pwd.getpwnam(user)
    try:
        ended = subprocess.run(  # noqa: S603 -- a fixed program; paths are its arguments
            ["/bin/sh", "-c", _TEST.format(mode), "sh", *map(str, paths)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd="/",
            timeout=_TIMEOUT_S,
            check=True,
            text=True,
            user=entry.pw_uid,
            group=entry.pw_gid,
            extra_groups=os.getgrouplist(user, entry.pw_gid),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise DiskslaError(f"cannot check what the user {user} may access: {error}") from error
    return {path: word == "yes" for path, word in zip(paths, ended.stdout.split(), strict=True)}


_UNSYNCHRONISED = 0x40  # STA_UNSYNC of linux/timex.h
_TIMEX = struct.Struct("@Illlli")
"""Start of `struct timex`: modes, offset, freq, maxerror (us), esterror, status. Then more."""
_BYTES = 512  # longer than the structure on any machine
_MICROSECONDS = 1e6


class ClockState(NamedTuple):
    """State of the wall clock."""

    is_synchronised: bool
    error_s: float
    """Largest error, as the kernel estimates it; it grows while nothing sets the clock."""


def read_clock_state() -> ClockState:
    """Return the state of the wall clock; any user may read it.

    NTP, PTP and the tools of hypervisors report to the kernel that they set the clock. Raise
    DiskslaError if the kernel does not answer, as in some sandboxes.
    """
    buffer = ctypes.create_string_buffer(_BYTES)  # modes is 0: nothing is set
    if ctypes.CDLL(None, use_errno=True).adjtimex(buffer) < 0:
        code = ctypes.get_errno()
        raise DiskslaError(f"adjtimex failed: {os.strerror(code)}")
    _, _, _, error_us, _, status = _TIMEX.unpack_from(buffer)
    return ClockState(not status & _UNSYNCHRONISED, error_us / _MICROSECONDS)
