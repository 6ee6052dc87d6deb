"""One disk at one tick, as a flat record: what `disksla replay --json` prints."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import msgspec

from disksla.kernel.consumers import Consumption
from disksla.promise.catalogue import Charge
from disksla.state.pipeline.disk_state import DiskState
from disksla.state.pipeline.state import State
from disksla.verdict.credits import CreditLevel
from disksla.verdict.interval import Interval, idle, load_of
from disksla.verdict.throttling import LimitKind, ThrottleLevel, Verdict, WindowVerdict


class WindowRecord(msgspec.Struct, frozen=True):
    """One disk at one tick: a window, or a gap without further values."""

    monotonic_s: float
    device: str
    gap: str | None = None
    """Why the time since the last tick was not assessed; `start` at the first tick of the disk."""
    window_s: float | None = None
    reads: int | None = None
    writes: int | None = None
    """Data writes if they are counted exactly; else flushes may be among them."""
    read_bytes: int | None = None
    written_bytes: int | None = None
    flushes: int | None = None
    is_exact: bool | None = None  # whether data writes are counted exactly
    inflight: int | None = None  # requests in flight at the end of the window
    load_ratio: float | None = None
    """Load of the window, 1.0 is at the limit; None if the terms promise nothing."""
    verdict: Verdict | None = None
    throttled_s: float | None = None
    """Part of the window in which requests waited for the limiter; None if not throttled."""
    limit: LimitKind | None = None  # limit at which the disk was throttled, if it was
    level: ThrottleLevel | None = None  # whether that is the base rate, the burst rate, or unknown
    throttle_wait_s: float | None = None
    """I/O-seconds that the requests completed in this window waited because of throttling."""
    decided_s: float | None = None
    """When the verdict was decided. What follows was true then; only the last of the windows that
    were decided together has it."""
    throttled_iowait_s: float | None = None
    """The disk's share of the iowait of all CPUs, if it was throttled; CPU seconds."""
    throttled_pressure_s: float | None = None
    """The disk's share of the time in which some tasks were stalled on I/O (PSI), likewise."""
    ceiling_iops: float | None = None  # rate at which the disk was last throttled
    ceiling_bytes_per_second: float | None = None
    limiter_window_s: float | None = None
    """Window of the limiter that throttled the disk last; None if it has none."""
    took_s: float | None = None
    """I/O-seconds that the reads and data writes took which completed in this window."""
    credits: tuple[CreditLevel, ...] = ()  # bounds and estimate of burst credits, by resource
    consumers: tuple[Consumption, ...] | msgspec.UnsetType = msgspec.UNSET
    """What consumers used of the disk so far, as metrics count it; absent if not known."""


def window_records(before: State, after: State) -> list[WindowRecord]:
    """Return the records of each monitored disk; `after` is `before` advanced by one tick.

    Windows whose verdict is not decided yet have a record after the tick that decides it.
    """
    if after.clocks is None:
        return []
    now_s = after.clocks.monotonic_s
    assessed_s = after.assessed.seconds - before.assessed.seconds
    reasons = [
        reason
        for reason, count in after.sampler_stats.gaps.items()
        if count > before.sampler_stats.gaps[reason]
    ]
    records = []
    for device, disk_state in sorted(after.monitored.items()):
        recent = disk_state.totals.recent
        previous = before.monitored.get(device)
        if previous is not None:
            records += _decided_records(previous, disk_state, after)
        if disk_state.totals.undecided.windows:
            continue
        if recent and recent[-1].end_s == now_s:
            window = recent[-1]
            records.append(_window_record(previous, disk_state, window, after))
        elif disk_state.disk.is_mount and after.mounts_read is before.mounts_read:
            continue
        elif (
            assessed_s
            and disk_state.is_listed
            and previous
            and previous.totals is disk_state.totals
        ):  # not updated at this tick, because it was idle
            until_s, since_s = (
                each.assessed_of(is_mount=disk_state.disk.is_mount).seconds
                for each in (after, before)
            )
            window = idle(now_s, until_s - since_s)
            judged = msgspec.structs.replace(disk_state, window_verdict=WindowVerdict("idle"))
            records.append(_window_record(judged, judged, window, after))
        else:
            records.append(WindowRecord(now_s, device, gap=reasons[0] if reasons else "start"))
    return records


