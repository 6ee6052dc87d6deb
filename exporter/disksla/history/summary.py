"""What a disk did in a period, by verdict and by limit: from slots, or from single windows."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple, get_args

from disksla.history.slot import Slot
from disksla.pipeline import WindowRecord
from disksla.verdict import LIMIT_KINDS, VERDICTS, LimitKind, ThrottleLevel, Verdict

LEVELS: tuple[ThrottleLevel, ...] = get_args(ThrottleLevel)
_MOST_SHARE = 0.5
"""What applies for this share of a slot or longer dominates it."""


class Part(NamedTuple):
    """What a disk did while a verdict, or a limit, applied."""

    seconds: float
    """How long it applied; of a limit, how long requests waited for it."""
    iops: float
    bytes_per_second: float
    inflight: float
    """Mean number of requests in flight."""
    wait_s: float
    """Mean time that a request waited because of throttling."""
    limiter_window_s: float | None = None
    """Time between two releases of the limiter, if known."""
    has_flushes: bool = False
    """There were flushes, so that empty ones may be among the IOPS."""


class Summary(NamedTuple):
    """What a disk did in a period."""

    seconds: float
    verdicts: Mapping[Verdict, Part]
    """Those that there were."""
    throttled: Mapping[tuple[ThrottleLevel, LimitKind], Part]
    """The limits at which it was throttled, by level."""


_ORDER = tuple(product(LEVELS, LIMIT_KINDS))


def summary_of_slots(slots: Sequence[Slot], limiter_window_s: float | None = None) -> Summary:
    """Return the summary of slots; the window of the limiter is the last that is known."""
    verdicts = {}
    for index, verdict in enumerate(VERDICTS):
        part = _of_slots([(slot, slot.verdict_s[index]) for slot in slots])
        if part is not None:
            verdicts[verdict] = part
    throttled = {}
    for level, limit in _ORDER:
        index = LIMIT_KINDS.index(limit)
        at_level = [slot for slot in slots if _level(slot, limit) == level]
        part = _of_slots([(slot, slot.throttled_s[index]) for slot in at_level])
        if part is not None:
            throttled[level, limit] = part._replace(limiter_window_s=limiter_window_s)
    return Summary(sum(sum(slot.verdict_s) for slot in slots), verdicts, throttled)


def _level(slot: Slot, limit: LimitKind) -> ThrottleLevel:
    """Return the level at which the disk was throttled at a limit in a slot."""
    if limit == "unknown":
        return "unknown"
    known_s = sum(slot.throttled_s) - slot.totals.unknown
    return "burst" if slot.totals.burst_s > _MOST_SHARE * known_s else "base"


def _of_slots(slots: Sequence[tuple[Slot, float]]) -> Part | None:
    """Return what was done while something applied, from slots with the seconds in which it did.

    The rates are those of the slots that it dominates; without any, of all in which it applied.
    """
    seconds = sum(applied_s for _, applied_s in slots)
    if not seconds:
        return None
    most = [slot for slot, applied_s in slots if applied_s >= _MOST_SHARE * slot.seconds]
    chosen = most or [slot for slot, applied_s in slots if applied_s]
    whole_s = sum(slot.seconds for slot in chosen)
    requests = sum(slot.totals.reads + slot.totals.writes for slot in chosen)
    transferred = sum(slot.totals.read_bytes + slot.totals.written_bytes for slot in chosen)
    return Part(
        seconds,
        requests / whole_s,
        transferred / whole_s,
        sum(slot.totals.queue_s for slot in chosen) / whole_s,
        sum(slot.totals.wait_s for slot in chosen) / max(1.0, requests),
        has_flushes=any(slot.totals.flushes for slot in chosen),
    )


def summary_of_records(records: Iterable[WindowRecord], longest_s: float) -> Summary:
    """Return the summary of the last windows of a disk, which are in order of time."""
    windows = [record for record in records if record.verdict is not None]
    windows = [each for each in windows if each.monotonic_s > windows[-1].monotonic_s - longest_s]
    verdicts: dict[Verdict, Part] = {}
    for verdict in VERDICTS:
        chosen = [record for record in windows if record.verdict == verdict]
        if chosen:
            verdicts[verdict] = _of_records(chosen, sum(each.window_s or 0 for each in chosen))
    throttled = {}
    for level, limit in _ORDER:
        chosen = [record for record in windows if (record.level, record.limit) == (level, limit)]
        if chosen:
            throttled_s = sum(each.throttled_s or 0.0 for each in chosen)
            throttled[level, limit] = _of_records(chosen, throttled_s)
    return Summary(sum(record.window_s or 0.0 for record in windows), verdicts, throttled)


def _of_records(records: Sequence[WindowRecord], seconds: float) -> Part:
    whole_s = sum(record.window_s or 0.0 for record in records)
    requests = sum((record.reads or 0) + (record.writes or 0) for record in records)
    transferred = sum((record.read_bytes or 0) + (record.written_bytes or 0) for record in records)
    windows_s = [each.limiter_window_s for each in records if each.limiter_window_s]
    return Part(
        seconds,
        requests / whole_s,
        transferred / whole_s,
        sum(record.inflight or 0 for record in records) / len(records),
        sum(record.throttle_wait_s or 0.0 for record in records) / max(1, requests),
        windows_s[-1] if windows_s else None,
        has_flushes=any(each.flushes and not each.is_exact for each in records),
    )
