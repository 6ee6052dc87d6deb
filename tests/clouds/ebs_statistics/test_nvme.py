"""Reading the page by ioctl: the command, the times, and every way in which it fails."""

import errno
import itertools
import os
from pathlib import Path

import pytest

from disksla.clouds.ebs_statistics.nvme import (
    EbsDevice,
    find_device,
    find_devices,
    read_statistics,
)
from disksla.clouds.ebs_statistics.reading import Failure, Reading
from disksla.clouds.ebs_statistics.statistics_page import parse
from support import ttar
from support.ebs_disks import EBS, INSTANCE_STORE, Answer, Disks
from support.ebs_pages import INSTANCE_STORE_MAGIC, Page

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
