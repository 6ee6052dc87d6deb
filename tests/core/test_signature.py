import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.core.signature import EDGE_BYTES, signatures

KIB, MIB = 1024, 1024**2
SIZE = 64 * MIB + 37 * KIB
"""Not a whole number of 64 KiB, as many disks are."""


def holding(size_bytes: int, *pieces: tuple[int, bytes]) -> tuple[bytes, bytes]:
    disk = bytearray(size_bytes)
    for at, content in pieces:
        disk[at : at + len(content)] = content
    return bytes(disk[:EDGE_BYTES]), bytes(disk[-EDGE_BYTES:])


def names(*pieces: tuple[int, bytes], size_bytes: int = SIZE) -> tuple[str, ...]:
    return signatures(*holding(size_bytes, *pieces), size_bytes)


ENTRY = (446, b"\x80")
MD = bytes.fromhex("fc4e2ba9")


@pytest.mark.parametrize(
    ("pieces", "name"),
    [
        ([(510, b"\x55\xaa"), ENTRY], "MBR partition table"),
        ([(512, b"EFI PART")], "GPT partition table"),
        ([(4096, b"EFI PART")], "GPT partition table"),
        ([(SIZE - 512, b"EFI PART")], "GPT partition table (backup)"),
        ([(0x438, b"\x53\xef")], "ext2, ext3 or ext4 file system"),
        ([(0, b"XFSB")], "xfs file system"),
        ([(0x10040, b"_BHRfS_M")], "btrfs file system"),
        ([(0x400, b"\x10\x20\xf5\xf2")], "f2fs file system"),
        ([(3, b"NTFS    ")], "ntfs file system"),
        ([(54, b"FAT16   ")], "vfat file system"),
        ([(82, b"FAT32   ")], "vfat file system"),
        ([(4086, b"SWAPSPACE2")], "swap"),
        ([(512, b"LABELONE")], "LVM physical volume"),
        ([(0, b"LUKS\xba\xbe")], "LUKS encryption"),
        ([(16 * KIB, b"SKUL\xba\xbe")], "LUKS encryption (second header)"),
        ([(0, b"bluestore block device\n")], "ceph BlueStore"),
        ([(MIB, b"\x0d\xf1\xca\x0d")], "VMFS volume"),
        ([(SIZE // 65536 * 65536 - 65536, MD)], "md RAID member"),
        ([((SIZE // 512 - 16) // 8 * 8 * 512, MD)], "md RAID member"),
        ([(0, MD)], "md RAID member"),
        ([(4096, MD)], "md RAID member"),
        ([(128 * KIB, b"\x0c\xb1\xba\x00\x00\x00\x00\x00")], "zfs pool member"),
        ([(SIZE // 262144 * 262144 - 64 * KIB, b"\0\0\0\0\0\xba\xb1\x0c")], "zfs pool member"),
    ],
)
def test_content_has_a_name(pieces: list[tuple[int, bytes]], name: str) -> None:
    assert names(*pieces) == (name,)


def test_bcache_has_a_name() -> None:
    magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
    assert names((4096 + 24, magic)) == ("bcache",)


def test_a_disk_may_hold_several() -> None:
    assert names((0, b"XFSB"), (512, b"EFI PART"), (SIZE - 512, b"EFI PART")) == (
        "GPT partition table",
        "GPT partition table (backup)",
        "xfs file system",
    )


def test_nothing_has_no_name() -> None:
    assert names() == ()
    assert names((510, b"\x55\xaa")) == (), "a table without entries"
    assert names((5000, b"unknown")) == ()


@given(st.binary(max_size=3 * KIB), st.integers(0, 2**50))
def test_any_content_of_any_disk_is_looked_at(content: bytes, size_bytes: int) -> None:
    size_bytes = max(size_bytes, len(content))
    assert isinstance(signatures(content, content, size_bytes), tuple)


@pytest.mark.parametrize("size_bytes", [0, 1, 511, 512, 4096, 70 * KIB, 300 * KIB, MIB])
def test_small_disks_are_looked_at(size_bytes: int) -> None:
    assert names(size_bytes=size_bytes) == ()


def test_marks_of_places_that_a_small_disk_has_not_are_not_found() -> None:
    assert names((0, b"\x0d\xf1\xca\x0d"), size_bytes=MIB) == ()
