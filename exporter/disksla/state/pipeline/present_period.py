"""The period of each disk up to the end of a recording or sample: one disk, with the same terms.

Kernel names are given again, and volumes grow and are retyped. What was before says nothing of the
present disk, and its verdicts are by other limits.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import msgspec

from disksla.state.pipeline.state import State
from disksla.state.pipeline.window_records import WindowRecord, window_records


class PresentPeriods(NamedTuple):
    """What the disks of the last state did, each since it is this disk with these limits."""

    last: State
    records: Mapping[str, list[WindowRecord]]
    """By kernel name."""
    since_s: Mapping[str, float]
    """Monotonic time at which the period of a disk began, if another was before."""


def present_periods(states: Iterable[State]) -> PresentPeriods | None:
    """Return the present period of each disk in states that follow each other; None of fewer."""
    records: defaultdict[str, list[WindowRecord]] = defaultdict(list)
    since_s: dict[str, float] = {}
    last = None
    for before, last in pairwise(states):
        for record in window_records(before, last):
            if record.monotonic_s > since_s.get(record.device, float("-inf")):
                records[record.device].append(record)
        for device, disk_state in last.monitored.items():
            previous = before.monitored.get(device)
            if previous is not None and disk_state.never_done > previous.never_done:
                _take_stall_back(records[device])
        for device in ended(before, last):
            records.pop(device, None)
            since_s[device] = last.now_s
    return None if last is None else PresentPeriods(last, records, since_s)


def _take_stall_back(records: list[WindowRecord]) -> None:
    """Make the last silence idle: requests that were completed after it show what it was."""
    for index, record in reversed(list(enumerate(records))):
        if record.verdict == "stalled":
            records[index] = msgspec.structs.replace(record, verdict="idle")
        elif (record.reads or record.writes) and index < len(records) - 1:
            break


def ended(before: State, after: State) -> list[str]:
    """Return the disks of a state that are gone, another disk, or under other limits after it."""
    if before.inventory is after.inventory:
        return []
    return [
        device
        for device, disk_state in before.monitored.items()
        if (now := after.monitored.get(device)) is None
        or not disk_state.disk.is_same_as(now.disk)
        or disk_state.assignment.limits != now.assignment.limits
    ]
