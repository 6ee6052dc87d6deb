"""When a raw device is in use, and when it is empty."""

import random
from collections.abc import Collection
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.kernel.disks.disk import Disk
from disksla.kernel.procfs.mountinfo import Mount
from disksla.measure.fio.raw_device_rules import (
    BLOCK_BYTES,
    EDGE_BYTES,
    SAMPLES,
    SECTOR_BYTES,
    check_consent,
    parse_root,
    parse_swaps,
    reasons_in_use,
    reasons_not_empty,
    reasons_other_disk,
    sampled_regions,
    volume_devices,
    writable_region,
)

GIB = 1024**3
SDA = Disk("sda", 8, 0, 100 * GIB, diskseq=1)
SDA1 = Disk("sda1", 8, 1, 50 * GIB, partition_of="sda")
SDB = Disk("sdb", 8, 16, 100 * GIB, diskseq=2)
DM0 = Disk("dm-0", 254, 0, 50 * GIB, slaves=("sda1",))
EMPTY = bytes(EDGE_BYTES)
ALL = (SDA, SDA1, SDB, DM0)


def mount(disk: Disk, point: str) -> Mount:
    return Mount(disk.major, disk.minor, "/", point, f"/dev/{disk.name}", "ext4")


HIDDEN = msgspec.structs.replace(SDB, hidden=True)


@pytest.mark.parametrize(
    ("disk", "disks", "used", "reasons"),
    [
        (SDB, ALL, ([mount(DM0, "/")], [(254, 0)], (8, 1)), []),
        (
            SDA,
            ALL,
            ([mount(DM0, "/srv")], [(254, 0)]),
            [
                "it is mounted (/srv)",
                "it is used as swap",
                "it has partitions (sda1)",
                "other devices are stacked on it (dm-0)",
            ],
        ),
        *(
            (
                SDB,
                ALL,
                ([mount(SDB, point)],),
                [f"the system runs from it ({point})", f"it is mounted ({point})"],
            )
            for point in ("/", "/boot", "/boot/efi", "/usr")
        ),
        (SDB, ALL, ([], [], (8, 16)), ["the system runs from it"]),
        (SDA1, (SDA, SDA1), ([],), ["sda1 is a partition of sda; expected a whole disk"]),
        (HIDDEN, [HIDDEN], ([],), ["sdb is one path of a multipath disk"]),
        (SDB, [SDA], ([],), ["sdb no longer exists"]),
        (
            SDB,
            [msgspec.structs.replace(SDB, diskseq=3)],
            ([],),
            ["sdb is now the name of another disk"],
        ),
    ],
)
def test_why_a_disk_is_in_use(
    disk: Disk, disks: Collection[Disk], used: Any, reasons: list[str]
) -> None:
    assert list(reasons_in_use(disk, disks, *used)) == reasons


def test_what_is_stacked_on_a_disk_is_of_the_system() -> None:
    assert "the system runs from it (/)" in reasons_in_use(SDA, ALL, [mount(DM0, "/")])


WWN = "naa.6000c29f2d1e5a0b"
PATHS = tuple(
    Disk(name, 8, minor, 100 * GIB, serial="S1", wwn=WWN)
    for name, minor in (("sdc", 32), ("sdd", 48))
)
SDC, SDD = PATHS
MULTIPATH = Disk("dm-1", 254, 1, 100 * GIB, serial="S1", wwn=WWN, slaves=("sdc", "sdd"))


def test_further_path_is_a_reason_whatever_is_done_by_it() -> None:
    [seen] = reasons_in_use(SDC, (SDA, *PATHS), [])
    assert seen.startswith(
        "by WWN or serial number it may be the same volume as other devices (sdd)"
    )
    partition = Disk("sdd1", 8, 49, GIB, partition_of="sdd")
    volume = Disk("dm-2", 254, 2, GIB, slaves=("sdd1",))
    disks = (SDA, *PATHS, partition, volume)
    [_, *reasons] = reasons_in_use(SDC, disks, [mount(volume, "/")], [(8, 49)])
    assert reasons == [
        "the system runs from it (/)",
        "it is mounted (/)",
        "it is used as swap",
        "it has partitions (sdd1)",
        "other devices are stacked on it (dm-2)",
    ]
    assert reasons_in_use(SDA, disks, [mount(volume, "/")]) == ()


