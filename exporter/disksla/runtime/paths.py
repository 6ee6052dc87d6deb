"""Where the machine's own account of itself is read from."""

from pathlib import Path

import msgspec


class Paths(msgspec.Struct, frozen=True):
    """Roots that flags can move, so that a container or a test reads another tree."""

    procfs: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    udev_data: Path = Path("/run/udev/data")
