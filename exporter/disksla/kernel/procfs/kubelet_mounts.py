"""Mounts of kubelet: the volumes of CSI drivers in the mount table of a node of Kubernetes.

A file system is staged for the node, and bound for each pod; the node of a device in block mode is
bound. The places have the driver, the SHA-256 of the volume handle (since Kubernetes 1.24) and the
name of the PersistentVolume. Source: Kubernetes, pkg/volume/csi: csi_mounter.go, csi_attacher.go,
csi_block.go.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from disksla.kernel.procfs.mountinfo import Mount

_FILE = "vol_data.json"
_STAGED = re.compile(r"(.*/plugins/kubernetes\.io/csi/([^/]+)/([^/]+)/)globalmount")
_OF_POD = re.compile(r"(.*/pods/[^/]+/volumes/kubernetes\.io~csi/([^/]+)/)mount")
_HASH = re.compile("[0-9a-f]{64}")
_DEVICE_NODE = re.compile(
    r"(.*/plugins/kubernetes\.io/csi/volumeDevices/)(?:publish/([^/]+)|([^/]+)/dev)/[^/]+"
)


class KubeletMount(NamedTuple):
    """What a place below kubelet's directory shows of a volume."""

    file: str
    """Describes the volume."""
    driver: str | None = None
    handle_hash: str | None = None
    name: str | None = None
    in_pod: bool = False
    """The name is that of a PersistentVolume, or of an inline volume of the pod."""


def kubelet_mount(point: str) -> KubeletMount | None:
    """Return the place of a file system; None if it is not one of kubelet."""
    staged = _STAGED.fullmatch(point)
    if staged is not None:
        file, has_hash = f"{staged[1]}{_FILE}", _HASH.fullmatch(staged[3]) is not None
        return KubeletMount(file, staged[2], staged[3]) if has_hash else KubeletMount(file)
    of_pod = _OF_POD.fullmatch(point)
    if of_pod is None:
        return None
    return KubeletMount(f"{of_pod[1]}{_FILE}", name=of_pod[2], in_pod=True)


def kubelet_device(mount: Mount) -> KubeletMount | None:
    """Return the place of a device node that was bound; None for other mounts."""
    node = _DEVICE_NODE.fullmatch(mount.mount_point)
    if node is None or mount.file_system != "devtmpfs":
        return None
    name = node[2] or node[3]
    return KubeletMount(f"{node[1]}{name}/data/{_FILE}", name=name)


def names_in_use(mounts: Iterable[Mount]) -> tuple[str, ...]:
    """Return the names under which kubelet mounted volumes with a block device, sorted.

    They are those of PersistentVolumes, and names within their pod of inline volumes.
    """
    places = (
        kubelet_mount(mount.mount_point)
        if mount.major or mount.source.startswith("/dev/")  # btrfs has no device of its own
        else kubelet_device(mount)
        for mount in mounts
    )
    return tuple(sorted({place.name for place in places if place is not None and place.name}))
