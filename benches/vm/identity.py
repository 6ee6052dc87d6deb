"""`make identity`: compare the disks of virtual machines that look like those of providers.

`disksla disks` runs in each of them.

QEMU sets the firmware's texts, serial numbers, and vendor and product of SCSI disks. It cannot
imitate the model of an NVMe disk (Azure, Google Cloud, instance store of AWS), nor the controllers
of Hyper-V (the LUN of Azure): these are tested with files, in
tests/kernel/disks/test_inventory.py.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from disksla.promise.configuration import CUSTOM_TERMS
from lab.options import start
from vm import build
from vm.checks import is_skipped, parser_of, report
from vm.experiment import PACKAGE
from vm.guest import Guest
from vm.machine import booted

UUID = "6ea73b81-555e-4a74-9d2c-0123456789ab"
PARALLEL = 2
"""Machines at once: most of booting uses one CPU."""
_MIB = 2**20
_CONFIG = "/run/disksla.yml"
_INIT = (
    "/lib/systemd/systemd-udevd --daemon; udevadm trigger --action add; udevadm settle;"
    " exec qemu-ga --method virtio-serial --path /dev/virtio-ports/org.qemu.guest_agent.0"
)
_USER = 65534
_TERMS = {"budget": "sum", "iops": 300}

Identity = tuple[str | None, bool | None]
"""Volume, and whether the disk is local."""


class Disk(NamedTuple):
    """A disk as options of QEMU's device, and what disksla should say of it."""

    device: str
    expected: Identity


class Host(NamedTuple):
    """The firmware of a machine as options of QEMU, and its disks."""

    provider: str | None
    firmware: tuple[str, ...]
    disks: tuple[Disk, ...]


def virtio(serial: str, expected: Identity) -> Disk:
    """Return a disk of virtio-blk."""
    return Disk(f"virtio-blk-pci,serial={serial}", expected)


def scsi(vendor: str, product: str, serial: str, expected: Identity, more: str = "") -> Disk:
    """Return a disk of virtio-scsi."""
    options = f"vendor={vendor},product={product},serial={serial}{more}"
    return Disk(f"scsi-hd,{options}", expected)


def volume(key: str) -> Identity:
    """Return the identity of a volume."""
    return key, False


LOCAL: Identity = (None, True)
UNKNOWN: Identity = (None, None)
HOSTS = {
    "alibaba": Host(
        "alibaba",
        ("type=1,manufacturer=Alibaba Cloud,product=Alibaba Cloud ECS",),
        (virtio("bp1bcfmvsobfauvxb3ow", volume("d-bp1bcfmvsobfauvxb3ow")),),
    ),
    "aws": Host(
        "aws",
        ("type=1,manufacturer=Amazon EC2,product=m6i.large", "type=3,asset=Amazon EC2"),
        (
            Disk("nvme,serial=vol0123456789abcdef0", volume("vol-0123456789abcdef0")),
            Disk("nvme,serial=AWS6AC3B2D1E0F9A8B7", UNKNOWN),
        ),
    ),
    "azure": Host(
        "azure",
        (
            "type=1,manufacturer=Microsoft Corporation,product=Virtual Machine",
            "type=3,asset=7783-7084-3265-9085-8269-3286-77",
        ),
        (scsi("Msft", "Virtual Disk", "5d41402abc4b2a76", UNKNOWN, ",lun=3"),),
    ),
    "digitalocean": Host(
        "digitalocean",
        ("type=1,manufacturer=DigitalOcean,product=Droplet",),
        (scsi("DO", "Volume", "pg-data", volume("pg-data")),),
    ),
    "google": Host(
        "gcp",
        ("type=1,manufacturer=Google,product=Google Compute Engine", "type=0,version=Google"),
        (
            scsi("Google", "PersistentDisk", "pg-data", volume("pg-data")),
            scsi("Google", "EphemeralDisk", "local-ssd-0", LOCAL),
        ),
    ),
    "hetzner": Host(
        "hetzner",
        ("type=1,manufacturer=Hetzner,product=vServer", "type=0,version=20171111"),
        (scsi("HC", "Volume", "101330357", volume("101330357")),),
    ),
    "hyperv": Host(
        None,
        ("type=1,manufacturer=Microsoft Corporation,product=Virtual Machine",),
        (scsi("Msft", "Virtual Disk", "5d41402abc4b2a76", UNKNOWN),),
    ),
    "openstack": Host(
        "openstack",
        ("type=1,manufacturer=OpenStack Foundation,product=OpenStack Nova",),
        (virtio(UUID, volume(UUID[:20])), scsi("QEMU", "QEMU HARDDISK", UUID, volume(UUID))),
    ),
    "scaleway": Host(
        "scaleway",
        ("type=1,manufacturer=Scaleway,product=SCW-PLAY2-PICO",),
        (scsi("SCW", "sbs", "x", volume(UUID), f",device_id=volume-{UUID}"),),
    ),
    "yandex": Host(
        "yandex",
        ("type=1,manufacturer=Yandex,product=xeon-gold-6338",),
        (
            virtio("fhm1dn62tm5dnaspeh8n", volume("fhm1dn62tm5dnaspeh8n")),
            virtio("nvme-disk-0", LOCAL),
        ),
    ),
}


