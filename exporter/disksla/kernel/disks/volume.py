"""The volume behind a disk: the key by which its provider knows it, from sysfs and udev.

No network is needed. What is not certain is None: a wrong key would compare a disk with the limits
of another one. Each function names its source.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple


class Attributes(NamedTuple):
    """What the kernel and udev say of one whole disk; None for what they do not say."""

    name: str
    serial: str | None = None
    model: str | None = None
    links: tuple[str, ...] = ()  # links in /dev by udev, with the directory
    udev_serial: str | None = None  # ID_SERIAL_SHORT, which rules of a provider may replace
    scsi_address: str | None = None  # host, channel, target and LUN, such as '1:0:0:3'
    vmbus_device: str | None = None  # `device_id` of the controller of Hyper-V
    nsid: str | None = None  # number of the NVMe namespace

    def by_id(self, prefix: str) -> Iterable[str]:
        """Yield the rest of the names in /dev/disk/by-id that start with a prefix."""
        return _after(f"/dev/disk/by-id/{prefix}", self.links)


class Volume(NamedTuple):
    """The volume behind a disk."""

    key: str | None = None  # the provider's own key of the volume
    is_local: bool | None = None
    """True for a disk inside the host, False for a volume, None if not known."""


UNKNOWN = Volume()
LOCAL = Volume(is_local=True)
READ_FROM_SYSFS = {"azure"}
"""Providers that need `scsi_address`, `vmbus_device` and `nsid`, which cost further reads."""

_AWS_ID = re.compile(r"vol-?([0-9a-f]+)")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f](?:[0-9a-f]{3}-[0-9a-f]{12})?")
"""A UUID, or what virtio leaves of it: the first 20 characters."""
_OS_DISK = "os"
_AZURE_OS_CONTROLLER = "f8b3781a-1e82-4818-a1c3-63d806ec15bb"
_AZURE_DATA_CONTROLLER = re.compile(r"f8b3781[bcd]-1e82-4818-a1c3-63d806ec15bb")


def volume_of(provider: str | None, disk: Attributes) -> Volume:
    """Return the volume behind a whole disk of a machine of this provider."""
    identify = BY_PROVIDER.get(provider or "")
    return UNKNOWN if identify is None else identify(disk)


def _aws(disk: Attributes) -> Volume:
    """Return an EBS volume by its serial number, which is the id without dash.

    Disks of Xen instances (xvdf) have no serial number. Source: amazon-ec2-utils,
    70-ec2-nvme-devices.rules; "Identify the EBS volume" of the EBS user guide.
    """
    if disk.model == "Amazon EC2 NVMe Instance Storage":
        return LOCAL
    found = _AWS_ID.fullmatch(disk.serial or "")
    if found is not None:
        return _volume(f"vol-{found[1]}")
    return _volume(None) if disk.model == "Amazon Elastic Block Store" else UNKNOWN


def _azure(disk: Attributes) -> Volume:
    """Return `os`, or the LUN of a data disk. Source: azure-vm-utils, udev/80-azure-disk.rules."""
    model = disk.model or ""
    if model.startswith("Microsoft NVMe Direct Disk"):
        return LOCAL
    if model == "MSFT NVMe Accelerator v1.0":
        return _volume(_azure_namespace(disk.nsid or ""))
    return _azure_scsi(disk) if model == "Virtual Disk" else UNKNOWN


def _azure_scsi(disk: Attributes) -> Volume:
    """Return a disk by its controller, of generation 1 (IDE) or 2, and its LUN."""
    controller = (disk.vmbus_device or "").strip("{}").lower()
    lun = (disk.scsi_address or "").rpartition(":")[2]
    if controller.startswith("00000000-0000-"):
        return _volume(_OS_DISK)
    if controller.startswith("00000000-0001-"):
        return LOCAL
    if controller == _AZURE_OS_CONTROLLER:
        return {"0": _volume(_OS_DISK), "1": LOCAL}.get(lun, UNKNOWN)
    is_data = _AZURE_DATA_CONTROLLER.fullmatch(controller) and lun.isdecimal()
    return _volume(lun) if is_data else UNKNOWN


def _azure_namespace(nsid: str) -> str | None:
    if not nsid.isdecimal() or nsid == "0":
        return None
    return _OS_DISK if nsid == "1" else str(int(nsid) - 2)


def _google(disk: Attributes) -> Volume:
    """Return the device name, which udev has; the kernel has it of SCSI disks only.

    All NVMe namespaces have the serial number nvme_card-pd, and a rule that fails to read the name
    makes a link of it. Source: guest-configs, 65-gce-disk-naming.rules and google_nvme_id.
    """
    model = disk.model or ""
    if model == "EphemeralDisk" or re.fullmatch(r"nvme_card\d*", model):
        return LOCAL
    if model not in {"PersistentDisk", "nvme_card-pd"}:
        return UNKNOWN
    names = {*disk.by_id("google-"), *disk.by_id("scsi-0Google_PersistentDisk_"), disk.udev_serial}
    if model == "PersistentDisk":
        names.add(disk.serial)
    names -= {None, "nvme_card-pd"}
    return _volume(names.pop() if len(names) == 1 else None)


def _yandex(disk: Attributes) -> Volume:
    """Return the device name, or else the disk id: 20 characters of the serial number.

    Source: Yandex Compute Cloud documentation, "Attaching a disk to a VM" and "Dedicated hosts".
    """
    if not disk.name.startswith("vd") or disk.serial is None:
        return UNKNOWN
    if re.fullmatch(r"nvme-disk-\d+", disk.serial):
        return LOCAL
    return _volume(disk.serial)


def _uuid(disk: Attributes) -> Volume:
    """Return the UUID of the volume, of which virtio-blk leaves 20 characters.

    Ephemeral disks have no such serial number. Sources: Nova, virt/libvirt/volume; exoscale-csi-
    driver, diskutils.go; Huawei ECS documentation, "Obtaining the disk name by the serial number".
    """
    serial = (disk.serial or "").lower()
    return _volume(serial) if _UUID.fullmatch(serial) else UNKNOWN


def _alibaba(disk: Attributes) -> Volume:
    """Return the disk id: d- and the serial number. Source: alibaba-cloud-csi-driver, pkg/disk."""
    is_cloud_disk = disk.name.startswith("vd") or (disk.model or "").startswith(
        "Alibaba Cloud Elastic Block Storage"
    )
    if is_cloud_disk and re.fullmatch(r"[0-9a-z]{20}", disk.serial or ""):
        return _volume(f"d-{disk.serial}")
    return UNKNOWN


def _tencent(disk: Attributes) -> Volume:
    """Return the disk id: the serial number. Source: CBS documentation, "Initializing disks"."""
    serial = disk.serial or ""
    return _volume(serial) if re.fullmatch(r"disk-[0-9a-z]+", serial) else UNKNOWN


def _scsi_named(disk: Attributes, prefix: str) -> Volume:
    """Return a volume whose serial number is the key and whose model is Volume."""
    keys = {*disk.by_id(prefix)}
    if not keys and disk.model == "Volume" and disk.serial:
        keys = {disk.serial}
    return _volume(keys.pop()) if len(keys) == 1 else UNKNOWN


def _scaleway(disk: Attributes) -> Volume:
    """Return the UUID of the volume, which the serial number has after `volume-`.

    Source: scaleway-csi, diskutils.go (scsi-0SCW_b_ssd_volume-); Scaleway documentation
    (scsi-0SCW_sbs_volume-).
    """
    for text in (*disk.by_id("scsi-0SCW_"), disk.serial or ""):
        found = re.search(rf"(?:^|_)volume-({_UUID.pattern})$", text)
        if found is not None:
            return _volume(found[1])
    return UNKNOWN


def _oracle(disk: Attributes) -> Volume:
    """Return the name of the consistent device path, or the IQN of an iSCSI attachment.

    The API has both of an attachment, as `device` and `iqn`. Paravirtualized attachments of images
    without consistent device paths have neither. Source: documentation of Oracle Cloud
    Infrastructure, "Connecting to Volumes With Consistent Device Paths" and "iSCSI".
    """
    paths = {*_after("/dev/oracleoci/", disk.links)}
    if not paths:
        links = " ".join(_after("/dev/disk/by-path/", disk.links))
        paths = {*re.findall(r"-iscsi-(iqn\.\S+oracleiaas\S*?)-lun-\d+", links)}
    return _volume(paths.pop()) if len(paths) == 1 else UNKNOWN


def _volume(key: str | None) -> Volume:
    return Volume(key, is_local=False)


def _after(prefix: str, texts: Iterable[str]) -> Iterable[str]:
    rests = (text.removeprefix(prefix) for text in texts if text.startswith(prefix))
    return filter(None, rests)


BY_PROVIDER: dict[str, Callable[[Attributes], Volume]] = {
    "alibaba": _alibaba,
    "aws": _aws,
    "azure": _azure,
    # The name of the volume. Source: DigitalOcean Volumes documentation, "Mount".
    "digitalocean": partial(_scsi_named, prefix="scsi-0DO_Volume_"),
    "exoscale": _uuid,
    "gcp": _google,
    # The number of the volume. Source: `linux_device` of a volume in the hcloud API.
    "hetzner": partial(_scsi_named, prefix="scsi-0HC_Volume_"),
    "huawei": _uuid,
    "openstack": _uuid,
    "oracle": _oracle,
    "scaleway": _scaleway,
    "tencent": _tencent,
    "vk": _uuid,
    "yandex": _yandex,
}
