"""Volumes of Kubernetes: the driver and the handle of the volume that a disk was attached for.

kubelet describes each volume of a CSI driver in a file beside the place at which it mounts it. The
places alone have the driver, the hash of the handle and the name of the PersistentVolume, for
those who may not read the file. Source: Kubernetes, pkg/volume/csi: csi_mounter.go,
csi_attacher.go, csi_block.go, csi_util.go.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from disksla.base.errors import DECODE_ERRORS
from disksla.kernel.disks.disk import Disk
from disksla.kernel.procfs import KubeletMount, Mount, kubelet_device, kubelet_mount

MAX_BYTES = 65_536  # largest file that is parsed; a real one has less than 1 KiB
_MAX_CHARACTERS = 1024  # the id of a disk of Azure has about 200
_EPHEMERAL = "Ephemeral"
_DISK_NAME = r"projects/[^/]+/(?:zones/[^/]+/disks/([^/]+)|regions/[^/]+/disks/([^/]+))"
_UUID = r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_EBS = (("aws",), r"(vol-[0-9a-f]+)")
_YANDEX = (("yandex",), r"([0-9a-z]+)")
_DRIVERS = {
    "ebs.csi.aws.com": _EBS,
    "ebs.csi.eks.amazonaws.com": _EBS,  # of EKS Auto Mode
    "pd.csi.storage.gke.io": (("gcp",), _DISK_NAME),
    "cinder.csi.openstack.org": (("openstack", "vk"), _UUID),
    "disk-csi-driver.mks.ycloud.io": _YANDEX,
    "yandex.csi.flant.com": _YANDEX,  # of Deckhouse
}
"""Providers of a driver, and the key of the volume in its handles. A handle of Azure has the name
of the disk, which is not the LUN by which its volumes are known."""


class CsiVolume(NamedTuple):
    """What kubelet knows of a volume."""

    driver: str
    handle: str  # id of the volume in the words of the driver (`volumeHandle`)
    persistent_volume: str | None  # name of the PersistentVolume, if the file has it


class _VolumeData(msgspec.Struct, frozen=True, rename="camel"):
    driver_name: str
    volume_handle: str
    persistent_volume: str = msgspec.field(default="", name="specVolID")
    volume_lifecycle_mode: str = ""


def parse_volume_data(content: bytes) -> CsiVolume | None:
    """Return the volume that a vol_data.json describes; None if it is not one.

    A file beside `globalmount` may lack the name of the PersistentVolume. That of an inline volume
    (`Ephemeral`) has the name that it has within its pod.
    """
    if len(content) > MAX_BYTES:
        return None
    try:
        data = msgspec.json.decode(content, type=_VolumeData)
    except DECODE_ERRORS:
        return None
    if not (_is_name(data.driver_name) and _is_name(data.volume_handle)):
        return None
    has_name = data.volume_lifecycle_mode != _EPHEMERAL and _is_name(data.persistent_volume)
    name = data.persistent_volume if has_name else None
    return CsiVolume(data.driver_name, data.volume_handle, name)


def with_csi_volumes(
    disks: Collection[Disk], mounts: Iterable[Mount], read: Callable[[str], CsiVolume | None]
) -> tuple[Disk, ...]:
    """Return the disks with what kubelet knows of the volumes behind them.

    `disks` have their mount points; `read` returns the volume of a path of the host. Mount points
    of devices that are stacked on a disk do not count: a logical volume is not the disk.
    """
    places = _places_of(disks, mounts)
    return tuple(
        disk if disk.name not in places else _with_volume(disk, places[disk.name], read)
        for disk in disks
    )


def handle_hash(handle: str) -> str:
    """Return what kubelet names the directory of a volume after."""
    return hashlib.sha256(handle.encode()).hexdigest()


def with_volume(disk: Disk, volume: CsiVolume) -> Disk:
    """Return the disk of a volume; its own identity stays where it has one."""
    described = msgspec.structs.replace(
        disk,
        csi_driver=volume.driver,
        volume_handle=volume.handle,
        persistent_volume=volume.persistent_volume,
        volume_handle_hash=None,
    )
    providers, key = _key_of(volume)
    if key is None or disk.volume is not None or disk.provider not in {None, *providers}:
        return described
    provider = disk.provider or providers[0]
    return msgspec.structs.replace(described, provider=provider, volume=key, is_local=False)


def _places_of(
    disks: Collection[Disk], mounts: Iterable[Mount]
) -> Mapping[str, list[KubeletMount]]:
    """Return where the volume of each disk that was sold is mounted or bound."""
    by_name = {disk.name: disk for disk in disks}
    places: defaultdict[str, list[KubeletMount]] = defaultdict(list)
    for disk in disks:
        if not disk.is_sold:
            continue
        above = {
            point
            for holder in disk.holders
            if holder in by_name
            for point in by_name[holder].mount_points
        }
        for point in disk.mount_points:
            place = kubelet_mount(point)
            if place is not None and point not in above:
                places[disk.name].append(place)
    for mount in mounts:
        name = mount.root.removeprefix("/")
        place = kubelet_device(mount)
        if place is not None and name in by_name and by_name[name].is_sold:
            places[name].append(place)
    return places


def _with_volume(
    disk: Disk, places: Collection[KubeletMount], read: Callable[[str], CsiVolume | None]
) -> Disk:
    """Return the disk with its volume; unchanged if nothing is known, or several volumes."""
    files = dict.fromkeys(place.file for place in places)
    volumes = [volume for file in files if (volume := read(file)) is not None]
    if not volumes:
        return _with_places(disk, places)
    if len({volume[:2] for volume in volumes}) != 1:
        return disk
    name = _only({volume.persistent_volume for volume in volumes})
    return with_volume(disk, volumes[0]._replace(persistent_volume=name))


def _with_places(disk: Disk, places: Collection[KubeletMount]) -> Disk:
    """Return the disk with what the places show, without their files.

    An inline volume of a pod is not staged, so the name of a staged one is a PersistentVolume's.
    """
    staged = {(place.driver, place.handle_hash) for place in places if place.handle_hash}
    if len(staged) > 1:
        return disk
    driver, hashed = next(iter(staged), (None, None))
    name = _only({place.name for place in places if staged or not place.in_pod})
    return msgspec.structs.replace(
        disk, csi_driver=driver, volume_handle_hash=hashed, persistent_volume=name
    )


def _only(names: set[str | None]) -> str | None:
    """Return the name if there is only one."""
    known = names - {None}
    return known.pop() if len(known) == 1 else None


def _key_of(volume: CsiVolume) -> tuple[tuple[str, ...], str | None]:
    """Return the providers of a driver, and the key by which they know the volume."""
    providers, pattern = _DRIVERS.get(volume.driver, ((), ""))
    found = re.fullmatch(pattern, volume.handle)
    if found is None or not providers:
        return providers, None
    # The driver attaches a regional disk by another device name (gce-pd-csi-driver, common).
    zonal, *regional = found.groups()
    return providers, zonal or f"{regional[0]}_regional"


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _MAX_CHARACTERS and text.isprintable()
