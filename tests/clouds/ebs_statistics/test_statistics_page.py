"""The statistics page: bytes -> Statistics, against an independent writer of the layout."""

import errno
import itertools
import os
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.clouds.ebs_statistics.nvme import (
    EbsDevice,
    find_device,
    find_devices,
    read_statistics,
)
from disksla.clouds.ebs_statistics.reading import Failure, Reading
from disksla.clouds.ebs_statistics.statistics_page import (
    PAGE_BYTES,
    BadPageError,
    Bin,
    PageFault,
    Statistics,
    parse,
)
from support import ttar
from support.ebs_disks import EBS, INSTANCE_STORE, Answer, Disks
from support.ebs_pages import EBS_MAGIC, INSTANCE_STORE_MAGIC, UNBOUNDED, Page, bins_of

COUNTERS = st.integers(0, 2**63 - 1)


@st.composite
def some_bins(draw: st.DrawFn) -> tuple[tuple[int, int, int], ...]:
    """Ascend from any bound, with and without gaps, up to 64 bins, the last perhaps unbounded."""
    bounds: list[int] = sorted(draw(st.lists(st.integers(0, 2**40), max_size=128)))
    pairs = list(zip(bounds[::2], bounds[1::2], strict=False))
    is_unbounded: bool = draw(st.booleans())
    if pairs and is_unbounded:
        pairs[-1] = (pairs[-1][0], UNBOUNDED)
    return tuple((*pair, draw(st.integers(0, 2**32 - 1))) for pair in pairs)


PAGES = st.builds(
    Page,
    st.sampled_from([EBS_MAGIC, INSTANCE_STORE_MAGIC]),
    st.sampled_from([0, 1]),
    *[COUNTERS] * 11,
    some_bins(),
    some_bins(),
    st.integers(0, 255),
)


def as_written(bins: tuple[Bin, ...]) -> list[tuple[int, int, int]]:
    return [
        (each.lower_us, UNBOUNDED if each.upper_us is None else each.upper_us, each.count)
        for each in bins
    ]


@given(PAGES)
def test_what_is_written_is_parsed(page: Page) -> None:
    found = parse(page.written())
    exceeded = page[8:12]
    assert found.version == page.version
    assert (
        *(found.read_operations, found.write_operations, found.read_bytes, found.write_bytes),
        *(found.read_us, found.write_us),
    ) == page[2:8]
    assert found.queue_length == page.queue_length
    assert as_written(found.read_latency) == list(page.read_bins)
    assert as_written(found.write_latency) == list(page.write_bins)
    if page.magic == EBS_MAGIC:
        assert found.kind == "ebs"
        assert tuple(found.exceeded_us.values()) == exceeded
        assert list(found.exceeded_us) == [
            "iops",
            "bandwidth",
            "machine_iops",
            "machine_bandwidth",
        ]
    else:
        assert found.kind == "instance_store"
        assert found.exceeded_us == {"iops": exceeded[2], "bandwidth": exceeded[3]}


def test_a_page_of_a_volume() -> None:
    page = Page(
        version=1,
        total_read_ops=10,
        total_read_bytes=40960,
        total_read_time_us=5000,
        volume_exceeded_iops_us=1,
        volume_exceeded_tp_us=2,
        instance_exceeded_iops_us=3,
        instance_exceeded_tp_us=4,
        queue_length=32,
        read_bins=((0, 256, 4), (256, 512, 6), (512, UNBOUNDED, 0)),
    )
    assert parse(page.written()) == Statistics(
        *("ebs", 1, 10, 0, 40960, 0, 5000, 0),
        {"iops": 1, "bandwidth": 2, "machine_iops": 3, "machine_bandwidth": 4},
        32,
        (Bin(0, 256, 4), Bin(256, 512, 6), Bin(512, None, 0)),
        (),
    )


