"""`io.stat` of control groups, kept open and read again and again."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from disksla.base.counts import Counts
from disksla.kernel.consumers.group_tree import Group
from disksla.kernel.consumers.io_files import parse_io_stat

_MAX_BYTES = 65536
_ENDED = {errno.ENOENT, errno.ENODEV}
"""Of a group that has ended; the second while the kernel removes it (once in a million, 6.18)."""


class IoStatFiles:
    """`io.stat` of groups, kept open: a file stays that of its group, whatever gets its path."""

    def __init__(self) -> None:
        """Open nothing."""
        self._descriptors: dict[int, int] = {}
        self._last: dict[int, tuple[bytes, dict[str, Counts]]] = {}
        """The last texts, and what they say: most groups do nothing, and are not parsed again."""

    def open(self, root: Path, groups: Mapping[int, Group]) -> None:
        """Open the files of these groups, by id, and close those of others."""
        for group in self._descriptors.keys() - groups.keys():
            self._close(group)
        for group in groups.keys() - self._descriptors.keys():
            descriptor = _open(f"{root}{groups[group].path}", group)
            if descriptor is not None:
                self._descriptors[group] = descriptor

    def read(self) -> tuple[dict[int, dict[str, Counts]], str | None]:
        """Return what groups did, without those that have ended, and a text that is another."""
        counted, problem = {}, None
        for group, descriptor in [*self._descriptors.items()]:
            try:
                text = os.pread(descriptor, _MAX_BYTES, 0)
                if group not in self._last or self._last[group][0] != text:
                    self._last[group] = text, parse_io_stat(text.decode(errors="replace"))
                counted[group] = self._last[group][1]
            except OSError:
                self._close(group)
            except ValueError as error:
                problem = f"io.stat of a control group: {error}"
        return counted, problem

    def _close(self, group: int) -> None:
        os.close(self._descriptors.pop(group))
        self._last.pop(group, None)

    def close(self) -> None:
        """Close all files."""
        self.open(Path("/"), {})


def _open(directory: str, group: int) -> int | None:
    """Open `io.stat` of a group; None if the group has ended, and another may have its path."""
    try:
        above = os.open(directory, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            if os.fstat(above).st_ino != group:
                return None
            return os.open("io.stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=above)
        finally:
            os.close(above)
    except OSError as error:
        if error.errno in _ENDED:
            return None
        raise
