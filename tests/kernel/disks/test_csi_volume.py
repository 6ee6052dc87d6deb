"""Volumes of Kubernetes, by the files of kubelet beside their mount points."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.operating_system.machine import Roots
from disksla.kernel.disks.csi_volume import (
    MAX_BYTES,
    CsiVolume,
    handle_hash,
    parse_volume_data,
    with_csi_volumes,
)
from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.inventory import read_disks
from disksla.kernel.procfs.mountinfo import Mount, names_in_use
from support import ttar

HOSTS = Path(__file__).parents[2] / "hosts"
KUBELET = "/var/lib/kubelet"
UUID = "6ea73b81-555e-4a74-9d2c-0123456789ab"
GLOBAL = f"{KUBELET}/plugins/kubernetes.io/csi/ebs.csi.aws.com/0a1b2c/globalmount"
POD = f"{KUBELET}/pods/{UUID}/volumes/kubernetes.io~csi/pvc-1/mount"
GLOBAL_FILE = f"{Path(GLOBAL).parent}/vol_data.json"
POD_FILE = f"{Path(POD).parent}/vol_data.json"
BLOCK = f"{KUBELET}/plugins/kubernetes.io/csi/volumeDevices"
EBS = CsiVolume("ebs.csi.aws.com", "vol-0a1b", "pvc-1")
HASH = "f738d5eb646702a8a5f79d5435ac3a0048d440b49ea4000beae42aab32fb6143"
HASHED = f"{KUBELET}/plugins/kubernetes.io/csi/ebs.csi.aws.com/{HASH}/globalmount"


def document(volume: CsiVolume, **further: Any) -> bytes:
    keys = {"driverName": volume.driver, "volumeHandle": volume.handle, "nodeName": "node-1"}
    if volume.persistent_volume is not None:
        keys["specVolID"] = volume.persistent_volume
    return json.dumps(keys | further).encode()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (document(EBS), EBS),
        (document(EBS, volumeLifecycleMode="Persistent"), EBS),
        (document(EBS, volumeLifecycleMode="Ephemeral"), EBS._replace(persistent_volume=None)),
        (document(EBS._replace(persistent_volume=None)), EBS._replace(persistent_volume=None)),
        (document(EBS._replace(driver="")), None),
        (document(EBS._replace(handle="x" * 1025)), None),
        (document(EBS._replace(handle="a\nb")), None),
        (b'{"driverName": "x"}', None),
        (b"[]", None),
        (b"", None),
        (b"\xff", None),
        (b"[" * 60_000, None),
        (document(EBS) + b" " * MAX_BYTES, None),
    ],
)
def test_parse_volume_data(content: bytes, expected: CsiVolume | None) -> None:
    assert parse_volume_data(content) == expected


@given(st.binary() | st.dictionaries(st.text(), st.text()).map(lambda d: json.dumps(d).encode()))
def test_any_content_is_a_volume_or_none(content: bytes) -> None:
    volume = parse_volume_data(content)
    assert volume is None or (volume.driver and volume.handle)


def a_disk(name: str = "nvme1n1", **fields: Any) -> Disk:
    return Disk(name, 259, 2, 10, **fields)


def reader(**volumes: CsiVolume) -> Callable[[str], CsiVolume | None]:
    named = {"pod": POD_FILE, "staged": GLOBAL_FILE, "block": f"{BLOCK}/pvc-1/data/vol_data.json"}
    return {named[name]: volume for name, volume in volumes.items()}.get


def identity(disk: Disk) -> tuple[str | None, str | None, str | None]:
    return disk.csi_driver, disk.volume_handle, disk.persistent_volume


@pytest.mark.parametrize("points", [(GLOBAL,), (POD,), (GLOBAL, POD, "/mnt"), (POD, GLOBAL)])
def test_volume_of_a_mounted_disk(points: tuple[str, ...]) -> None:
    disk = a_disk(mount_points=points)
    [found] = with_csi_volumes([disk], (), reader(pod=EBS, staged=EBS))
    assert identity(found) == EBS
    assert (found.provider, found.volume, found.is_local) == ("aws", "vol-0a1b", False)


def test_name_of_the_persistent_volume_comes_from_the_file_that_has_it() -> None:
    disk = a_disk(mount_points=(GLOBAL, POD))
    staged = EBS._replace(persistent_volume=None)
    [found] = with_csi_volumes([disk], (), reader(pod=EBS, staged=staged))
    assert identity(found) == EBS
    [found] = with_csi_volumes([disk], (), reader(staged=staged))
    assert identity(found) == staged


@pytest.mark.parametrize("place", ["publish/pvc-1/uid-1", "pvc-1/dev/uid-1"])
def test_volume_in_block_mode(place: str) -> None:
    mount = Mount(0, 5, "/nvme1n1", f"{BLOCK}/{place}", "udev", "devtmpfs")
    disks = [a_disk(), a_disk("vdb")]
    found, other = with_csi_volumes(disks, [mount], reader(block=EBS))
    assert identity(found) == EBS
    assert other == disks[1]


@pytest.mark.parametrize(
    "mount",
    [
        Mount(0, 5, "/nvme1n1", f"{BLOCK}/publish/pvc-1/uid-1", "tmpfs", "tmpfs"),
        Mount(0, 5, "/nvme9n1", f"{BLOCK}/publish/pvc-1/uid-1", "udev", "devtmpfs"),
        Mount(0, 5, "/nvme1n1", f"{BLOCK}/staging/pvc-1", "udev", "devtmpfs"),
        Mount(0, 5, "/nvme1n1p1", f"{BLOCK}/publish/pvc-1/uid-1", "udev", "devtmpfs"),
    ],
)
def test_other_mounts_are_no_volumes_in_block_mode(mount: Mount) -> None:
    disks = (a_disk(), a_disk("nvme1n1p1", partition_of="nvme1n1"))
    assert with_csi_volumes(disks, [mount], reader(block=EBS)) == disks


@pytest.mark.parametrize(
    "disk",
    [
        a_disk(mount_points=("/data",)),
        a_disk(mount_points=(POD,), partition_of="sda"),
        a_disk(mount_points=(POD,), slaves=("sda",)),
        a_disk(mount_points=(POD,), hidden=True),
        a_disk(mount_points=(f"{POD}/below",)),
    ],
)
def test_other_disks_are_unchanged(disk: Disk) -> None:
    assert with_csi_volumes([disk], (), reader(pod=EBS)) == (disk,)


def test_volume_on_top_of_a_disk_is_not_the_disk() -> None:
    disk = a_disk(mount_points=(POD,), holders=("dm-0", "gone"))
    above = a_disk("dm-0", mount_points=(POD,), slaves=("nvme1n1",))
    assert with_csi_volumes([disk, above], (), reader(pod=EBS)) == (disk, above)


def test_disk_with_several_volumes_has_none() -> None:
    disk = a_disk(mount_points=(GLOBAL, POD))
    other = EBS._replace(handle="vol-0c2d")
    assert with_csi_volumes([disk], (), reader(pod=EBS, staged=other)) == (disk,)
    named = EBS._replace(persistent_volume="pvc-2")
    [found] = with_csi_volumes([disk], (), reader(pod=EBS, staged=named))
    assert found.persistent_volume is None


@pytest.mark.parametrize(
    ("driver", "handle", "provider", "volume"),
    [
        ("ebs.csi.aws.com", "vol-0a1b", "aws", "vol-0a1b"),
        ("ebs.csi.aws.com", "aws://eu-west-1a/vol-0a1b", None, None),
        ("pd.csi.storage.gke.io", "projects/p/zones/z/disks/pvc-7", "gcp", "pvc-7"),
        ("pd.csi.storage.gke.io", "projects/p/regions/r/disks/pvc-7", "gcp", "pvc-7_regional"),
        ("cinder.csi.openstack.org", UUID, "openstack", UUID),
        (
            "disk-csi-driver.mks.ycloud.io",
            "fhm1dn62tm5dnaspeh8n",
            "yandex",
            "fhm1dn62tm5dnaspeh8n",
        ),
        ("disk.csi.azure.com", "/subscriptions/s/disks/pvc-7", None, None),
        ("ebs.csi.eks.amazonaws.com", "vol-0a1b", "aws", "vol-0a1b"),
        ("yandex.csi.flant.com", "epd1", "yandex", "epd1"),
        ("csi.example.org", "vol-0a1b", None, None),
    ],
)
def test_volume_by_its_handle(
    driver: str, handle: str, provider: str | None, volume: str | None
) -> None:
    disk = a_disk(mount_points=(POD,))
    [found] = with_csi_volumes([disk], (), reader(pod=CsiVolume(driver, handle, None)))
    assert (found.provider, found.volume) == (provider, volume)
    assert found.volume_handle == handle


@pytest.mark.parametrize(
    ("disk", "expected"),
    [
        (a_disk(provider="aws", mount_points=(POD,)), ("aws", "vol-0a1b")),
        (a_disk(provider="aws", volume="vol-9", mount_points=(POD,)), ("aws", "vol-9")),
        (a_disk(provider="gcp", mount_points=(POD,)), ("gcp", None)),
    ],
)
def test_own_identity_of_the_disk_comes_first(
    disk: Disk, expected: tuple[str, str | None]
) -> None:
    [found] = with_csi_volumes([disk], (), reader(pod=EBS))
    assert (found.provider, found.volume) == expected
    assert found.volume_handle == "vol-0a1b"


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ((HASHED, POD), ("ebs.csi.aws.com", HASH, "pvc-1")),
        ((HASHED,), ("ebs.csi.aws.com", HASH, None)),
        ((HASHED, POD, POD.replace("pvc-1", "pvc-2")), ("ebs.csi.aws.com", HASH, None)),
        ((HASHED, HASHED.replace("ebs.csi", "csi")), (None, None, None)),
        ((POD,), (None, None, None)),  # may be an inline volume
        ((GLOBAL, POD), (None, None, None)),  # before Kubernetes 1.24
    ],
)
def test_places_tell_the_volume_without_the_files(
    points: tuple[str, ...], expected: tuple[str | None, ...]
) -> None:
    [found] = with_csi_volumes([a_disk(mount_points=points)], (), reader())
    assert (found.csi_driver, found.volume_handle_hash, found.persistent_volume) == expected
    assert (found.volume_handle, found.volume) == (None, None)


def test_place_in_block_mode_has_the_name() -> None:
    mount = Mount(0, 5, "/nvme1n1", f"{BLOCK}/publish/pvc-1/uid-1", "udev", "devtmpfs")
    [found] = with_csi_volumes([a_disk()], [mount], reader())
    assert (found.csi_driver, found.volume_handle_hash) == (None, None)
    assert found.persistent_volume == "pvc-1"


def test_hash_is_that_of_kubelet() -> None:
    # sha256sum of `vol-0a1b` without a newline
    assert handle_hash("vol-0a1b") == HASH


def test_names_in_use() -> None:
    mounts = [
        Mount(259, 2, "/", POD.replace("pvc-1", "pvc-2"), "/dev/nvme1n1", "xfs"),
        Mount(259, 2, "/", HASHED, "/dev/nvme1n1", "xfs"),
        Mount(0, 50, "/", POD, "/dev/nvme2n1", "btrfs"),
        Mount(0, 51, "/", POD.replace("pvc-1", "secrets"), "tmpfs", "tmpfs"),
        Mount(0, 5, "/nvme3n1", f"{BLOCK}/publish/pvc-3/uid-1", "udev", "devtmpfs"),
        Mount(259, 1, "/", "/", "/dev/nvme0n1p1", "ext4"),
    ]
    assert names_in_use(mounts) == ("pvc-1", "pvc-2", "pvc-3")


@pytest.fixture
def node(tmp_path: Path) -> Roots:
    """Return a node whose volume is mounted for a pod, with the files below a root of its own."""
    for archive in (HOSTS / "aws-nitro").glob("*.ttar"):
        ttar.unpack(archive, tmp_path)
    table = tmp_path / "proc/1/mountinfo"
    lines = [
        f"9{n} 22 259:2 / {point} rw - xfs /dev/nvme1n1 rw"
        for n, point in enumerate((GLOBAL, POD))
    ]
    table.write_text("".join(f"{line}\n" for line in lines))
    for file, volume in ((GLOBAL_FILE, EBS._replace(persistent_volume=None)), (POD_FILE, EBS)):
        path = tmp_path / f"host{file}"
        path.parent.mkdir(parents=True)
        path.write_bytes(document(volume))
    return Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "udev", tmp_path / "host")


def volume_disk(roots: Roots) -> Disk:
    inventory = read_disks(roots)
    assert inventory.problems == ()
    return next(disk for disk in inventory.disks if disk.name == "nvme1n1")


def test_disk_of_a_node(node: Roots) -> None:
    disk = volume_disk(node)
    assert identity(disk) == EBS
    assert (disk.volume, disk.mount_points) == ("vol-0fedcba9876543210", (GLOBAL, POD))


def test_files_that_are_absent_or_not_regular_are_ignored(node: Roots) -> None:
    pod = node.rootfs / POD_FILE[1:]
    pod.unlink()
    os.mkfifo(pod)
    assert identity(volume_disk(node)) == EBS._replace(persistent_volume=None)
    staged = node.rootfs / GLOBAL_FILE[1:]
    staged.rename(staged.with_name("elsewhere"))
    staged.symlink_to("elsewhere")
    assert identity(volume_disk(node)) == (None, None, None)
    shutil.rmtree(node.rootfs)
    assert identity(volume_disk(node)) == (None, None, None)


def test_long_file_is_not_read_whole(node: Roots) -> None:
    for file in (POD_FILE, GLOBAL_FILE):
        with (node.rootfs / file[1:]).open("ab") as content:
            content.truncate(2**30)
    assert identity(volume_disk(node)) == (None, None, None)


def test_unreadable_files_are_one_problem(node: Roots) -> None:
    # Root may read any file, but no name may be longer than 255 bytes.
    long = "x" * 300
    table = node.procfs / "1/mountinfo"
    text = table.read_text()
    table.write_text(text.replace("pvc-1", long).replace("0a1b2c", long))
    [problem] = read_disks(node).problems
    assert problem == (
        "cannot read vol_data.json of kubelet: File name too long; handles of CSI volumes are"
        " unknown; only root may read it, in a container below --path.rootfs"
    )


def test_records_without_the_fields_still_decode() -> None:
    record = b'{"name":"vda","major":254,"minor":0,"size_bytes":8}'
    disk = msgspec.json.decode(record, type=Disk)
    assert (disk.provider, disk.volume, disk.is_local) == (None, None, None)
    assert identity(disk) == (None, None, None)
    assert msgspec.json.encode(disk) == record
