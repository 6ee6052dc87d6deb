import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from disksla.disks.disk import Disk
from disksla.disks.inventory import read_disks
from disksla.fio.job import FioJob
from disksla.fio.raw_device import RawDeviceError, exclusive_device
from disksla.fio.raw_device_rules import writable_region
from disksla.fio.runner import find_fio
from disksla.system.roots import Roots
from support.loop_device import add_partition, attached, needs_loop

pytestmark = needs_loop
MIB = 1024**2
SIZE = 32 * MIB


def described(device: str) -> Disk:
    [disk] = [one for one in read_disks(Roots()).disks if one.name == device]
    return disk


def why_not_writable(disk: Disk) -> tuple[str, ...]:
    try:
        with exclusive_device(disk):
            return ()
    except RawDeviceError as error:
        return error.reasons


def reasons(device: str) -> str:
    return "; ".join(why_not_writable(described(device)))


@pytest.fixture
def image(tmp_path: Path) -> Path:
    file = tmp_path / "disk"
    with file.open("wb") as content:
        content.truncate(SIZE)
    return file


@pytest.fixture
def device(image: Path) -> Iterator[str]:
    with attached(image) as name:
        yield name


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"NOT TESTED: {program} is missing")


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def mounted(device: str, place: Path) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    run("mount", f"/dev/{device}", str(place))
    try:
        yield place
    finally:
        run("umount", str(place))


def test_an_empty_disk_may_be_written(device: str) -> None:
    assert reasons(device) == ""


def test_it_is_held_meanwhile(device: str, tmp_path: Path) -> None:
    with exclusive_device(described(device)) as path:
        assert path == Path(f"/dev/{device}")
        assert "cannot be opened for us alone: Device or resource busy" in reasons(device)
        (tmp_path / "place").mkdir()
        attempt = subprocess.run(
            ["mount", "-t", "ext4", str(path), str(tmp_path / "place")],
            capture_output=True,
            check=False,
        )
        assert attempt.returncode != 0
    assert reasons(device) == ""


def test_one_that_was_tested_within_its_region_is_still_empty(device: str) -> None:
    needs("fio")
    offset_bytes, span_bytes = writable_region(SIZE)
    with exclusive_device(described(device)) as path:
        job = FioJob(
            name="x",
            target=str(path),
            pattern="write",
            request_bytes=MIB,
            runtime_s=1,
            offset_bytes=offset_bytes,
            span_bytes=span_bytes,
        )
        assert find_fio().run(job, limit_s=30).write.bytes >= span_bytes
    assert reasons(device) == ""
    content = Path(f"/dev/{device}").read_bytes()
    assert any(content[offset_bytes : offset_bytes + 4096])
    assert any(content[-offset_bytes - 4096 : -offset_bytes])


@pytest.mark.parametrize("size_bytes", [MIB, 5 * MIB, 8 * MIB + 512, 9 * MIB + 3 * 512], ids=str)
def test_disks_of_any_size_are_read_to_both_ends(tmp_path: Path, size_bytes: int) -> None:
    image = tmp_path / "odd"
    image.write_bytes(bytes(size_bytes))
    with attached(image) as device:
        assert reasons(device) == ""
    with image.open("r+b") as file:
        file.seek(size_bytes - 1)
        file.write(b"x")
    with attached(image) as device:
        assert "first or last 4 MiB are not zero" in reasons(device)


