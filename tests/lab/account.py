"""What disksla said of a recording: the account that `replay --json` gives."""

from itertools import pairwise
from pathlib import Path

from disksla.commands.replay import replay
from disksla.core.account import Row, account


def replayed(ticks: Path, config: Path) -> list[Row]:
    """Send a recording through disksla's pipeline, and give all that it says."""
    return [
        row for before, after in pairwise(replay(ticks, config)) for row in account(before, after)
    ]


def is_loaded(row: Row) -> bool:
    """Tell whether the disk had anything to do."""
    return bool(row.inflight or row.reads or row.writes)
