"""Throughput of buffered reads."""

import itertools
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, MIB
from disksla.measure.benchmark.throughput import CHUNK_BYTES, MAX_BYTES, buffered_bytes_per_second


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(16 * MIB)
    return path


def clock(step_s: float) -> "itertools.count[float]":
    return itertools.count(100.0, step_s)


def test_buffered_reads_stop_at_the_end_of_the_device(file: Path) -> None:
    ticks = clock(0.001)
    rate = buffered_bytes_per_second(file, 16 * MIB, 60.0, lambda: next(ticks))
    assert rate == pytest.approx(4 * CHUNK_BYTES / 0.004)


def test_buffered_reads_stop_after_their_time(file: Path) -> None:
    ticks = clock(1.0)
    rate = buffered_bytes_per_second(file, 16 * MIB, 1.0, lambda: next(ticks))
    assert rate == CHUNK_BYTES / 2.0


def test_buffered_reads_stop_at_the_byte_limit(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(2 * GIB)
    ticks = clock(1e-9)
    rate = buffered_bytes_per_second(path, 2 * GIB, 60.0, lambda: next(ticks))
    reads = MAX_BYTES // CHUNK_BYTES
    assert rate == pytest.approx(MAX_BYTES / (reads * 1e-9), rel=1e-3)


def test_unreadable_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match=r"cannot read .*absent: No such file"):
        buffered_bytes_per_second(tmp_path / "absent", 16 * MIB, 1.0)
    with pytest.raises(DiskslaError, match="Is a directory"):
        buffered_bytes_per_second(tmp_path, 16 * MIB, 1.0)
    (tmp_path / "small").write_bytes(b"x" * 100)
    with pytest.raises(DiskslaError, match="ends at 100 bytes; expected at least 4 MiB"):
        buffered_bytes_per_second(tmp_path / "small", 100, 1.0)
