"""Parsing of /proc/<pid>/mountinfo."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.procfs.mountinfo import Mount, foreign_file_system, parse_mountinfo

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


def escaped(name: str) -> str:
    """Return a name as the kernel (fs/seq_file.c) writes it to mountinfo."""
    return "".join(f"\\{ord(c):03o}" if c in " \t\n\\#" else c for c in name)


def test_parse_mountinfo_of_the_documented_example() -> None:
    line = (
        "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n"
    )
    assert parse_mountinfo(line) == (
        Mount(
            98,
            0,
            "/mnt1",
            "/mnt2",
            "/dev/root",
            "ext3",
            read_only=False,
            number=36,
            options="rw,errors=continue",
        ),
    )


def test_parse_mountinfo_without_optional_fields() -> None:
    assert parse_mountinfo("22 27 0:21 / /proc rw - proc none") == (
        Mount(0, 21, "/", "/proc", "none", "proc", read_only=False, number=22),
    )


@pytest.mark.parametrize(
    ("mount", "file_system", "read_only"),
    [
        ("rw,relatime", "rw,discard", False),
        ("ro,relatime", "rw,discard", True),
        ("rw,relatime", "ro,norecovery", True),
        ("rw,nosuid", "rw,errors=remount-ro", False),
    ],
)
def test_mount_is_read_only_if_it_or_its_file_system_is(
    mount: str, file_system: str, read_only: bool
) -> None:
    [found] = parse_mountinfo(f"22 27 8:1 / /srv {mount} - xfs /dev/sda1 {file_system}")
    assert found.read_only == read_only


@given(root=NAMES, mount_point=NAMES, source=NAMES)
def test_parse_mountinfo_decodes_escaped_names(root: str, mount_point: str, source: str) -> None:
    text = f"1 0 8:1 {escaped(root)} {escaped(mount_point)} rw - ext4 {escaped(source)} rw\n"
    [mount] = parse_mountinfo(text)
    assert mount[:5] == (8, 1, root, mount_point, source)


@pytest.mark.parametrize(
    ("root", "options", "subvolume"),
    [
        ("/", "rw,errors=continue", "/"),
        ("/@home", "rw,space_cache=v2,subvolid=257,subvol=/@home", "/@home"),
        ("/@/srv", "rw,subvolid=256,subvol=/@", "/@"),
        ("/", "rw,ssd,subvolid=5,subvol=/", "/"),
        ("/a\\040b,c", "rw,subvolid=258,subvol=/a\\040b,c", "/a b,c"),
    ],
)
def test_subvolume_of_btrfs(root: str, options: str, subvolume: str) -> None:
    """The options are those of btrfs of Linux 6.1 (btrfs_show_options of fs/btrfs/super.c)."""
    [mount] = parse_mountinfo(f"1 0 0:41 {root} /srv rw - btrfs /dev/sdb {options}")
    assert mount.subvolume == subvolume


@pytest.mark.parametrize(
    "line",
    [
        "",
        "1 0 8:1 / / rw",
        "1 0 8:1 / - ext4 /dev/sda1 rw",
        "1 0 8 / / rw - ext4 /dev/sda1 rw",
        "1 0 a:b / / rw - ext4 /dev/sda1 rw",
        "1 0 8:1 / / rw - ext4",
    ],
)
def test_parse_mountinfo_skips_invalid_lines(line: str) -> None:
    good = "2 1 8:2 / /home rw - ext4 /dev/sda2 rw"
    [mount] = parse_mountinfo(f"{line}\n{good}\n")
    assert mount[:5] == (8, 2, "/", "/home", "/dev/sda2")


def mounted(file_system: str) -> Mount:
    return Mount(0, 45, "/", "/", "any", file_system)


@pytest.mark.parametrize(
    ("file", "directory", "expected"),
    [
        ("proc", "proc", None),
        ("ext4", "ext4", None),
        ("fuse.lxcfs", "proc", "fuse.lxcfs"),
        ("fuse.lxcfs", "ext4", "fuse.lxcfs"),
        ("fuse.lxcfs", "fuse.lxcfs", "fuse.lxcfs"),
        ("devtmpfs", "proc", "devtmpfs"),
    ],
)
def test_foreign_file_system_over_a_file_of_procfs(
    file: str, directory: str, expected: str | None
) -> None:
    assert foreign_file_system(mounted(file), mounted(directory)) == expected


@given(st.text(), st.text())
def test_foreign_file_system_is_lxcfs_or_another_type(file: str, directory: str) -> None:
    is_foreign = foreign_file_system(mounted(file), mounted(directory)) is not None
    assert is_foreign == (file != directory or file == "fuse.lxcfs")


@given(st.text())
def test_parse_mountinfo_accepts_any_text(text: str) -> None:
    assert len(parse_mountinfo(text)) <= text.count("\n") + 1


@given(st.lists(st.text(alphabet=" -:/\\018\n"), max_size=20))
def test_parse_mountinfo_accepts_similar_text(pieces: list[str]) -> None:
    for mount in parse_mountinfo("".join(pieces)):
        assert mount.major >= 0
