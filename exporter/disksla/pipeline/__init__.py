"""Tick and state to state; snapshot, recording and saved state. START READING at `advance`."""

from disksla.pipeline.advance import advance, configure
from disksla.pipeline.probe_results import ProbeFailure, ProbeResult, ProbeTotals, Skip, SkipReason
from disksla.pipeline.restore import PreviousRun
from disksla.pipeline.snapshot import (
    DiskSnapshot,
    SamplerSnapshot,
    Snapshot,
    Traffic,
    disk_snapshot,
    take_snapshot,
)
from disksla.pipeline.state import State, needs_host_wait, to_saved_state
from disksla.pipeline.tick import Tick
from disksla.pipeline.window_records import WindowRecord, window_records

__all__ = [
    "DiskSnapshot",
    "PreviousRun",
    "ProbeFailure",
    "ProbeResult",
    "ProbeTotals",
    "SamplerSnapshot",
    "Skip",
    "SkipReason",
    "Snapshot",
    "State",
    "Tick",
    "Traffic",
    "WindowRecord",
    "advance",
    "configure",
    "disk_snapshot",
    "needs_host_wait",
    "take_snapshot",
    "to_saved_state",
    "window_records",
]
