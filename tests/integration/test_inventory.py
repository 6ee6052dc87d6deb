"""The list of disks, on real loop devices."""

from pathlib import Path

import pytest

from disksla.base.operating_system.machine import Roots
from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.inventory import Inventory, read_disks
from support.loop_device import add_partition, attached, needs_loop

SIZE_BYTES = 8 * 1024**2

DEFAULT = Roots()


def by_name(inventory: Inventory) -> dict[str, Disk]:
    return {disk.name: disk for disk in inventory.disks}


@pytest.mark.in_check
@needs_loop
def test_real_disk_and_its_partition(tmp_path: Path) -> None:
    file = tmp_path / "disk"
    file.touch()
    with file.open("r+b") as image:
        image.truncate(SIZE_BYTES)
    with attached(file) as loop:
        add_partition(loop, start_bytes=1024**2, size_bytes=SIZE_BYTES // 2)
        disks = by_name(read_disks(DEFAULT))
        disk, partition = disks[loop], disks[f"{loop}p1"]
        assert (disk.major, disk.size_bytes, disk.partition_of) == (7, SIZE_BYTES, None)
        assert (partition.size_bytes, partition.partition_of) == (SIZE_BYTES // 2, loop)
        assert partition.diskseq == disk.diskseq
    later = by_name(read_disks(DEFAULT))
    assert f"{loop}p1" not in later
