"""Replay of a recording through the pipeline of disksla: the records of `replay --json`."""

from itertools import pairwise
from pathlib import Path

from disksla.commands.replay import replay
from disksla.state.pipeline import GroupSnapshot, Snapshot, State
from disksla.state.pipeline.window_records import WindowRecord, window_records


def replay_records(ticks: Path, config: Path) -> list[WindowRecord]:
    """Return the records of all windows of a recording, under a configuration."""
    return [
        row
        for before, after in pairwise(replay(ticks, config))
        for row in window_records(before, after)
    ]


def group_records(ticks: Path, config: Path) -> list[WindowRecord]:
    """Return what the metrics say of groups, which share limits of the machine, at each tick.

    `device` is the name of the group. Throttled seconds count at the tick that decides them.
    """
    return [
        row
        for before, after in pairwise(replay(ticks, config))
        for name in before.groups.keys() & after.groups.keys()
        for row in _group_records(name, before, after)
    ]


def _group_records(name: str, before: State, after: State) -> list[WindowRecord]:
    """Return the record of a group at a tick at which it was updated."""
    recent = after.groups[name].totals.recent[-1:]
    if not recent or after.clocks is None or recent[0].end_s != after.clocks.monotonic_s:
        return []
    earlier, snapshot = _snapshot(name, before), _snapshot(name, after)
    throttled_s = {
        limit: seconds - earlier.throttled_s[limit]
        for limit, seconds in snapshot.throttled_s.items()
        if seconds > earlier.throttled_s[limit]
    }
    [window] = recent
    return [
        WindowRecord(
            *(window.end_s, name, None, window.seconds, window.reads, window.writes),
            inflight=window.inflight,
            verdict="throttled" if throttled_s else "unproven",
            throttled_s=sum(throttled_s.values()) or None,
            limit=next(iter(throttled_s), None),
            credits=snapshot.credits,
        )
    ]


def _snapshot(name: str, state: State) -> GroupSnapshot:
    [snapshot] = [group for group in Snapshot(state).groups if group.shared.name == name]
    return snapshot


def is_loaded(row: WindowRecord) -> bool:
    """Return whether requests completed or were in flight."""
    return bool(row.inflight or row.reads or row.writes)
