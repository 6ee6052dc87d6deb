"""When a raw device is in use, and when it is empty."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.disks.disk import Disk
from disksla.fio.raw_device_rules import (
    EDGE_BYTES,
    parse_root,
    parse_swaps,
    reasons_in_use,
    reasons_not_empty,
    writable_region,
)
from disksla.procfs.mountinfo import Mount

GIB = 1024**3
SDA = Disk("sda", 8, 0, 100 * GIB, diskseq=1)
SDA1 = Disk("sda1", 8, 1, 50 * GIB, partition_of="sda")
SDB = Disk("sdb", 8, 16, 100 * GIB, diskseq=2)
DM0 = Disk("dm-0", 254, 0, 50 * GIB, slaves=("sda1",))
EMPTY = bytes(EDGE_BYTES)
ALL = (SDA, SDA1, SDB, DM0)


def mount(disk: Disk, point: str) -> Mount:
    return Mount(disk.major, disk.minor, "/", point, f"/dev/{disk.name}", "ext4")


def test_unused_disk_has_no_reasons() -> None:
    assert reasons_in_use(SDB, ALL, [mount(DM0, "/")], [(254, 0)], (8, 1)) == ()


def test_everything_stacked_on_a_disk_is_a_reason() -> None:
    reasons = reasons_in_use(SDA, ALL, [mount(DM0, "/srv")], [(254, 0)])
    assert reasons == (
        "it is mounted (/srv)",
        "it is used as swap",
        "it has partitions (sda1)",
        "other devices are stacked on it (dm-0)",
    )


@pytest.mark.parametrize("point", ["/", "/boot", "/boot/efi", "/usr"])
def test_system_disk_is_a_reason(point: str) -> None:
    reasons = reasons_in_use(SDB, ALL, [mount(SDB, point)])
    assert reasons[0] == f"the system runs from it ({point})"
    assert "the system runs from it (/)" in reasons_in_use(SDA, ALL, [mount(DM0, "/")])


def test_root_of_the_command_line_is_a_reason() -> None:
    assert reasons_in_use(SDB, ALL, [], [], (8, 16)) == ("the system runs from it",)


def test_partition_is_a_reason() -> None:
    [reason, *_] = reasons_in_use(SDA1, (SDA, SDA1), [])
    assert reason == "sda1 is a partition of sda; expected a whole disk"


def test_multipath_path_is_a_reason() -> None:
    hidden = msgspec.structs.replace(SDB, hidden=True)
    assert reasons_in_use(hidden, [hidden], []) == ("sdb is one path of a multipath disk",)


def test_missing_or_replaced_disk_is_a_reason() -> None:
    assert reasons_in_use(SDB, [SDA], []) == ("sdb no longer exists",)
    other = msgspec.structs.replace(SDB, diskseq=3)
    assert reasons_in_use(SDB, [other], []) == ("sdb is now the name of another disk",)


def test_zeros_are_empty() -> None:
    assert reasons_not_empty(EMPTY, EMPTY) == ()
    assert reasons_not_empty(b"", b"") == ()


@given(st.integers(0, 2 * EDGE_BYTES - 1), st.integers(1, 255))
def test_any_byte_at_either_end_is_content(at: int, byte: int) -> None:
    both = bytearray(2 * EDGE_BYTES)
    both[at] = byte
    head, tail = bytes(both[:EDGE_BYTES]), bytes(both[EDGE_BYTES:])
    [reason] = reasons_not_empty(head, tail)
    assert "first or last 4 MiB contain data" in reason


@given(st.integers(0, 2**50))
def test_writable_region_excludes_both_ends(size_bytes: int) -> None:
    offset_bytes, span_bytes = writable_region(size_bytes)
    assert offset_bytes == EDGE_BYTES
    assert span_bytes >= 0
    assert span_bytes % 4096 == 0
    if span_bytes:
        assert offset_bytes + span_bytes <= size_bytes - EDGE_BYTES


def test_parse_swaps() -> None:
    text = (
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/dev/dm-1                               partition\t999420\t\t0\t\t-2\n"
        "/swap\\040file\t file\t 1 0 -3\n"
    )
    assert parse_swaps(text) == ("/dev/dm-1", "/swap file")


@given(st.text())
def test_parse_swaps_accepts_any_text(text: str) -> None:
    assert all(name.startswith("/") for name in parse_swaps(text))


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro quiet", "/dev/vda1"),
        ("root=UUID=0af-3 ro", "/dev/disk/by-uuid/0af-3"),
        ("ro root=PARTUUID=12-01", "/dev/disk/by-partuuid/12-01"),
        ('root="LABEL=my root" ro', "/dev/disk/by-label/my root"),
        ("root=ZFS=rpool/ROOT", None),
        ("root=UUID=", None),
        ("nfsroot=/dev/x rdroot=/dev/y", None),
        ("", None),
    ],
)
def test_parse_root(line: str, path: str | None) -> None:
    assert parse_root(line) == path