@pytest.mark.parametrize(
    ("page", "reason", "message"),
    [
        (b"", "short", "found 0 bytes; expected 4096"),
        (Page().written()[:4095], "short", "found 4095 bytes; expected 4096"),
        (bytes(4096), "magic", "found magic 0x00000000; expected 0x3C23B510 or 0xEC2C0D7E"),
        (b"\xff" * 4096, "magic", "found magic 0xFFFFFFFF"),
        (Page(version=2).written(), "version", "found version 2; expected 0 or 1"),
        (Page(total_read_ops=2**63).written(), "counter", "found 9223372036854775808"),
        (Page(instance_exceeded_tp_us=2**64 - 1).written(), "counter", "found 18446744073709551"),
        (Page(queue_length=2**63).written(), "counter", "found 9223372036854775808"),
        (Page(read_bins=((5, 4, 0),)).written(), "bins", "found a bin from 5 to 4 us after 0 us"),
        (Page(write_bins=((0, 4, 0), (3, 8, 0))).written(), "bins", "from 3 to 8 us after 4 us"),
        (Page(read_bins=((2**63, 2**64 - 1, 0),)).written(), "bins", "expected bins that ascend"),
    ],
)
def test_what_cannot_be_right_is_not_used(page: bytes, reason: str, message: str) -> None:
    with pytest.raises(BadPageError, match=r"^statistics page: found ") as raised:
        parse(page)
    assert raised.value.reason == reason
    assert reason in get_args(PageFault)
    assert message in str(raised.value)


@pytest.mark.parametrize("offset", [512, 2056])
@pytest.mark.parametrize("length", [65, 2**32 - 1])
def test_more_bins_than_there_is_space_for(offset: int, length: int) -> None:
    page = bytearray(Page().written())
    page[offset : offset + 4] = length.to_bytes(4, "little")
    with pytest.raises(BadPageError, match=f"found {length} bins; expected at most 64") as raised:
        parse(bytes(page))
    assert raised.value.reason == "bins"


def test_64_bins_fill_the_space() -> None:
    bins = tuple((place, place + 1, place) for place in range(64))
    found = parse(Page(read_bins=bins, write_bins=bins, reserved=255).written())
    assert as_written(found.read_latency) == as_written(found.write_latency) == list(bins)


@given(PAGES, st.lists(st.tuples(st.integers(0, PAGE_BYTES - 1), st.integers(0, 255))))
def test_any_bytes_are_parsed_or_rejected(page: Page, edits: list[tuple[int, int]]) -> None:
    content = bytearray(page.written())
    for offset, value in edits:
        content[offset] = value
    with suppress(BadPageError):
        assert len(parse(bytes(content)).read_latency) <= 64


def test_powers_of_two_are_bins() -> None:
    bins = bins_of({256: 7})
    assert sum(each.count for each in parse(Page(read_bins=bins).written()).read_latency) == 7


HOSTS = Path(__file__).parents[2] / "hosts"
PAGE = Page(total_read_ops=5, version=1)


def read(disks: Disks, device: EbsDevice | None = None) -> Reading | Failure:
    ticking = itertools.count(10.0)
    [found] = [device] if device else find_devices(disks.sysfs)
    return read_statistics(found, disks.sysfs, disks.dev, disks.ioctl, lambda: next(ticking))


def failure(disks: Disks) -> Failure:
    found = read(disks)
    assert isinstance(found, Failure)
    return found


def an_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def test_the_first_4096_bytes_are_asked_for(tmp_path: Path) -> None:
    disks = Disks(tmp_path)
    disks.add("nvme1", PAGE.written())
    expected = Reading("nvme1n1", "vol0a1b", 10.5, parse(PAGE.written()), 0.5)
    assert read(disks) == expected
    assert disks.commands == [(0x02, 1, 4096, 0xD0 | 1023 << 16)]


def test_instance_store(tmp_path: Path) -> None:
    disks = Disks(tmp_path)
    page = Page(magic=INSTANCE_STORE_MAGIC).written()
    disks.add("nvme1", page, serial="AWS1234", model=INSTANCE_STORE)
    found = read(disks)
    assert isinstance(found, Reading)
    assert (found.serial, found.statistics.kind) == ("AWS1234", "instance_store")


