"""A short soak test: 17 minutes of ticks; `make soak` runs a day of them."""

import os
import re
import subprocess
import sys

import pytest

from disksla.verdict.throttling.verdict import VERDICTS
from faults.soak import MemoryUsage, growth_bytes

TICKS = 10_000


def usage(resident_bytes: int) -> MemoryUsage:
    return MemoryUsage(1, 1.0, resident_bytes, 1, 1)


def test_growth_is_relative_to_the_first_measurement() -> None:
    assert growth_bytes([usage(100), usage(103), usage(101)]) == 3
    assert growth_bytes([usage(100), usage(90)]) == 0


@pytest.mark.nightly
def test_memory_does_not_grow_over_10000_ticks() -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("COVERAGE_")  # the memory of the tracer would be measured
    }
    soak = subprocess.run(
        [sys.executable, "-W", "error", "-m", "faults", "--ticks", str(TICKS)],
        check=False,
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert soak.returncode == 0, soak.stdout + soak.stderr
    [verdicts] = re.findall("^verdicts .*", soak.stdout, re.MULTILINE)
    assert all(f"{verdict} " in verdicts for verdict in VERDICTS), verdicts
    [gaps] = re.findall("^gaps: .*", soak.stdout, re.MULTILINE)
    assert all(f"{reason} " in gaps for reason in ("late", "replaced", "vanished")), gaps