@pytest.mark.parametrize(
    ("change", "may_be_one"),
    [
        ({"serial": "S2"}, True),
        ({"size_bytes": GIB}, True),  # it was made larger, and one path was not read again
        ({"wwn": None}, True),
        ({"wwn": "0x6000c29f2d1e5a0b"}, True),  # of udev
        ({"wwn": "t10.ATA QEMU"}, True),
        ({"wwn": "naa.6000c29f2d1e5a0c"}, False),
        ({"wwn": None, "serial": None}, False),
        ({"wwn": None, "serial": "S2"}, False),
    ],
    ids=str,
)
def test_what_may_be_the_same_volume(change: dict[str, object], *, may_be_one: bool) -> None:
    other = msgspec.structs.replace(SDD, **change)
    assert bool(reasons_in_use(SDC, (SDC, other), [])) == may_be_one
    assert bool(reasons_in_use(other, (SDC, other), [])) == may_be_one


def test_namespaces_of_one_controller_are_different_volumes() -> None:
    """Persistent disks of Google all have the serial number nvme_card-pd."""
    disks = [
        Disk(f"nvme0n{n}", 259, n, GIB, serial="nvme_card-pd", wwn=f"nvme.1ae0-0000000{n}")
        for n in (1, 2)
    ]
    assert reasons_in_use(disks[0], disks, []) == ()


def test_multipath_device_over_all_paths_may_be_overwritten_if_no_path_is_in_use() -> None:
    disks = (*PATHS, MULTIPATH)
    assert reasons_in_use(MULTIPATH, disks, []) == ()
    assert reasons_in_use(MULTIPATH, (SDC, MULTIPATH), []) == ()  # the other one failed
    [reason] = reasons_in_use(SDC, disks, [])
    assert "(dm-1, sdd)" in reason
    third = msgspec.structs.replace(SDD, name="sde", minor=64)
    [reason] = reasons_in_use(MULTIPATH, (*disks, third), [])
    assert "(sde)" in reason
    assert reasons_in_use(MULTIPATH, disks, [mount(SDD, "/srv")]) == ("it is mounted (/srv)",)
    partition = Disk("sdd1", 8, 49, GIB, partition_of="sdd")
    assert reasons_in_use(MULTIPATH, (*disks, partition), []) == ("it has partitions (sdd1)",)


def test_logical_volume_is_not_in_use_by_another_one_of_its_disk() -> None:
    volumes = [Disk(f"dm-{n}", 254, n, GIB, slaves=("sda1",)) for n in (0, 2)]
    disks = (SDA, SDA1, *volumes)
    assert reasons_in_use(volumes[0], disks, [mount(volumes[1], "/")]) == ()
    assert {one.name for one in volume_devices(volumes[0], disks).all} == {"dm-0", "sda", "sda1"}


NAMED = msgspec.structs.replace(SDB, serial="one", wwn="one")
ANOTHER = ("sdb is now the name of another disk",)


@pytest.mark.parametrize(
    ("disk", "change", "reason"),
    [
        (SDB, {}, ()),
        (SDB, {"serial": "one", "wwn": "two"}, ()),  # udev was late
        (SDB, {"minor": 32}, ANOTHER),
        (SDB, {"diskseq": 3}, ANOTHER),
        (SDB, {"size_bytes": GIB}, (f"its size was {100 * GIB} bytes and is {GIB} bytes now",)),
        (NAMED, {}, ()),
        (NAMED, {"serial": "two"}, ANOTHER),
        (NAMED, {"wwn": "two"}, ANOTHER),
    ],
    ids=str,
)
def test_each_part_of_the_identity_is_compared(
    disk: Disk, change: dict[str, object], reason: tuple[str, ...]
) -> None:
    assert reasons_other_disk(disk, msgspec.structs.replace(disk, **change)) == reason