@pytest.mark.parametrize(
    ("command", "reported"),
    [
        (("mkfs.ext4", "-q"), "TYPE=ext4"),
        (("mkswap",), "TYPE=swap"),
        (("mkfs.xfs", "-q"), "TYPE=xfs"),
        (("mkfs.btrfs", "-q"), "TYPE=btrfs"),
        (("mkfs.vfat",), "TYPE=vfat"),
        (("pvcreate", "-q"), "TYPE=LVM2_member"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_content_is_reported_by_blkid(
    device: str, command: tuple[str, ...], reported: str
) -> None:
    needs("blkid", command[0])
    run(*command, f"/dev/{device}")
    assert f"blkid reports {reported}" in reasons(device)


@pytest.mark.parametrize("label", ["dos", "gpt"])
def test_partition_tables_are_reported_by_blkid(device: str, label: str) -> None:
    needs("blkid", "sfdisk")
    table = f"label: {label}\nstart=2048\n"
    subprocess.run(["sfdisk", "-q", f"/dev/{device}"], input=table, text=True, check=True)
    assert f"PTTYPE={label}" in reasons(device)


@pytest.mark.parametrize("offset", [0, 3_000_000, SIZE - 3_000_000, SIZE - 1])
def test_content_of_unknown_format_counts_as_content(image: Path, offset: int) -> None:
    with image.open("r+b") as file:
        file.seek(offset)
        file.write(b"r")
    with attached(image) as device:
        assert "first or last 4 MiB are not zero" in reasons(device)


def test_a_mounted_disk_is_a_reason(device: str, tmp_path: Path) -> None:
    needs("mkfs.ext4")
    run("mkfs.ext4", "-q", f"/dev/{device}")
    with mounted(device, tmp_path / "place"):
        assert f"it is mounted ({tmp_path / 'place'})" in reasons(device)


def test_a_mount_of_another_namespace_is_a_reason(device: str, tmp_path: Path) -> None:
    needs("mkfs.ext4", "unshare")
    run("mkfs.ext4", "-q", f"/dev/{device}")
    place = tmp_path / "place"
    place.mkdir()
    script = f"mount /dev/{device} {place} && echo mounted && read line"
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as container:
        assert container.stdout is not None
        assert container.stdout.readline() == "mounted\n"
        assert described(device).mount_points == ()
        assert f"it is mounted ({place})" in reasons(device)
        container.communicate("\n")


def test_partitions_are_a_reason(device: str) -> None:
    add_partition(device, MIB, 4 * MIB)
    assert f"it has partitions ({device}p1)" in reasons(device)
    assert "expected a whole disk" in reasons(f"{device}p1")


def test_a_loop_on_it_is_a_reason(device: str) -> None:
    with attached(Path(f"/dev/{device}")) as upper:
        assert f"loop devices lie on it ({upper})" in reasons(device)


def test_a_mapped_device_on_it_is_a_reason(device: str) -> None:
    needs("dmsetup")
    name = f"disksla-test-{os.getpid()}"
    table = f"0 {SIZE // 512} linear /dev/{device} 0"
    made = subprocess.run(
        ["dmsetup", "create", name, "--noudevsync", "--table", table],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("NOT TESTED: this kernel has no device-mapper")
    try:
        assert "other devices are made of it" in reasons(device)
    finally:
        run("dmsetup", "remove", "--noudevsync", name)


def test_swapping_to_it_is_a_reason(device: str) -> None:
    needs("mkswap", "swapon")
    run("mkswap", f"/dev/{device}")
    if subprocess.run(["swapon", f"/dev/{device}"], capture_output=True, check=False).returncode:
        pytest.skip("NOT TESTED: this kernel does not swap")
    try:
        assert "it is swapped to" in reasons(device)
    finally:
        run("swapoff", f"/dev/{device}")


def test_a_process_that_has_it_open_is_a_reason(device: str) -> None:
    code = f"f = open('/dev/{device}', 'rb'); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        assert f" {other.pid})" in reasons(device)
        other.communicate("\n")
    assert reasons(device) == ""


def test_a_disk_that_is_read_only_is_a_reason(device: str) -> None:
    needs("blockdev")
    run("blockdev", "--setro", f"/dev/{device}")
    try:
        assert "it is read only" in reasons(device)
    finally:
        run("blockdev", "--setrw", f"/dev/{device}")


def test_another_disk_of_that_name_is_a_reason(device: str) -> None:
    before = msgspec.structs.replace(described(device), diskseq=10**9)
    assert why_not_writable(before) == (f"{device} is another disk now",)


def test_the_disk_that_this_machine_runs_from_is_never_written() -> None:
    runs_from = [one for one in read_disks(Roots()).disks if "/" in one.mount_points]
    if not runs_from:
        pytest.skip("NOT TESTED: / lies on no disk that can be seen")
    for disk in runs_from:
        assert "this machine runs from it" in "; ".join(why_not_writable(disk))


def test_all_reasons_are_told(device: str, tmp_path: Path) -> None:
    needs("mkfs.ext4")
    run("mkfs.ext4", "-q", f"/dev/{device}")
    with (
        mounted(device, tmp_path / "place"),
        pytest.raises(RawDeviceError, match=f"{device} is not overwritten: it is mounted"),
        contextlib.ExitStack() as undo,
    ):
        undo.enter_context(exclusive_device(described(device)))
