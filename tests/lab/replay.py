"""Replay of a recording through the pipeline of disksla: the records of `replay --json`."""

from itertools import pairwise
from pathlib import Path

from disksla.commands.replay import replay
from disksla.pipeline.window_records import WindowRecord, window_records


def replay_records(ticks: Path, config: Path) -> list[WindowRecord]:
    """Return the records of all windows of a recording, under a configuration."""
    return [
        row
        for before, after in pairwise(replay(ticks, config))
        for row in window_records(before, after)
    ]


def is_loaded(row: WindowRecord) -> bool:
    """Return whether requests completed or were in flight."""
    return bool(row.inflight or row.reads or row.writes)