@pytest.mark.parametrize(
    ("disk", "named", "expected"),
    [
        (msgspec.structs.replace(SDB, serial="S1", wwn="W1"), "S1", ""),
        (msgspec.structs.replace(SDB, wwn="W1"), "W1", ""),
        (msgspec.structs.replace(SDB, serial="S1", wwn="W1"), "W1", "expected 'S1', the serial"),
        (msgspec.structs.replace(SDB, serial="S1"), "s1", "expected 'S1', the serial of sdb"),
        (msgspec.structs.replace(SDB, serial="S1"), "", "found ''; expected 'S1'"),
        (msgspec.structs.replace(SDB, wwn="W1"), "sdb", "expected 'W1', the WWN of sdb"),
        (SDB, "", "sdb has neither serial nor WWN by which it could be named"),
    ],
    ids=str,
)
def test_data_are_destroyed_only_by_the_identity(disk: Disk, named: str, expected: str) -> None:
    if not expected:
        check_consent(disk, named)
        return
    with pytest.raises(DiskslaError) as error:
        check_consent(disk, named)
    assert expected in str(error.value)


@pytest.mark.parametrize("regions", [[], [(0, b"")], [(0, EMPTY), (99 * GIB, EMPTY)]], ids=len)
def test_zeros_are_empty(regions: list[tuple[int, bytes]]) -> None:
    assert reasons_not_empty(regions) == ()


@given(st.binary(min_size=SECTOR_BYTES, max_size=SECTOR_BYTES), st.data())
def test_one_sector_everywhere_is_empty_and_one_other_is_not(
    sector: bytes, data: st.DataObject
) -> None:
    """A thin volume may return another pattern than zeros."""
    blocks = [(at, sector * 8) for at in range(0, 5 * BLOCK_BYTES, BLOCK_BYTES)]
    assert reasons_not_empty(blocks) == ()
    index = data.draw(st.integers(0, 4))
    at = data.draw(st.integers(0, BLOCK_BYTES - 1))
    other = bytearray(sector * 8)
    other[at] ^= 1 + data.draw(st.integers(0, 254))
    blocks[index] = (blocks[index][0], bytes(other))
    content = b"".join(block for _, block in blocks)
    data_at = len(content) - len(content.lstrip(b"\0"))
    [reason] = reasons_not_empty(blocks)
    assert reason.startswith(f"it contains data at byte {data_at};")


def test_copies_of_file_systems_are_read_where_the_stride_misses_them() -> None:
    regions = {at for at, _ in sampled_regions(1000 * GIB + 12288, lambda _blocks: 0)}
    copies = (8 * 2**20, 64 * 2**20, 128 * 2**20, 3 * 128 * 2**20, 256 * GIB)
    assert regions.issuperset(copies)
    assert sampled_regions(GIB, lambda _blocks: 0)[-1][0] < GIB


@given(st.integers(0, 3 * BLOCK_BYTES - 1), st.integers(1, 255))
def test_any_byte_is_content_and_its_offset_is_named(at: int, byte: int) -> None:
    content = bytearray(3 * BLOCK_BYTES)
    content[at] = byte
    regions = [(GIB + n, bytes(content[n : n + BLOCK_BYTES])) for n in range(0, 12288, 4096)]
    [reason] = reasons_not_empty(regions)
    assert reason.startswith(f"it contains data at byte {GIB + at}; if none of its data is needed")


def test_nothing_is_read_after_the_first_data() -> None:
    zeros, data = bytes(SECTOR_BYTES), b"\0x" + bytes(SECTOR_BYTES - 2)
    regions = iter([(0, zeros), (8192, data), (16384, data)])
    [reason] = reasons_not_empty(regions)
    assert "at byte 8193;" in reason
    assert list(regions) == [(16384, data)]


@given(st.integers(0, 2**50), st.integers())
def test_regions_are_of_the_disk_with_its_ends(size_bytes: int, seed: int) -> None:
    head, tail, *blocks = sampled_regions(size_bytes, random.Random(seed).randrange)
    assert head == (0, min(EDGE_BYTES, size_bytes))
    assert sum(tail) == size_bytes
    assert tail[1] >= min(EDGE_BYTES, size_bytes)
    assert all(at % BLOCK_BYTES == 0 for at, _ in (tail, *blocks))
    assert all(at + length <= size_bytes for at, length in blocks)
    assert blocks == sorted(set(blocks))
    assert len(blocks) <= 2 * SAMPLES + 20


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
