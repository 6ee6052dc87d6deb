"""/proc/<pid>/mountinfo: parse the mount table.

Format: Documentation/filesystems/proc.rst, section 3.5. The kernel writes space, tab, newline,
backslash and # in names as a backslash and three octal digits, and any other character as it is.
"""

import re
from typing import NamedTuple

LXCFS = "fuse.lxcfs"
"""File system that shows a container its own values instead of those of procfs."""

_ESCAPED = re.compile(r"\\([0-3][0-7]{2})")
_LEAST_FIELDS = 6


class Mount(NamedTuple):
    """One mount: the fields that locate block devices."""

    major: int
    minor: int
    root: str
    """Directory of the file system that is mounted; not / for a bind mount or a subvolume."""
    mount_point: str
    source: str
    """What was mounted, such as /dev/vda1; arbitrary for file systems without a device."""
    file_system: str = ""
    """Type of the file system, such as ext4 or fuse.sshfs."""
    read_only: bool = False
    """Whether the mount or its file system is read-only."""
    number: int = 0
    """Mount ID, as `mnt_id` in /proc/<pid>/fdinfo."""
    subvolume: str = "/"
    """Path of the subvolume of btrfs that `root` is in; / for other file systems."""
    options: str = ""
    """Those of the file system, with commas between them, as the kernel writes them."""


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Return the mounts in the order of the text, without lines that cannot be parsed."""
    return tuple(mount for line in text.split("\n") if (mount := _parse_line(line)))


def foreign_file_system(file: Mount, procfs: Mount) -> str | None:
    """Return the type of the file system that is mounted over a file of procfs; None if none is.

    `file` is the mount of the file, `procfs` that of the directory. Both have the same type where
    nothing is mounted over the file, in the kernel's procfs as in a copy of it; but lxcfs is
    foreign even where it provides the whole directory.
    """
    if file.file_system == procfs.file_system != LXCFS:
        return None
    return file.file_system


def _parse_line(line: str) -> Mount | None:
    before, separator, after = line.partition(" - ")
    fields, origin = before.split(" "), after.split(" ")
    if not separator or len(fields) < _LEAST_FIELDS or len(origin) < 2:  # noqa: PLR2004 -- type, source
        return None
    major, _, minor = fields[2].partition(":")
    try:
        return Mount(
            int(major),
            int(minor),
            root=unescape(fields[3]),
            mount_point=unescape(fields[4]),
            source=unescape(origin[1]),
            file_system=unescape(origin[0]),
            read_only="ro" in {*fields[5].split(","), *origin[-1].split(",")},
            number=int(fields[0]),
            subvolume=_subvolume(origin[-1]),
            options=" ".join(origin[2:]),
        )
    except ValueError:
        return None


def _subvolume(options: str) -> str:
    """Return the option `subvol`, which btrfs writes last, since the path may contain commas."""
    _, found, path = options.partition(",subvol=")
    return unescape(path) if found else "/"


def unescape(name: str) -> str:
    """Return a name of the mount table as it is."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), name)
