"""Slots by the columns of a chart."""

from collections.abc import Sequence

from disksla.history.slot import Slot, joined

COLUMNS = 60
"""Columns of a chart: five seconds each for five minutes, a minute each for an hour."""


def columns_of(slots: Sequence[Slot], now_s: float, column_s: float) -> list[Slot | None]:
    """Return what a disk did in each column up to a monotonic time, the oldest first.

    None where nothing is known.
    """
    by_column: list[list[Slot]] = [[] for _ in range(COLUMNS)]
    for slot in slots:
        # A slot belongs to the column of its middle.
        index = COLUMNS - 1 - int((now_s - slot.end_s + slot.seconds / 2) / column_s)
        if 0 <= index < COLUMNS:
            by_column[index].append(slot)
    return [joined(each) if each else None for each in by_column]
