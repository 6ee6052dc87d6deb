"""Throughput of a loop device, compared with hdparm."""

import shutil
import subprocess
from pathlib import Path

import pytest

from disksla.base.units import MIB
from disksla.measure.benchmark.throughput import cached_bytes_per_second
from support.loop_device import attached, needs_loop

needs_hdparm = pytest.mark.skipif(
    shutil.which("hdparm") is None, reason="NOT TESTED: hdparm is missing"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(16 * MIB)
    return path


@needs_loop
@needs_hdparm
def test_result_is_close_to_that_of_hdparm(tmp_path: Path) -> None:
    """The tolerance is wide, because the machine may be busy."""
    path = tmp_path / "disk"
    with path.open("wb") as file:
        for _ in range(600):
            file.write(bytes(MIB))
    with attached(path) as device:
        shown = subprocess.run(
            ["hdparm", "-T", f"/dev/{device}"], capture_output=True, text=True, check=True
        ).stdout
        expected = float(shown.rpartition("=")[2].split()[0]) * MIB
        measured = cached_bytes_per_second(Path(f"/dev/{device}"), 1.0)
        assert expected / 4 < measured < expected * 4