def unpacked(package: Path, directory: Path) -> Path:
    """Return a file system with the content of the package, and with the byte code of its modules.

    In an emulated machine, unpacking and compiling would take longer than booting.
    """
    tree, file = directory / "tree", directory / "package.ext4"
    library = tree / "usr" / "lib" / "disksla"
    for command in (
        ("dpkg-deb", "--extract", str(package), str(tree)),
        ("python3", "-m", "compileall", "-q", "-j0", str(library)),
        ("mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(file), "128M"),
    ):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return file


def check(name: str, image: Path, package: Path) -> list[str]:
    """Boot a machine, and return the differences between its disks and what is expected.

    `package` is a file system with its content.
    """
    host = HOSTS[name]
    with tempfile.TemporaryDirectory(prefix="disksla-vm-") as directory:
        options = ["-smp", "1"]
        options += [option for text in host.firmware for option in ("-smbios", text)]
        for number, disk in enumerate(host.disks):
            file = Path(directory) / f"disk{number}"
            file.touch()
            with file.open("r+b") as content:
                content.truncate(_size_bytes(number))
            options += ["-drive", f"file={file},format=raw,if=none,id=disk{number}"]
            options += ["-device", f"{disk.device},drive=disk{number},id=disk{number}"]
        try:
            with booted(image, package, Path(directory), options, _INIT) as machine:
                return differences(host, _discover(host, machine.guest))
        except OSError as error:
            return [f"cannot run disksla: {error}"]


def _size_bytes(number: int) -> int:
    """Return the size of a disk, by which it is found."""
    return (number + 8) * _MIB


def _discover(host: Host, guest: Guest) -> list[dict[str, Any]]:
    """Return what disksla says of all disks, as an unprivileged user.

    Each volume has terms in the configuration, which are found by its key.
    """
    guest.run(
        f"mount -o ro {PACKAGE} /mnt; mkdir /usr/lib/disksla;"
        "mount --bind /mnt/usr/lib/disksla /usr/lib/disksla"
    )
    keys = [disk.expected[0] for disk in host.disks if disk.expected[0] is not None]
    entries = [{"match": {"volume": key}, "terms": _TERMS} for key in keys]
    guest.write(_CONFIG, json.dumps({"disks": entries}))
    found: list[dict[str, Any]] = json.loads(
        guest.run(
            f"chmod 644 {_CONFIG};"
            f"exec setpriv --reuid {_USER} --regid {_USER} --clear-groups"
            f" /mnt/usr/bin/disksla disks --json --config.file {_CONFIG}"
        )
    )
    return found


def differences(host: Host, found: Iterable[dict[str, Any]]) -> list[str]:
    """Compare what disksla says of the disks of a machine with what is expected."""
    by_size = {disk["identity"]["size_bytes"]: disk for disk in found}
    different = []
    for number, disk in enumerate(host.disks):
        expected = (host.provider, *disk.expected, disk.expected[0] is not None)
        seen = by_size.get(_size_bytes(number))
        actual = None if seen is None else _said_of(seen)
        if actual != expected:
            different.append(f"{disk.device}: found {actual}; expected {expected}")
    return different


def _said_of(disk: dict[str, Any]) -> tuple[str | None, str | None, bool | None, bool]:
    """Return provider, volume, whether it is local, and whether an entry matched it."""
    identity = disk["identity"]
    by_entry = disk["terms"] == CUSTOM_TERMS
    return identity["provider"], identity["volume"], identity["is_local"], by_entry


def main(arguments: Sequence[str] | None = None) -> int:
    """Check machines; return 1 if a disk is not what is expected, else 0."""
    names = parser_of("identity", "compare disks of providers", HOSTS).parse_args(arguments).only
    if is_skipped("identity"):
        return 0
    image, built = build.image(), build.package()
    with (
        tempfile.TemporaryDirectory(prefix="disksla-vm-") as directory,
        ThreadPoolExecutor(PARALLEL) as pool,
    ):
        package = unpacked(built, Path(directory))
        found = pool.map(lambda name: check(name, image, package), names)
        return report(zip(names, found, strict=True))


if __name__ == "__main__":
    start(main)
