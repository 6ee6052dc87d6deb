"""Events of a disk: when a problem began and ended, and when its limits changed.

A problem begins when the sentence about the last five minutes would say it: a hundredth of them,
and a stall at once. It ends when it has been away for a minute, so that one that comes and goes is
one event. The events of the last hour are kept, over a restart too.
"""

import msgspec

from disksla.state.history.slot import Slot
from disksla.state.pipeline import DiskEvent, EventCause
from disksla.verdict.throttling import LIMIT_KINDS, VERDICTS, LimitKind

AWAY_S = 60.0
KEPT_S = 3600.0
_MOST_KEPT = 100
_PERIOD_S = 300.0
_SAID_S = 3.0
_EMPTY = 0.01  # credits below this share of the capacity are used up
_MOSTLY = 0.5  # what applies for this share of a slot or longer dominates it

_Problem = tuple[EventCause, LimitKind | None]
_BELOW, _STALLED = VERDICTS.index("below"), VERDICTS.index("stalled")


def events_after(
    events: tuple[DiskEvent, ...], slot: Slot | None, now_s: float
) -> tuple[DiskEvent, ...]:
    """Return the events of a disk after a slot, which ends now; without one after a gap."""
    found = {} if slot is None else _problems(slot)
    if not found and not events:
        return events
    kept = []
    for event in events:
        is_open = not event.is_over
        seconds = found.pop((event.cause, event.limit), 0.0) if is_open else 0.0
        if slot is not None and seconds:
            kept.append(_seen(event, slot, seconds, now_s))
        elif is_open and abs(now_s - event.seen_s) >= AWAY_S:
            kept += [msgspec.structs.replace(event, stage="ended")] * (event.stage == "began")
        elif is_open or now_s - event.seen_s < KEPT_S:
            kept.append(event)
    if slot is not None:
        for (cause, limit), seconds in found.items():
            new = DiskEvent(cause, limit, now_s - slot.seconds, now_s)
            kept.append(_seen(new, slot, seconds, now_s))
    return tuple(kept[-_MOST_KEPT:])


def _problems(slot: Slot) -> dict[_Problem, float]:
    """Return how long each problem applied in a slot."""
    is_empty = slot.credits_ratio is not None and slot.credits_ratio < _EMPTY
    own: EventCause = "no_credits" if is_empty else "throttled"
    seconds: dict[_Problem, float] = {
        ("below", None): slot.verdict_s[_BELOW],
        ("stalled", None): slot.verdict_s[_STALLED],
        ("slow", None): slot.slow_s,
    }
    for limit, each_s in zip(LIMIT_KINDS, slot.throttled_s, strict=True):
        seconds[own if limit in {"iops", "bandwidth"} else "throttled", limit] = each_s
    return {problem: each_s for problem, each_s in seconds.items() if each_s > 0}


def _seen(event: DiskEvent, slot: Slot, seconds: float, now_s: float) -> DiskEvent:
    """Return an event that applied for these seconds of a slot."""
    before_s = event.seconds
    if event.stage == "seen":  # what was long ago is no longer of the last five minutes
        away_s = now_s - slot.seconds - event.seen_s
        before_s *= 1 - min(max(0.0, away_s / _PERIOD_S), 1.0)
    is_said = before_s + seconds >= _SAID_S or event.cause == "stalled"
    is_mostly = seconds >= _MOSTLY * slot.seconds
    return msgspec.structs.replace(
        event,
        seen_s=now_s,
        seconds=before_s + seconds,
        stage="began" if is_said or event.stage == "began" else "seen",
        iops=slot.least_iops if is_mostly else event.iops,
        bytes_per_second=slot.bytes_per_second if is_mostly else event.bytes_per_second,
    )
