"""/proc/self/mountstats: read whole through one open file, as often as it is cheap.

The kernel makes the text anew for each read, and never waits for a server. `stat` and `open` of a
mount do, without end, so nothing here touches a mount.
"""

import time
from collections.abc import Mapping
from pathlib import Path

from disksla.kernel.procfs.files import WholeFile
from disksla.kernel.procfs.mountstats import Mountstats, parse_mountstats

SLOW_S = 0.001
"""A reading that took so much CPU time is repeated once a second."""
MANY_MOUNTS = 20
"""With more mounts, it is once a second, too."""


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
