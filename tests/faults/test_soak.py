"""A short soak: 17 minutes of ticks where `make soak` takes a day of them."""

import os
import re
import subprocess
import sys

from disksla.verdict.verdict import VERDICTS
from faults.soak import Weight, growth_bytes

TICKS = 10_000


def weight(resident_bytes: int) -> Weight:
    return Weight(1, 1.0, resident_bytes, 1, 1)


def test_memory_is_held_against_what_it_was_when_warm() -> None:
    assert growth_bytes([weight(100), weight(103), weight(101)]) == 3
    assert growth_bytes([weight(100), weight(90)]) == 0


def test_memory_is_flat_whatever_the_machine_goes_through() -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("COVERAGE_")  # it would be what is measured
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