@pytest.mark.parametrize(
    ("answer", "reason", "message"),
    [
        (
            an_error(errno.EACCES),
            "permission",
            "nvme1 failed: Permission denied; it needs CAP_SYS",
        ),
        (an_error(errno.EPERM), "permission", "Operation not permitted; it needs CAP_SYS_ADMIN"),
        (an_error(errno.ENODEV), "removed", "failed: No such device"),
        (an_error(errno.EIO), "device", "failed: Input/output error"),
        (an_error(errno.ENOTTY), "device", "failed: Inappropriate ioctl for device"),
        (0x2109, "status", "found NVMe status 0x2109 of"),
        (0x4109, "status", "it has no such page"),
        (0x4002, "status", "found NVMe status 0x4002"),
        (0x0002, "status", "it refused"),
        (bytes(4096), "magic", "found magic 0x00000000"),
        (b"\xff" * 4096, "magic", "found magic 0xFFFFFFFF"),
        (Page(version=9).written(), "version", "found version 9"),
    ],
)
def test_what_fails_has_a_reason(
    tmp_path: Path, answer: Answer, reason: str, message: str
) -> None:
    disks = Disks(tmp_path)
    disks.add("nvme1", answer)
    found = failure(disks)
    assert (found.device, found.reason) == ("nvme1n1", reason)
    assert message in found.message


def test_a_file_that_is_no_device(tmp_path: Path) -> None:
    disks = Disks(tmp_path)
    disks.add("nvme1", PAGE.written())
    [device] = find_devices(disks.sysfs)
    found = read_statistics(device, disks.sysfs, disks.dev)
    assert isinstance(found, Failure)
    assert found.reason == "device"
    assert found.message.endswith("failed: Inappropriate ioctl for device")


def test_a_disk_that_was_removed_or_replaced(tmp_path: Path) -> None:
    disks = Disks(tmp_path)
    disks.add("nvme1", PAGE.written())
    [device] = find_devices(disks.sysfs)
    (disks.sysfs / "devices/pci0000:00/nvme/nvme1/serial").write_text("vol2\n")
    found = read(disks, device)
    assert isinstance(found, Failure)
    assert (found.reason, found.message) == ("removed", "nvme1n1 was removed")
    assert disks.commands == []
    disks.remove("nvme1")
    found = read(disks, device)
    assert isinstance(found, Failure)
    assert found.reason == "removed"


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_descriptors_are_closed(tmp_path: Path) -> None:
    disks = Disks(tmp_path)
    disks.add("nvme1", an_error(errno.EIO))
    before = open_descriptors()
    for _ in range(10):
        failure(disks)
    assert open_descriptors() == before


def test_only_disks_of_aws_are_found(tmp_path: Path) -> None:
    disks = Disks(tmp_path)
    disks.add("nvme10", b"", serial="vol10")
    disks.add("nvme2", b"", serial="AWS2", model=INSTANCE_STORE)
    disks.add("nvme3", b"", model="Amazon Elastic Block Store 2")
    disks.add("nvme4", b"", model="QEMU NVMe Ctrl")
    disks.add("nvme5", b"", namespace="nvme7n1")
    disks.add("nvme6", b"", namespace="nvme6n1p1")
    disks.add("sda", b"", namespace="sda")
    disks.add("nvme-subsys8", b"", namespace="nvme8n1")
    assert find_devices(disks.sysfs) == (
        EbsDevice("nvme10n1", "nvme10", "vol10"),
        EbsDevice("nvme2n1", "nvme2", "AWS2"),
        EbsDevice("nvme7n1", "nvme5", "vol0a1b"),
    )


def test_without_sysfs_there_are_none(tmp_path: Path) -> None:
    assert find_devices(tmp_path / "sys") == ()
    assert find_device(tmp_path / "sys", "nvme0n1") is None


def test_disks_of_a_recorded_machine(tmp_path: Path) -> None:
    for archive in (HOSTS / "aws-nitro").glob("sys.ttar"):
        ttar.unpack(archive, tmp_path)
    names = [device.name for device in find_devices(tmp_path / "sys")]
    models = {
        path.name: (path / "device" / "model").read_text().strip()
        for path in (tmp_path / "sys" / "class" / "block").iterdir()
        if (path / "device" / "model").exists()
    }
    assert names
    assert names == sorted(
        name for name, model in models.items() if model in {EBS, INSTANCE_STORE}
    )
