"""The past of disks and its events in words, as pages, documents and the log show them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from disksla.base.text import escape_bytes
from disksla.base.units import format_bandwidth, format_duration
from disksla.state.history import DiskHistory, History, Slot, total_slot
from disksla.state.pipeline import DiskEvent, DiskSnapshot
from disksla.tell.explanation.condition import (
    PeriodSeconds,
    condition_of_limit,
    next_step,
    present_condition,
)
from disksla.tell.explanation.sentences import MachineLimit, explain
from disksla.tell.explanation.summary import Summary, summary_of_slots
from disksla.tell.explanation.who import ConsumerShare, explain_who, period_since
from disksla.tell.explanation.words import CONDITION_TEXT, Condition, describe_rates, iops_text
from disksla.verdict.throttling import LIMIT_KINDS, OF_MACHINE, VERDICTS

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


RECENT_S = 300.0
"""What a disk did lately is what it did in this time."""
_NOW_SLOTS = 5
"""A verdict may be decided two seconds late."""


def most_throttled(seconds: Mapping[str, float]) -> tuple[str | None, float]:
    """Return the limit with most seconds, and how many; None if none throttled."""
    name = max(seconds, key=lambda each: seconds[each], default=None)
    return (name, seconds[name]) if name is not None and seconds[name] else (None, 0.0)


def seconds_of(slot: Slot) -> PeriodSeconds:
    """Return how long each verdict and each limit applied in a slot, and slow."""
    return PeriodSeconds(
        dict(zip(VERDICTS, slot.verdict_s, strict=True)),
        dict(zip(LIMIT_KINDS, slot.throttled_s, strict=True)),
        slot.slow_s,
    )


def _of_window(snapshot: DiskSnapshot) -> PeriodSeconds:
    """Return the verdict on the last window as if it had applied for a second."""
    throttle = snapshot.throttle
    return PeriodSeconds(
        {verdict: float(verdict == snapshot.verdict) for verdict in VERDICTS},
        {} if throttle is None else {throttle.limit: 1.0},
        0.0,
    )


class HistoryView(NamedTuple):
    """What the daemon knows of the past, and of the limits of its machine."""

    history: History = History()
    machine_limit: Callable[[str, str | None], MachineLimit | None] = lambda *_: None
    """The limit of the machine over a disk, by kernel name, and by that of the group if known."""

    def of(self, snapshot: DiskSnapshot) -> DiskHistory | None:
        """Return the history of a disk; None before its first second."""
        history = self.history.disks.get(snapshot.disk.name)
        is_same = history is not None and history.disk.is_same_as(snapshot.disk)
        return history if is_same else None

    def seconds(self, snapshot: DiskSnapshot) -> list[Slot]:
        """Return the slots of a disk in the last five minutes."""
        history = self.of(snapshot)
        if history is None or self.history.at_s is None:
            return []
        return [each for each in history.seconds() if each.end_s > self.history.at_s - RECENT_S]

    def minutes(self, snapshot: DiskSnapshot) -> list[Slot]:
        """Return the slots of a disk in the last hour."""
        history = self.of(snapshot)
        return [] if history is None else history.minutes()

    def events(self, snapshot: DiskSnapshot) -> list[str]:
        """Return the events of a disk in the last hour in words, the latest first."""
        history = self.of(snapshot)
        return [] if history is None else describe_events(history.events)

    def condition(self, snapshot: DiskSnapshot) -> Condition | None:
        """Return what is said of a disk now: of the last five seconds of its history.

        It is that of the last window while it has no history.
        """
        slots = self.seconds(snapshot)[-_NOW_SLOTS:]
        seconds = seconds_of(total_slot(slots)) if slots else _of_window(snapshot)
        return present_condition(seconds.conditions(), snapshot.credits)

    def machine(self, snapshot: DiskSnapshot, slots: Sequence[Slot]) -> MachineLimit | None:
        """Return the limit of the machine over a disk that throttled most in a period."""
        return self.machine_limit(snapshot.disk.name, self._most(snapshot, slots)[0])

    def _most(self, snapshot: DiskSnapshot, slots: Sequence[Slot]) -> tuple[str | None, float]:
        """Return which limit of the machine throttled most in a period, and how long."""
        if not slots:
            return None, 0.0
        since_s = slots[0].end_s - slots[0].seconds
        return most_throttled(self.history.machine_s(snapshot.disk.name, since_s))

    def explain(self, snapshot: DiskSnapshot, slots: Sequence[Slot]) -> list[str]:
        """Return sentences about a period of a disk, problems first.

        They are about the time since its limits changed last.
        """
        chosen, summary, since_s = self._summary(snapshot, slots)
        by_machine = any(limit in OF_MACHINE for _, limit in summary.throttled)
        history = self.of(snapshot)
        name, machine_s = self._most(snapshot, chosen)
        is_needed = by_machine or machine_s
        machine = self.machine_limit(snapshot.disk.name, name) if is_needed else None
        who = explain_who(snapshot.consumers, since_s, self.history.at_s or 0.0, summary)
        sentences = explain(summary, snapshot.assignment, machine, machine_s, who)
        if history is not None and len(chosen) < len(slots):
            ago_s = (self.history.at_s or 0.0) - history.limits_since_s
            sentences.append(f"The limits of the disk changed {format_duration(ago_s)} ago.")
        return sentences

    def explain_lately(self, snapshot: DiskSnapshot, slots: Sequence[Slot]) -> list[str]:
        """Return sentences about the last five minutes of a disk, and what to do next."""
        chosen, _, _ = self._summary(snapshot, slots)
        seconds = seconds_of(total_slot(chosen)).conditions()
        step = next_step(snapshot.disk.name, snapshot.assignment, seconds)
        return [*self.explain(snapshot, slots), *([] if step is None else [step])]

    def who(self, snapshot: DiskSnapshot, slots: Sequence[Slot]) -> Sequence[ConsumerShare]:
        """Return what consumers used in a period of a disk, the greatest first."""
        _, summary, since_s = self._summary(snapshot, slots)
        return period_since(snapshot.consumers, since_s, summary).shares

    def load(self, snapshot: DiskSnapshot) -> float | None:
        """Return the mean load of a disk in the last five minutes, while it had requests."""
        return self._summary(snapshot, self.seconds(snapshot))[1].load

    def _summary(
        self, snapshot: DiskSnapshot, slots: Sequence[Slot]
    ) -> tuple[Sequence[Slot], Summary, float]:
        """Return the slots since the limits of a disk changed, their summary and their begin."""
        history = self.of(snapshot)
        chosen = list(slots) if history is None else history.with_limits(slots)
        charges = snapshot.assignment.limits.promise_charges
        window_s = None if snapshot.ceiling is None else snapshot.ceiling.window_s
        since_s = chosen[0].end_s - chosen[0].seconds if chosen else self.history.at_s or 0.0
        return chosen, summary_of_slots(chosen, window_s, charges), since_s
