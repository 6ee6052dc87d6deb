"""Real block devices for tests: loop devices on small files, and the right to make them."""

import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import addressof, create_string_buffer
from pathlib import Path

import pytest

LOOP_CTL_ADD = 0x4C80  # linux/loop.h
LOOP_CTL_REMOVE = 0x4C81
BLKPG = 0x1269  # linux/blkpg.h
BLKPG_ADD_PARTITION = 1
_ATTEMPTS = 20
_LOAD_PATIENCE_S = 20.0
CONTROL = Path("/dev/loop-control")

needs_loop = pytest.mark.skipif(
    os.geteuid() != 0 or not CONTROL.exists(),
    reason="NOT TESTED: loop devices need root and /dev/loop-control",
)


@contextmanager
def attached(file: Path) -> Iterator[str]:
    """Attach a file to a free loop device, give its kernel name, and detach it afterwards."""
    device = _attach(file)
    try:
        yield Path(device).name
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def _attach(file: Path) -> str:
    """`losetup --find` looks for a free device and takes it later: others may be faster."""
    command = ["losetup", "--find", "--show", "--partscan", str(file)]
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
    """Make new loop devices with nothing attached, give their names, remove them afterwards."""
    control = os.open(CONTROL, os.O_RDWR)
    made: list[int] = []
    try:
        for number in numbers:
            fcntl.ioctl(control, LOOP_CTL_ADD, number)
            made.append(number)
        yield [f"loop{number}" for number in made]
    finally:
        for number in made:
            fcntl.ioctl(control, LOOP_CTL_REMOVE, number)
        os.close(control)


def add_partition(device: str, start_bytes: int, size_bytes: int) -> None:
    """Tell the kernel of a partition, as partx does; it goes when the device is detached."""
    data = create_string_buffer(struct.pack("qqi64s64s4x", start_bytes, size_bytes, 1, b"", b""))
    argument = struct.pack("iiiP", BLKPG_ADD_PARTITION, 0, len(data), addressof(data))
    descriptor = os.open(f"/dev/{device}", os.O_RDWR)
    try:
        fcntl.ioctl(descriptor, BLKPG, argument)
    finally:
        os.close(descriptor)


def eventually(condition: Callable[[], bool], within_s: float) -> bool:
    """Wait until something is so, and say whether it became so in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.005)
    return condition()


@contextmanager
def used(device: str, room: Path) -> Iterator[None]:
    """Let somebody else read a disk."""
    load = (
        *("fio", "--name=load", f"--filename=/dev/{device}", "--readonly", "--rw=randread"),
        *("--bs=4k", "--direct=1", "--ioengine=libaio", "--iodepth=16", "--thread"),
        *("--time_based", "--runtime=60", f"--output={room / 'load'}"),
    )
    with subprocess.Popen(load, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            inflight = Path(f"/sys/class/block/{device}/inflight")
            assert eventually(lambda: inflight.read_text().split() != ["0", "0"], _LOAD_PATIENCE_S)
            yield
        finally:
            process.terminate()
