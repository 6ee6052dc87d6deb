"""Throughput of buffered reads."""

import itertools
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, MIB
from disksla.measure.benchmark.throughput import CHUNK_BYTES, MAX_BYTES, buffered_bytes_per_second


@pytest.mark.parametrize(
    ("size_bytes", "step_s", "seconds", "reads"),
    [
        (16 * MIB, 0.001, 60.0, 4),  # the end of the device
        (16 * MIB, 1.0, 1.0, 1),
        (2 * GIB, 1e-9, 60.0, MAX_BYTES // CHUNK_BYTES),
    ],
)
def test_buffered_reads_stop(
    tmp_path: Path, size_bytes: int, step_s: float, seconds: float, reads: int
) -> None:
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(size_bytes)
    ticks = itertools.count(100.0, step_s)
    rate = buffered_bytes_per_second(path, size_bytes, seconds, lambda: next(ticks))
    steps = reads + (reads == 1)  # the clock is read once more where the time is over
    assert rate == pytest.approx(reads * CHUNK_BYTES / (steps * step_s), rel=1e-3)


def test_unreadable_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match=r"cannot read .*absent: No such file"):
        buffered_bytes_per_second(tmp_path / "absent", 16 * MIB, 1.0)
    with pytest.raises(DiskslaError, match="Is a directory"):
        buffered_bytes_per_second(tmp_path, 16 * MIB, 1.0)
    (tmp_path / "small").write_bytes(b"x" * 100)
    with pytest.raises(DiskslaError, match="ends at 100 bytes; expected at least 4 MiB"):
        buffered_bytes_per_second(tmp_path / "small", 100, 1.0)
