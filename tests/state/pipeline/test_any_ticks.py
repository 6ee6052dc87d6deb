"""`advance` on any sequence of samples: it never fails, and every second has one verdict."""

import math
from pathlib import Path

from hypothesis import example, given

from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.disk_state import DiskState
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State
from disksla.state.pipeline.window_records import ended, window_records
from disksla.verdict.interval import GapReason
from disksla.verdict.throttling.verdict import VERDICTS, longest_silence_s
from support.changed_recordings import RECORDINGS, ChangedRecording, changed_recordings

DECIDED_WITHIN_S = 1.4
"""After the longest silence: the rest of a second, and windows that are late."""


def below_promise() -> Path:
    """Return a recording; with this seed, its counters begin again after the disk was idle."""
    [path] = [each for each in RECORDINGS if each.parent.name == "below-promise"]
    return path


def published(state: State) -> dict[tuple[str, str], tuple[int, ...]]:
    """Return the counts of all histograms."""
    found = {}
    for each in Snapshot(state).disks:
        found[each.disk.name, "read"] = each.totals.read_latency.histogram.counts
        found[each.disk.name, "write"] = each.totals.write_latency.histogram.counts
        found[each.disk.name, "load"] = each.load.counts if each.load is not None else ()
    return found


def check_seconds(state: State, device: str, disk_state: DiskState, begun_s: float) -> None:
    """Check that the seconds of all verdicts are those from when the disk is known until it was
    read last, which is the last tick but for NFS mounts.
    """
    assessed = state.assessed_of(is_mount=disk_state.disk.is_mount)
    totals = disk_state.totals
    if disk_state.is_listed and device not in state.active:
        totals = totals.with_idle_until(assessed, 0.0)
    verdicts = totals.verdict_totals
    undecided_s = sum(window.seconds for window in totals.undecided.windows)
    assert all(seconds >= -1e-9 and math.isfinite(seconds) for seconds in verdicts.seconds)
    decided_s = sum(verdicts.seconds)
    # A mount that is read once a second is not assessed in the second in which a gap was.
    of_all: tuple[GapReason, ...] = ("late", "suspend", "clock_step", "unreadable")
    of_one: tuple[GapReason, ...] = ("reset", "vanished", "malformed", "replaced")
    reasons = of_one + of_all if disk_state.disk.is_mount else of_one
    has_gaps = any(state.sampler_stats.gaps[gap] for gap in reasons)
    assessed_s = assessed.seconds - begun_s
    if has_gaps or not disk_state.is_listed:
        assert decided_s + undecided_s <= assessed_s + 1e-6
    else:
        assert abs(decided_s + undecided_s - assessed_s) < 1e-6
    assert abs(sum(verdicts.throttled_s) - verdicts.seconds[VERDICTS.index("throttled")]) < 1e-6
    silence_s = longest_silence_s(disk_state.assignment.limits)
    assert undecided_s <= silence_s + DECIDED_WITHIN_S
    assert len(totals.undecided.windows) == len(disk_state.detector.pending)


@given(changed_recordings)
@example(ChangedRecording(below_promise(), ["shuffled"], has_close=False, seed=5))
def test_advance_never_fails_and_every_second_has_a_verdict(recording: ChangedRecording) -> None:
    state, ticks = recording.read()
    begun_s: dict[str, float] = {}
    counts: dict[tuple[str, str], tuple[int, ...]] = {}
    for tick in ticks:
        before, state = state, advance(state, tick)
        rows = window_records(before, state)
        counts_before, counts = counts, published(state)
        of_others = ended(before, state)  # whose names may be those of disks now
        for key in counts.keys() & counts_before.keys():
            if key[0] in of_others:
                continue
            pairs = zip(counts_before[key], counts[key], strict=True)
            assert all(old <= new for old, new in pairs), key
        for device, disk_state in state.monitored.items():
            assessed_s = state.assessed_of(is_mount=disk_state.disk.is_mount).seconds
            if disk_state.reading is not None:
                begun_s.setdefault(device, assessed_s)
            check_seconds(state, device, disk_state, begun_s.get(device, assessed_s))
        for group in state.groups.values():
            assert len(group.totals.undecided.windows) == len(group.detector.pending)
        assert all(0 <= (row.throttled_s or 0.0) <= (row.window_s or 0.0) + 1e-9 for row in rows)
