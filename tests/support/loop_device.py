"""Loop devices on small files, for tests."""

import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import addressof, create_string_buffer
from pathlib import Path

import pytest

from support.waiting import eventually

LOOP_CTL_ADD = 0x4C80  # linux/loop.h
LOOP_CTL_REMOVE = 0x4C81
BLKPG = 0x1269  # linux/blkpg.h
BLKPG_ADD_PARTITION = 1
_ATTEMPTS = 40
_LOAD_PATIENCE_S = 20.0
CONTROL = Path("/dev/loop-control")

needs_loop = pytest.mark.skipif(
    os.geteuid() != 0 or not CONTROL.exists(),
    reason="NOT TESTED: loop devices need root and /dev/loop-control",
)


@contextmanager
def attached(file: Path, option: str = "--partscan") -> Iterator[str]:
    """Attach a file to a free loop device, yield its kernel name, and detach it afterwards.

    The kernel detaches it when the last program closes it: also if the tests are killed.
    """
    device = attach(file, option)
    opened = os.open(device, os.O_RDONLY)
    try:
        _detach(device)
        yield Path(device).name
    finally:
        os.close(opened)


@contextmanager
def attached_and_closed(file: Path) -> Iterator[str]:
    """Do the same for a test of a program that refuses a device which others have open."""
    device = attach(file)
    try:
        yield Path(device).name
    finally:
        _detach(device)


def _detach(device: str) -> None:
    subprocess.run(["losetup", "--detach", device], check=True)


def attach(file: Path, option: str = "--partscan") -> str:
    """Attach a file, and return the device. Another process may attach what `--find` chose."""
    command = ["losetup", "--find", "--show", option, str(file)]
    reason = ""
    for _ in range(_ATTEMPTS):
        attempt = subprocess.run(command, check=False, capture_output=True, text=True)
        if attempt.returncode == 0:
            return attempt.stdout.strip()
        reason = attempt.stderr
        time.sleep(0.05)
    raise OSError(f"{' '.join(command)}: {reason}")


@contextmanager
def added(numbers: range) -> Iterator[list[str]]:
    """Create unattached loop devices, yield their names, and remove them afterwards."""
    control = os.open(CONTROL, os.O_RDWR)
    numbers_added: list[int] = []
    try:
        for number in numbers:
            fcntl.ioctl(control, LOOP_CTL_ADD, number)
            numbers_added.append(number)
        yield [f"loop{number}" for number in numbers_added]
    finally:
        for number in numbers_added:
            fcntl.ioctl(control, LOOP_CTL_REMOVE, number)
        os.close(control)


def add_partition(device: str, start_bytes: int, size_bytes: int) -> None:
    """Add a partition to the kernel, as partx does; detaching the device removes it."""
    data = create_string_buffer(struct.pack("qqi64s64s4x", start_bytes, size_bytes, 1, b"", b""))
    argument = struct.pack("iiiP", BLKPG_ADD_PARTITION, 0, len(data), addressof(data))
    descriptor = os.open(f"/dev/{device}", os.O_RDWR)
    try:
        fcntl.ioctl(descriptor, BLKPG, argument)
    finally:
        os.close(descriptor)


@contextmanager
def used(device: str, directory: Path, *options: str) -> Iterator[None]:
    """Read a disk with another process, with these options of fio."""
    load = (
        *("fio", "--name=load", f"--filename=/dev/{device}", "--readonly", "--rw=randread"),
        *("--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=16", "--thread"),
        *("--time_based", "--runtime=600", f"--output={directory / 'load'}", *options),
    )
    with subprocess.Popen(load, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            inflight = Path(f"/sys/class/block/{device}/inflight")
            assert eventually(lambda: inflight.read_text().split() != ["0", "0"], _LOAD_PATIENCE_S)
            yield
        finally:
            process.terminate()
