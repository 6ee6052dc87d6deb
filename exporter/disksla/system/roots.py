"""Where procfs, sysfs and the udev database are read from (--path.*)."""

from pathlib import Path

import msgspec


class Roots(msgspec.Struct, frozen=True):
    """Root directories, which options can change for a container or a test."""

    procfs: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    udev_data: Path = Path("/run/udev/data")

    @property
    def mountinfo(self) -> Path:
        """The mount table of this process, or of the host whose procfs this is.

        In the procfs of a host that is mounted in a container, `self` would still be this process
        with its own few mounts; process 1 has those of the host.
        """
        return self.procfs / ("self" if self.procfs == Path("/proc") else "1") / "mountinfo"

    def block_device(self, device: str) -> Path:
        """Return the directory of a block device in sysfs, which writes / in a name as !."""
        return self.sysfs / "class" / "block" / device.replace("/", "!")
