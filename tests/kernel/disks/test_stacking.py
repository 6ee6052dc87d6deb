"""Holders and mount points of stacked devices."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.stacking import devices_below, parts_of, with_stacking
from disksla.kernel.procfs.mountinfo import Mount

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
