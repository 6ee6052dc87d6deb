"""What disksla said of a recording: the account that `replay --json` gives."""

from itertools import pairwise
from pathlib import Path

from disksla.commands.replay import replay
from disksla.pipeline.window_records import WindowRecord, window_records


def replayed(ticks: Path, config: Path) -> list[WindowRecord]:
    """Send a recording through disksla's pipeline, and give all that it says."""
    return [
        row
        for before, after in pairwise(replay(ticks, config))
        for row in window_records(before, after)
    ]


def is_loaded(row: WindowRecord) -> bool:
    """Tell whether the disk had anything to do."""
    return bool(row.inflight or row.reads or row.writes)
