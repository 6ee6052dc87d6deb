"""Holders and mount points of stacked devices, and how they are made of others."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.layer import Below, Layer, dm_layer, layer_of
from disksla.kernel.disks.stacking import devices_below, parts_of, with_stacking
from disksla.kernel.procfs.mountinfo import Mount, file_system_mounts, parse_mountinfo

SDA = Disk("sda", 8, 0, 10)
SDA1 = Disk("sda1", 8, 1, 4, partition_of="sda")
SDA2 = Disk("sda2", 8, 2, 5, partition_of="sda")
SDB = Disk("sdb", 8, 16, 10)
MD0 = Disk("md0", 9, 0, 14, slaves=("sda2", "sdb"))
DM0 = Disk("dm-0", 254, 0, 14, slaves=("md0",), by_id=("dm-name-vg-db", "dm-uuid-LVM-x"))
STACK = (SDB, SDA, SDA1, SDA2, MD0, DM0)


def mount(disk: Disk, point: str, root: str = "/") -> Mount:
    return Mount(disk.major, disk.minor, root, point, f"/dev/{disk.name}")


def mount_points(*mounts: Mount) -> dict[str, tuple[str, ...]]:
    return {
        disk.name: disk.mount_points for disk in with_stacking(STACK, mounts) if disk.mount_points
    }


def test_holders_of_partitions_are_holders_of_the_disk() -> None:
    holders = {disk.name: disk.holders for disk in with_stacking(STACK, ()) if disk.holders}
    assert holders == {"sda": ("md0",), "sda2": ("md0",), "sdb": ("md0",), "md0": ("dm-0",)}


def test_what_is_done_by_a_further_path_is_done_to_the_disk() -> None:
    path = msgspec.structs.replace(SDB, name="sdc", minor=32, path_of="sdb")
    part = Disk("sdc1", 8, 33, 4, partition_of="sdc")
    volume = Disk("dm-1", 254, 1, 4, slaves=("sdc1",))
    disks = (SDB, path, part, volume)
    first, *_ = (one for one in with_stacking(disks, [mount(volume, "/srv")]) if one.name == "sdb")
    assert (first.holders, first.mount_points) == (("dm-1",), ("/srv",))
    assert parts_of(SDB, disks) == (SDB, path, part)
    assert devices_below(volume, disks) == (part, path)


def test_disks_are_sorted_by_name() -> None:
    names = [disk.name for disk in with_stacking(STACK, ())]
    assert names == ["dm-0", "md0", "sda", "sda1", "sda2", "sdb"]


def test_mounted_partition_is_a_mount_point_of_its_disk() -> None:
    assert mount_points(mount(SDA1, "/boot")) == {"sda": ("/boot",), "sda1": ("/boot",)}


def test_mounted_volume_is_a_mount_point_of_all_its_disks() -> None:
    points = ("/var/lib/mysql",)
    assert mount_points(mount(DM0, "/var/lib/mysql")) == dict.fromkeys(
        ("dm-0", "md0", "sda", "sda2", "sdb"), points
    )


def test_file_system_without_device_is_found_by_its_source() -> None:
    mounts = (
        Mount(0, 41, "/@", "/", "/dev/sdb"),
        Mount(0, 41, "/@home", "/home", "/dev/sdb"),
        Mount(0, 42, "/", "/srv", "/dev/mapper/vg-db"),
        Mount(0, 43, "/", "/run", "tmpfs"),
    )
    assert mount_points(*mounts)["sdb"] == ("/", "/home", "/srv")
    assert mount_points(*mounts)["dm-0"] == ("/srv",)


def test_bind_mounts_of_a_sandbox_are_left_out() -> None:
    mounts = (
        mount(SDA1, "/"),
        mount(SDA1, "/var/lib/disksla", root="/var/lib/private/disksla"),
        mount(SDA1, "/mnt/too"),
    )
    assert mount_points(*mounts)["sda1"] == ("/", "/mnt/too")


def test_bind_mounts_of_a_container_without_root_are_kept() -> None:
    files = ("/etc/hosts", "/etc/resolv.conf")
    mounts = [mount(SDB, file, root=f"/containers/1{file}") for file in files]
    assert mount_points(*mounts) == {"sdb": files}


def test_a_mapped_device_on_metadata_alone_is_no_layer() -> None:
    metadata = Below("dm-1", dm_name="vg-pool_tmeta")
    assert dm_layer(Below("dm-0"), 0, [metadata]) is None


NAMES = st.sampled_from("abcdef")
DISKS = st.builds(
    Disk,
    name=NAMES,
    major=st.integers(0, 2),
    minor=st.integers(0, 2),
    size_bytes=st.just(1),
    partition_of=st.none() | NAMES,
    slaves=st.lists(NAMES, max_size=3).map(tuple),
)
MOUNTS = st.builds(
    Mount,
    st.integers(0, 2),
    st.integers(0, 2),
    st.text(alphabet="/x", max_size=4),
    st.text(alphabet="/y", max_size=4),
    NAMES.map(lambda name: f"/dev/{name}"),
)


@given(st.lists(DISKS, unique_by=lambda disk: disk.name), st.lists(MOUNTS))
def test_any_stack_even_with_cycles_is_completed(disks: list[Disk], mounts: list[Mount]) -> None:
    completed = with_stacking(disks, mounts)
    assert [
        msgspec.structs.replace(disk, holders=(), mount_points=(), file_system_mounts=())
        for disk in completed
    ] == sorted(disks, key=lambda disk: disk.name)
    by_name = {disk.name: disk for disk in completed}
    for disk in completed:
        assert set(disk.file_system_mounts) <= {mount.mount_point for mount in mounts}
        for slave in set(disk.slaves) & by_name.keys():
            assert disk.name in by_name[slave].holders
            assert set(disk.mount_points) <= set(by_name[slave].mount_points)
        if disk.partition_of in by_name:
            assert set(disk.mount_points) <= set(by_name[disk.partition_of].mount_points)


UID = "0b7d8a4e-6b1f-4a57-9a55-0d6f3c1b2a49"
KUBELET = "/var/lib/kubelet"
STAGED = f"{KUBELET}/plugins/kubernetes.io/csi/ebs.csi.aws.com/{'0a' * 32}/globalmount"
IN_POD = f"{KUBELET}/pods/{UID}/volumes/kubernetes.io~csi/pvc-1/mount"
RUNC = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"


def mounts_of(*lines: tuple[str, str], of: str = "ext4 /dev/sdb rw") -> set[str]:
    text = "".join(f"1 0 8:16 {root} {point} rw - {of}\n" for root, point in lines)
    return file_system_mounts(parse_mountinfo(text))


def test_volume_of_a_pod_has_one_mount_point_whatever_pods_use_it() -> None:
    """As kubelet mounts a volume of a CSI driver: staged, for a pod, and a subPath of it."""
    sub_path = f"{KUBELET}/pods/{UID}/volume-subpaths/pvc-1/postgres/0"
    before = mounts_of(("/", STAGED), ("/", IN_POD), ("/data", sub_path))
    assert before == {STAGED}
    another = (IN_POD.replace(UID, "another"), sub_path.replace(UID, "another"))
    assert mounts_of(("/", STAGED), ("/", another[0]), ("/data", another[1])) == before
    assert mounts_of(("/", IN_POD)) == set(), "a driver that does not stage"


@pytest.mark.parametrize(
    ("point", "is_kept"),
    [
        ("/", True),
        ("/var/lib/docker", True),
        ("/var/lib/docker/volumes/pg/_data", True),
        ("/srv/docker/pg", True),
        ("/srv/pods/1", True),
        ("/var/lib/docker/devicemapper/mnt/5f1e", False),
        ("/var/lib/containers/storage/btrfs/subvolumes/5f1e", False),
        (f"{RUNC}/5f1e/rootfs", False),
        ("/run/k3s/containerd/5f1e/rootfs", False),
    ],
)
def test_mount_points_of_containers(point: str, is_kept: bool) -> None:
    assert mounts_of(("/", point)) == ({point} if is_kept else set())


def test_bind_mounts_and_further_mounts_are_left_out() -> None:
    host = (("/", "/"), ("/", "/mnt/again"), ("/var/lib/private/x", "/var/lib/x"))
    assert mounts_of(*host) == {"/"}
    own_files = (("/containers/1/hosts", "/etc/hosts"), ("/containers/1/conf", "/etc/resolv.conf"))
    assert mounts_of(*own_files) == set(), "seen from a container"


def test_each_subvolume_of_btrfs_counts_and_directories_of_it_do_not() -> None:
    def lines(*each: tuple[str, str, str]) -> set[str]:
        return file_system_mounts(
            mount
            for root, point, subvolume in each
            for mount in parse_mountinfo(
                f"1 0 0:41 {root} {point} rw - btrfs /dev/sdb rw,subvolid=256,subvol={subvolume}\n"
            )
        )

    found = lines(
        ("/@", "/", "/@"),
        ("/@home", "/home", "/@home"),
        ("/@/srv/data", "/export", "/@"),
        ("/@home", "/mnt/home", "/@home"),
        ("/@/var/lib/containerd/7", f"{RUNC}/5f1e/rootfs", "/@/var/lib/containerd/7"),
    )
    assert found == {"/", "/home"}


POINTS = st.sampled_from(["/", "/srv", IN_POD, STAGED, f"{RUNC}/1/rootfs"])
LINES = st.lists(st.tuples(st.sampled_from(["/", "/a"]), POINTS))


@given(LINES, LINES)
def test_mounts_of_pods_and_later_mounts_change_nothing(
    first: list[tuple[str, str]], later: list[tuple[str, str]]
) -> None:
    before = mounts_of(*first)
    assert len(before) <= 1
    assert mounts_of(*first, *((root, IN_POD) for root, _ in later)) == before
    if before:
        assert mounts_of(*first, *later) == before


KIB = 1024


@pytest.mark.parametrize(
    ("level", "layout", "members", "expected"),
    [
        ("raid0", "", ["sda", None], ("unknown", "RAID 0 with a member missing", 1)),
        ("raid1", "", ["sda", None], ("mirrored", "RAID 1", 1)),
        ("raid10", "513", ["sda", "sdb"], ("striped", "RAID 10", 2)),
        ("raid10", "259", ["sda", "sdb", "sdc"], ("striped", "RAID 10", 3)),
        ("linear", "", ["sda", "sdb"], ("linear", "md linear", 1)),
        ("raid6", "2", ["sda", "sdb", "sdc", "sdd"], ("unknown", "RAID 6", 1)),
    ],
)
def test_arrays(
    level: str, layout: str, members: list[str | None], expected: tuple[str, str, int]
) -> None:
    files = {"md/level": level, "md/layout": layout, "md/raid_disks": str(len(members))}
    links = {f"md/rd{slot}": each and f"dev-{each}" for slot, each in enumerate(members)}
    layer = layer_of(("sda", "sdb"), files.get, links.get)
    assert layer is not None
    assert (layer.how, layer.title, layer.copies) == expected
    assert layer.members == tuple(filter(None, members))


def lvm(*below: Below, minimum: int = 512, optimal: int = 0, size: int = 100) -> Layer | None:
    return dm_layer(Below("", size, optimal, "vg-data", "LVM-x"), minimum, below)


RAID_CARD = 256 * KIB  # optimal_io_size of a volume of a RAID controller with four disks


@pytest.mark.parametrize(
    ("layer", "how", "members"),
    [
        (lvm(Below("sda", 1, RAID_CARD), Below("sdb", 1, RAID_CARD), optimal=RAID_CARD),
         "linear", "sda sdb"),
        (lvm(Below("sda", 1, 64), Below("sdb", 1, 96), optimal=192), "linear", "sda sdb"),
        (lvm(Below("sda", 1, RAID_CARD), Below("sdb"), minimum=4 * KIB, optimal=8 * KIB),
         "striped", "sda sdb"),
        (lvm(Below("sda", 1, 8 * KIB), Below("sdb", 1, 8 * KIB), minimum=4 * KIB, optimal=8 * KIB),
         "unknown", "sda sdb"),
        (lvm(Below("sda"), Below("sdb"), Below("sdc"), minimum=4 * KIB, optimal=8 * KIB),
         "unknown", "sda sdb sdc"),
        (lvm(Below("dm-1", 9, 0, "vg-pool_tmeta"), Below("dm-2", 99, 0, "vg-pool_tdata")),
         "linear", "dm-2"),
        (lvm(Below("dm-1", 9, 0, "vg-fast_cpool", "LVM-y"), Below("dm-2", 9, 0, "vg-x", "LVM-z")),
         "unknown", "dm-1 dm-2"),
        (lvm(*(Below(f"dm-{n}", 50, 0, f"vg-r_rimage_{n}") for n in range(3))),
         "unknown", "dm-0 dm-1 dm-2"),
        (lvm(*(Below(f"dm-{n}", 50, 0, f"vg-r_rimage_{n}") for n in range(2))),
         "striped", "dm-0 dm-1"),
        (lvm(Below("dm-0", 50, 0, "vg-r_mimage_0"), Below("dm-1", 60, 0, "vg-r_mimage_1")),
         "unknown", "dm-0 dm-1"),
        (dm_layer(Below("", dm_uuid="mpath-3600"), 512, [Below("sda"), Below("sdb")]),
         "linear", "sda sdb"),
    ],
)  # fmt: skip
def test_logical_volumes(layer: Layer | None, how: str, members: str) -> None:
    assert layer is not None
    assert (layer.how, " ".join(layer.members)) == (how, members)


def test_devices_that_are_made_of_no_other() -> None:
    files = {"md/level": "raid0", "md/raid_disks": "2"}
    assert layer_of((), files.get, lambda _: "dev-sda") is None
    assert layer_of(("sda",), files.get, lambda _: None) is None
    assert layer_of(("sda",), {"bcache/state": "1"}.get, lambda _: None) is None
