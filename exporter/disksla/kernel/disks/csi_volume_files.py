"""Files of kubelet that describe volumes of Kubernetes: read vol_data.json."""

import errno
import os
import stat

from disksla.base.operating_system.roots import Roots
from disksla.kernel.disks.csi_volume import MAX_BYTES, CsiVolume, parse_volume_data

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""Errors of a volume that was just unmounted, or of a container without the host's directory."""


class CsiVolumeFiles:
    """Files of one scan."""

    def __init__(self, roots: Roots) -> None:
        """Read nothing."""
        self._root = str(roots.rootfs).rstrip("/")
        self._errors: dict[str, None] = {}

    def read(self, path: str) -> CsiVolume | None:
        """Return the volume that a file of the host describes; None if there is none."""
        try:
            content = _read_regular(f"{self._root}{path}")
        except OSError as error:
            if error.errno not in _ABSENT:
                self._errors[error.strerror or str(error)] = None
            return None
        return parse_volume_data(content)

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be read; the same messages whatever volumes there are."""
        return tuple(
            f"cannot read vol_data.json of kubelet: {error}; handles of CSI volumes are unknown;"
            " only root may read it, in a container below --path.rootfs"
            for error in self._errors
        )


def _read_regular(path: str) -> bytes:
    """Return the beginning of a file; nothing of anything else, on which reading might block."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags)
    try:
        is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.read(descriptor, MAX_BYTES + 1) if is_regular else b""
    finally:
        os.close(descriptor)
