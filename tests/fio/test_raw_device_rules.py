"""When a raw device is in use, and when it is empty."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.disks.disk import Disk
from disksla.fio.raw_device_rules import (
    BLOCK_BYTES,
    EDGE_BYTES,
    SAMPLES,
    parse_root,
    parse_swaps,
    reasons_in_use,
    reasons_not_empty,
    sampled_regions,
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
    assert reasons_not_empty([(0, EMPTY), (100 * GIB - EDGE_BYTES, EMPTY)]) == ()
    assert reasons_not_empty([(0, b"")]) == ()
    assert reasons_not_empty([]) == ()


@given(st.integers(0, 3 * BLOCK_BYTES - 1), st.integers(1, 255))
def test_any_byte_is_content_and_its_offset_is_named(at: int, byte: int) -> None:
    content = bytearray(3 * BLOCK_BYTES)
    content[at] = byte
    regions = [(GIB + n, bytes(content[n : n + BLOCK_BYTES])) for n in range(0, 12288, 4096)]
    [reason] = reasons_not_empty(regions)
    assert reason.startswith(f"it contains data at byte {GIB + at}; if none of its data is needed")


def test_nothing_is_read_after_the_first_data() -> None:
    regions = iter([(0, b"\0"), (8, b"x"), (16, b"y")])
    [reason] = reasons_not_empty(regions)
    assert "at byte 8;" in reason
    assert list(regions) == [(16, b"y")]


@given(st.integers(0, 2**50), st.integers())
def test_regions_are_of_the_disk_with_its_ends(size_bytes: int, seed: int) -> None:
    head, tail, *blocks = sampled_regions(size_bytes, random.Random(seed).randrange)
    assert head == (0, min(EDGE_BYTES, size_bytes))
    assert sum(tail) == size_bytes
    assert tail[1] >= min(EDGE_BYTES, size_bytes)
    assert all(at % BLOCK_BYTES == 0 for at, _ in (tail, *blocks))
    assert all(at + length <= size_bytes for at, length in blocks)
    assert blocks == sorted(set(blocks))
    assert len(blocks) <= 2 * SAMPLES


@given(st.integers(1, 2**50), st.integers(), st.data())
def test_data_as_long_as_the_stride_is_found_anywhere(
    size_bytes: int, seed: int, data: st.DataObject
) -> None:
    stride_bytes = size_bytes // SAMPLES + 2 * BLOCK_BYTES
    at = data.draw(st.integers(0, max(0, size_bytes - stride_bytes)))
    regions = sampled_regions(size_bytes, random.Random(seed).randrange)
    assert any(offset < at + stride_bytes and offset + length > at for offset, length in regions)


def test_blocks_by_chance_differ_and_those_of_the_stride_do_not() -> None:
    first, second = (
        set(sampled_regions(100 * GIB, random.Random(seed).randrange)) for seed in (1, 2)
    )
    assert SAMPLES <= len(first & second) < SAMPLES + 100
    assert len(first) > 2 * SAMPLES - 100
    by_chance = sorted(at for at, _ in first - second)
    halves = [sum(at < 50 * GIB for at in by_chance), sum(at >= 50 * GIB for at in by_chance)]
    assert min(halves) > 0.4 * len(by_chance)


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
