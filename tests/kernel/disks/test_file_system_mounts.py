"""Mount points of file systems, without those of pods, containers and bind mounts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.procfs.mountinfo import file_system_mounts, parse_mountinfo

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
