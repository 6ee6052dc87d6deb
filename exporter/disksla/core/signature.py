"""What the first and last bytes of a disk say it holds.

Places and magic numbers: libblkid/src/superblocks and libblkid/src/partitions of util-linux.
Names are for people. Whether a disk is empty is never decided by them: there are more kinds of
content than any list has, so an empty disk has nothing but zeros at both ends.
"""

from typing import NamedTuple

EDGE_BYTES = 4 * 1024**2
"""How much is looked at, from either end: nothing known puts its first mark farther in (VMFS at
2 MiB, the second header of LUKS 2 up to 4 MiB)."""

_KIB = 1024
_MBR_ENTRIES = slice(446, 510)


class _Mark(NamedTuple):
    name: str
    at: int
    """From the start; from the end, if negative."""
    magic: bytes


_MARKS = (
    _Mark("GPT partition table", 512, b"EFI PART"),
    _Mark("GPT partition table", 4096, b"EFI PART"),
    _Mark("GPT partition table (backup)", -512, b"EFI PART"),
    _Mark("GPT partition table (backup)", -4096, b"EFI PART"),
    _Mark("ext2, ext3 or ext4 file system", 1080, b"\x53\xef"),
    _Mark("xfs file system", 0, b"XFSB"),
    _Mark("btrfs file system", 64 * _KIB + 64, b"_BHRfS_M"),
    _Mark("bcache", 4 * _KIB + 24, bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")),
    _Mark(
        "bcachefs file system", 4 * _KIB + 24, bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")
    ),
    _Mark("f2fs file system", 1024, bytes.fromhex("1020f5f2")),
    _Mark("ntfs file system", 3, b"NTFS    "),
    _Mark("exfat file system", 3, b"EXFAT   "),
    _Mark("vfat file system", 54, b"FAT1"),
    _Mark("vfat file system", 82, b"FAT32   "),
    _Mark("vfat file system", 82, b"MSWIN"),
    _Mark("iso9660 file system", 32 * _KIB + 1, b"CD001"),
    _Mark("swap", 4 * _KIB - 10, b"SWAPSPACE2"),
    _Mark("swap", 4 * _KIB - 10, b"SWAP-SPACE"),
    _Mark("swap", 16 * _KIB - 10, b"SWAPSPACE2"),
    _Mark("swap", 64 * _KIB - 10, b"SWAPSPACE2"),
    *(_Mark("LVM physical volume", sector * 512, b"LABELONE") for sector in range(4)),
    _Mark("LUKS encryption", 0, b"LUKS\xba\xbe"),
    *(
        _Mark("LUKS encryption (second header)", size * _KIB, b"SKUL\xba\xbe")
        for size in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096 - 16)
    ),
    _Mark("BitLocker encryption", 3, b"-FVE-FS-"),
    _Mark("ceph BlueStore", 0, b"bluestore block device"),
    _Mark("VMFS volume", 1024 * _KIB, bytes.fromhex("0df1ca0d")),
    _Mark("gfs2 file system", 64 * _KIB, bytes.fromhex("01161970")),
    _Mark("reiserfs file system", 64 * _KIB + 52, b"ReIsEr"),
    _Mark("Oracle ASM", 32, b"ORCLDISK"),
    _Mark("md RAID member", 0, bytes.fromhex("fc4e2ba9")),
    _Mark("md RAID member", 4 * _KIB, bytes.fromhex("fc4e2ba9")),
)

_MD = bytes.fromhex("fc4e2ba9")
_UBERBLOCKS = (bytes.fromhex("0cb1ba0000000000"), bytes.fromhex("0000000000bab10c"))


def signatures(head: bytes, tail: bytes, size_bytes: int) -> tuple[str, ...]:
    """Name what a disk of that size holds, by its first and last bytes; nothing if unknown.

    `head` and `tail` are EDGE_BYTES long, or all of a smaller disk.
    """
    tail_at = size_bytes - len(tail)

    def has(at: int, magic: bytes) -> bool:
        return head.startswith(magic, at) or (
            at >= tail_at and tail.startswith(magic, at - tail_at)
        )

    found = [
        mark.name
        for mark in _MARKS
        if has(mark.at if mark.at >= 0 else size_bytes + mark.at, mark.magic)
    ]
    if head[510:512] == b"\x55\xaa" and any(head[_MBR_ENTRIES]):
        found.append("MBR partition table")
    if any(has(at, _MD) for at in _md_places(size_bytes)):
        found.append("md RAID member")
    if any(has(at, magic) for at in _zfs_places(size_bytes) for magic in _UBERBLOCKS):
        found.append("zfs pool member")
    return tuple(dict.fromkeys(found))


def _md_places(size_bytes: int) -> tuple[int, ...]:
    """Give where metadata 0.90 and 1.0 lie: before the end, at whole 64 KiB and whole 4 KiB."""
    unit = 64 * _KIB
    return max(0, size_bytes // unit * unit - unit), max(0, (size_bytes // 512 - 16) // 8 * 4096)


def _zfs_places(size_bytes: int) -> list[int]:
    """Give where uberblocks lie: in the upper half of four labels of 256 KiB, two at each end."""
    label, end = 256 * _KIB, size_bytes // (256 * _KIB) * 256 * _KIB
    labels = [0, label, end - 2 * label, end - label]
    return [at + inner for at in labels if at >= 0 for inner in range(label // 2, label, _KIB)]
