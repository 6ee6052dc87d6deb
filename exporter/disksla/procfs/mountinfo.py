"""The text of /proc/<pid>/mountinfo, as mounts.

Line format: Documentation/filesystems/proc.rst, section 3.5. Names keep any character but
space, tab, newline, backslash and #, which the kernel writes as three octal digits.
"""

import re
from typing import NamedTuple

LXCFS = "fuse.lxcfs"
"""The file system that shows a container its own share of the machine in place of procfs."""

_ESCAPED = re.compile(r"\\([0-3][0-7]{2})")
_LEAST_FIELDS = 6


class Mount(NamedTuple):
    """One mount as far as block devices are concerned."""

    major: int
    minor: int
    root: str
    """Directory of the file system that is shown; not / for a bind mount or a subvolume."""
    mount_point: str
    source: str
    """What was mounted, such as /dev/vda1; any word for file systems without a device."""
    file_system: str = ""
    """Its type, such as ext4 or fuse.sshfs."""
    read_only: bool = False
    """Mounted so, or on a file system that is."""
    number: int = 0
    """By which the kernel knows the mount, also in /proc/<pid>/fdinfo."""


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Give the mounts in the order of the text; lines that say something else are left out."""
    return tuple(mount for line in text.split("\n") if (mount := _parse_line(line)))


def foreign_file_system(file: Mount, around: Mount) -> str | None:
    """Give the type of the file system that shows a file in place of the procfs around it.

    `file` and `around` are the mounts that both were opened on. None if it is of one kind with
    what is around it, as everything is that the kernel shows, and in a copy of procfs.
    """
    if file.file_system == around.file_system != LXCFS:
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
            root=_unescape(fields[3]),
            mount_point=_unescape(fields[4]),
            source=_unescape(origin[1]),
            file_system=_unescape(origin[0]),
            read_only="ro" in {*fields[5].split(","), *origin[-1].split(",")},
            number=int(fields[0]),
        )
    except ValueError:
        return None


def _unescape(name: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), name)
