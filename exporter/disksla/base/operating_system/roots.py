"""Root directories of procfs, sysfs, the udev database and the file systems (--path.*)."""

from pathlib import Path

import msgspec


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
