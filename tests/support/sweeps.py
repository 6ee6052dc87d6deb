"""A measured sweep, for tests of its page."""

from pathlib import Path

from disksla.base.units import GIB
from disksla.measure.benchmark.sweep_matrix import SweepHeader, SweepPlan, read_csv
from support.simulated_host import a_disk

TABLE = (
    Path(__file__).resolve().parent.parent
    / "measure"
    / "benchmark"
    / "sweeps"
    / "storageio-hdd.csv"
)

ROWS = read_csv(TABLE.read_text())

PLAN = SweepPlan(sizes=(4096, 16384), workers=(1,), writes=True)

HEADER = SweepHeader(
    disk=a_disk(model="<b>", serial="s-1"),
    directory="/data",
    file_bytes=GIB,
    plan=PLAN,
    started_at_s=1.7e9,
    disksla="0.1",
)
