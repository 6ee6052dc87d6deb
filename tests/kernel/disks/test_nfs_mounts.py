"""NFS mounts as disks: which mounts are one, and their names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.disks.disk import nfs_disks
from disksla.kernel.procfs.mountinfo import Mount


def mount(
    source: str, point: str = "/data", minor: int = 50, root: str = "/", kind: str = "nfs4"
) -> Mount:
    return Mount(0, minor, root, point, source, kind)


def names(*mounts: Mount) -> list[str]:
    return [disk.name for disk in nfs_disks(mounts)]


def test_the_name_is_what_was_mounted() -> None:
    (disk,) = nfs_disks([mount("fs1.example:/export"), mount("/dev/vda1", "/", kind="ext4")])
    assert (disk.name, disk.kind, disk.size_bytes) == ("fs1.example:/export", "nfs", 0)
    assert (disk.major, disk.minor) == (0, 50)
    assert disk.mount_points == disk.file_system_mounts == ("/data",)


def test_mounts_of_one_superblock_are_one_disk() -> None:
    assert names(
        mount("fs1:/export", "/sub", root="/sub"),
        mount("fs1:/export/deep", "/deep", root="/deep"),
        mount("fs1:/export", "/data"),
    ) == ["fs1:/export"]


def test_a_mount_below_another_is_none() -> None:
    lower, upper = mount("fs1:/export", minor=50), mount("fs1:/export", minor=51)
    (disk,) = nfs_disks([lower, upper])
    assert (disk.name, disk.minor) == ("fs1:/export", 51)
    assert names(lower, mount("/dev/vdb", kind="ext4")) == []
    assert names(lower, mount("fs1:/export", "/also"), upper) == [
        "fs1:/export@/also",
        "fs1:/export@/data",
    ]


def test_another_version_of_the_protocol_is_another_superblock() -> None:
    both = names(mount("fs1:/export", "/v3", 50, kind="nfs"), mount("fs1:/export", "/v4", 51))
    assert both == ["fs1:/export@/v3", "fs1:/export@/v4"]


@pytest.mark.parametrize("source", ["127.0.0.1:/", "localhost:/", "[::1]:/", "127.1.2.3:/a"])
def test_a_proxy_on_this_machine_is_told_by_its_mount_point(source: str) -> None:
    assert names(mount(source, "/efs")) == [f"{source}@/efs"]


def test_what_pods_mount_is_a_name_only_where_there_is_nothing_else() -> None:
    pod = "/var/lib/kubelet/pods/1c22/volumes/kubernetes.io~nfs/pv"
    (disk,) = nfs_disks([mount("fs1:/export", pod), mount("fs1:/export", "/data")])
    assert disk.mount_points == ("/data",)
    (only,) = nfs_disks([mount("fs1:/export", pod)])
    assert (only.mount_points, only.file_system_mounts) == ((pod,), ())


@pytest.mark.parametrize(
    ("source", "volume"),
    [
        ("fs-0123456789abcdef0.efs.eu-west-1.amazonaws.com:/", "fs-0123456789abcdef0"),
        ("eu-west-1a.fs-0123.efs.eu-west-1.amazonaws.com:/", "fs-0123"),
        ("fs-0123.fsx.eu-west-1.amazonaws.com:/fsx/vol", "fs-0123"),
        ("svm-0a.fs-0123.fsx.eu-west-1.amazonaws.com:/vol1", "fs-0123"),
        ("acct1.file.core.windows.net:/acct1/share", "acct1/share"),
        ("fs-0123.example.com:/", None),
        ("192.0.2.1:/vol", None),
    ],
)
def test_the_id_of_the_storage_where_the_source_has_it(source: str, volume: str | None) -> None:
    assert nfs_disks([mount(source)])[0].volume == volume


@given(st.text(min_size=1), st.text(min_size=1))
def test_names_have_no_spaces_whatever_is_mounted(source: str, point: str) -> None:
    for name in names(mount(source, f"/{point}"), mount(source, f"/{point}x", 51)):
        assert not any(character.isspace() for character in name)