def _decided_records(
    previous: DiskState, disk_state: DiskState, after: State
) -> list[WindowRecord]:
    """Return the records of windows that were undecided and are decided now.

    After a gap, all of them are, as unproven if nothing is known of them. The last one has what is
    true at the end of all, unless the present window is decided with them.
    """
    windows = previous.totals.undecided.windows
    verdicts = disk_state.decided
    if not disk_state.totals.undecided.windows and not verdicts:
        verdicts = previous.totals.undecided.at_gap()
    charges = disk_state.assignment.limits.promise_charges
    records = [
        _record(disk_state.disk.name, window, charges, window_verdict)
        for window, window_verdict in zip(windows, verdicts, strict=False)
    ]
    if records and len(verdicts) <= len(windows):
        records[-1] = _with_present(records[-1], previous, disk_state, after)
    return records


def _record(
    device: str,
    window: Interval,
    charges: tuple[Charge, ...],
    window_verdict: WindowVerdict | None,
) -> WindowRecord:
    throttle = window_verdict.throttle if window_verdict is not None else None
    throttled_s = None
    if window_verdict is not None and throttle is not None:
        throttled_s = window_verdict.throttled_share * window.seconds
    return WindowRecord(
        monotonic_s=window.end_s,
        device=device,
        window_s=window.seconds,
        reads=window.reads,
        writes=window.writes,
        read_bytes=window.read_bytes,
        written_bytes=window.written_bytes,
        flushes=window.flushes + window.excluded_flushes,
        is_exact=window.is_exact,
        inflight=window.inflight,
        load_ratio=load_of(window, charges),
        verdict=window_verdict.verdict if window_verdict is not None else None,
        throttled_s=throttled_s,
        limit=throttle.limit if throttle is not None else None,
        level=throttle.level if throttle is not None else None,
        throttle_wait_s=window_verdict.wait_s if window_verdict is not None else None,
        took_s=window.without_flushes().took_s,
    )


def _window_record(
    previous: DiskState | None, disk_state: DiskState, window: Interval, after: State
) -> WindowRecord:
    charges = disk_state.assignment.limits.promise_charges
    record = _record(disk_state.disk.name, window, charges, disk_state.window_verdict)
    return _with_present(record, previous or disk_state, disk_state, after)


def _with_present(
    record: WindowRecord, previous: DiskState, disk_state: DiskState, after: State
) -> WindowRecord:
    """Return a record with what is true at the tick that decided it."""
    limits, recent = disk_state.assignment.limits, disk_state.totals.recent[-1:]
    before = previous.totals.verdict_totals.host
    host = disk_state.totals.verdict_totals.host.since(before)
    ceiling = disk_state.detector.ceiling
    account = disk_state.credits_at(after.clocks.boottime_s) if after.clocks else None
    return msgspec.structs.replace(
        record,
        decided_s=after.clocks.monotonic_s if after.clocks else record.monotonic_s,
        throttled_iowait_s=host.iowait_s,
        throttled_pressure_s=host.pressure_some_s,
        ceiling_iops=ceiling.iops if ceiling else None,
        ceiling_bytes_per_second=ceiling.bytes_per_second if ceiling else None,
        limiter_window_s=ceiling.window_s if ceiling else None,
        credits=account.levels(limits, recent[0]) if account is not None and recent else (),
        consumers=disk_state.consumers.used(record.device) or msgspec.UNSET,
    )


class PresentPeriods(NamedTuple):
    """What the disks of the last state did, each since it is this disk with these limits."""

    last: State
    records: Mapping[str, list[WindowRecord]]  # by kernel name
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
