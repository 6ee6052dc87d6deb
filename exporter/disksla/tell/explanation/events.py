"""Events of a disk in words: for the log, pages and commands."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from disksla.base.text import escape_bytes
from disksla.base.units import format_bandwidth, format_duration
from disksla.state.history import DiskHistory, History
from disksla.state.pipeline import DiskEvent
from disksla.tell.explanation.condition import condition_of_limit
from disksla.tell.explanation.words import CONDITION_TEXT, Condition, describe_rates, iops_text

_LIMITS_CHANGED = "The limits of the disk changed"


class LogEvent(NamedTuple):
    """A line of the log."""

    message: str
    values: dict[str, object]
    is_problem: bool = False


def new_events(before: History, after: History) -> Iterator[LogEvent]:
    """Yield what began and ended between two histories that follow each other."""
    for device, disk in after.disks.items():
        was = before.disks.get(device)
        if was is not None and disk.events is not was.events:
            yield from _new_events(escape_bytes(device), was, disk)


def _new_events(device: str, was: DiskHistory, disk: DiskHistory) -> Iterator[LogEvent]:
    open_before = {_key(each): each for each in was.events if each.stage == "began"}
    open_now = {_key(each): each for each in disk.events if each.stage == "began"}
    for key, event in open_now.items():
        if key not in open_before:
            values = {"device": device, **_fields(event)}
            yield LogEvent("disk problem began", values, is_problem=True)
    for key, event in open_before.items():
        if key not in open_now:
            seconds = round(event.seconds, 1)
            values = {"device": device, **_fields(event), "until": _time(event.seen_s)}
            yield LogEvent("disk problem ended", {**values, "seconds": seconds})
    if disk.limits != was.limits:
        rates = (describe_rates(each.limits.rates) or "none" for each in (was, disk))
        values = dict(zip(("before", "now"), rates, strict=True))
        yield LogEvent("disk limits changed", {"device": device, **values})


def _key(event: DiskEvent) -> tuple[object, ...]:
    return event.cause, event.limit, event.began_s


def _fields(event: DiskEvent) -> dict[str, object]:
    return {
        "cause": condition_of(event),
        "limit": event.limit,
        "rate": _rate(event) or None,
        "since": _time(event.began_s),
    }


def condition_of(event: DiskEvent) -> Condition | None:
    """Return what is said of a disk during an event; None of a change of its limits."""
    if event.cause == "limits_changed":
        return None
    return condition_of_limit(event.limit or "") if event.cause == "throttled" else event.cause


def describe_event(event: DiskEvent) -> str:
    """Return when an event was, and what."""
    began = _time(event.began_s)
    condition = condition_of(event)
    if condition is None:
        return f"{began}: {_LIMITS_CHANGED}."
    until = f"to {_time(event.seen_s)}" if event.is_over else "until now"
    facts = [CONDITION_TEXT[condition].words, _rate(event)]
    if event.limit not in {None, "unknown"}:
        facts[0] += f" ({event.limit})"
    how_long = f"{format_duration(event.seconds)} in all"
    return f"{began} {until}: {', '.join(filter(None, (*facts, how_long)))}."


def _rate(event: DiskEvent) -> str:
    if not event.iops:
        return ""
    return f"{iops_text(event.iops)}, {format_bandwidth(event.bytes_per_second)}"


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def describe_events(events: Sequence[DiskEvent]) -> list[str]:
    """Return what is said of events, the latest first, without those that were too short."""
    return [describe_event(each) for each in reversed(events) if each.stage != "seen"]
