"""The last five minutes of each disk by seconds, and the last hour by minutes.

A disk whose state is still the same was idle, or is not listed. Idle disks without credits have
the same slot.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from operator import itemgetter

import msgspec

from disksla.kernel.disks import Disk, disk_key
from disksla.promise.catalogue import Limits
from disksla.state.history.events import events_after
from disksla.state.history.slot import (
    PackedSlots,
    RunningTotals,
    Slot,
    credits_ratio_of,
    totals_of,
)
from disksla.state.pipeline import DiskEvent, DiskState, State
from disksla.verdict.interval import Clocks

SECONDS_KEPT = 300
MINUTES_KEPT = 60
_MINUTE_S = 59.5  # a minute ends at the second that is nearest to its end
_ROUNDING_S = 0.5  # durations of slots have seven digits, and no slot is shorter than this


class DiskHistory(msgspec.Struct, frozen=True, gc=False):
    """The past of one disk, from the first sample on."""

    disk_state: DiskState  # at the end of the last second
    limits_since_s: float
    """Monotonic time at which a slot first had the present limits; 0 if they have not changed."""
    totals_at_minute: RunningTotals  # at the end of the last minute
    started_s: float  # monotonic time at which the present minute of this disk began
    packed_seconds: PackedSlots = PackedSlots()
    packed_minutes: PackedSlots = PackedSlots()
    events: tuple[DiskEvent, ...] = ()  # those of the last hour, the oldest first

    @property
    def disk(self) -> Disk:
        """The disk."""
        return self.disk_state.disk

    @property
    def limits(self) -> Limits:
        """The present limits."""
        return self.disk_state.assignment.limits

    def with_limits(self, slots: Iterable[Slot]) -> list[Slot]:
        """Return those slots that began with the present limits, by which their verdicts are."""
        since_s = self.limits_since_s - _ROUNDING_S
        return [slot for slot in slots if slot.end_s - slot.seconds > since_s]

    def seconds(self) -> list[Slot]:
        """Return the slots of about a second, the oldest first."""
        return self.packed_seconds.unpacked(SECONDS_KEPT)

    def minutes(self) -> list[Slot]:
        """Return the slots of about a minute, the oldest first."""
        return self.packed_minutes.unpacked(MINUTES_KEPT)


class MachineHistory(msgspec.Struct, frozen=True, gc=False):
    """How long the limit of the machine throttled any disk of a group, summed up."""

    devices: tuple[str, ...]
    recent_s: tuple[tuple[float, float], ...] = ()
    """Monotonic time, and the seconds throttled until then: the last five minutes by seconds."""
    hour_s: tuple[tuple[float, float], ...] = ()  # likewise the last hour by minutes

    def plus(self, now_s: float, throttled_s: float) -> "MachineHistory":
        """Return the history with one more second."""
        recent_s, hour_s = (*self.recent_s[-SECONDS_KEPT:], (now_s, throttled_s)), self.hour_s
        if not hour_s or now_s - hour_s[-1][0] >= _MINUTE_S:
            hour_s = (*hour_s[-MINUTES_KEPT:], recent_s[-1])
        return MachineHistory(self.devices, recent_s, hour_s)

    def throttled_since(self, begin_s: float) -> float:
        """Return how long the machine throttled a disk since then."""
        since_s = begin_s + _ROUNDING_S
        points = self.recent_s if self.recent_s[0][0] <= since_s else self.hour_s
        after = bisect_right(points, since_s, key=itemgetter(0))
        return self.recent_s[-1][1] - points[max(0, after - 1)][1]


class History(msgspec.Struct, frozen=True, gc=False):
    """The past of all monitored disks."""

    disks: Mapping[str, DiskHistory] = {}  # by kernel name
    at_s: float | None = None  # monotonic time of the last slot; None before the first
    assessed_s: float = 0.0  # time assessed until then
    machine: Mapping[str, MachineHistory] = {}
    """Of the groups of disks that share a limit of the machine, by name."""
    realtime_s: float = 0.0  # wall-clock time of the last slot, since 1970
    saved_events: Mapping[str, tuple[DiskEvent, ...]] = {}
    """Events that an earlier daemon saved, by `disk_key`."""

    def events_by_key(self) -> dict[str, tuple[DiskEvent, ...]]:
        """Return the events to save of disks that have a key."""
        found = {disk_key(each.disk): each.events for each in self.disks.values() if each.events}
        return {key: events for key, events in found.items() if key is not None}

    def machine_s(self, device: str, since_s: float) -> dict[str, float]:
        """Return how long each limit of the machine over a disk throttled any of its disks."""
        return {
            name: group.throttled_since(since_s)
            for name, group in self.machine.items()
            if device in group.devices
        }

    def after(self, state: State) -> "History":
        """Return the history with what happened until the last sample.

        It is the same until a second has passed. After a gap, a slot is left out: the time in
        which its requests completed is not known.
        """
        if state.clocks is None:
            return self
        if self.at_s is not None and int(state.clocks.monotonic_s) == int(self.at_s):
            return self
        return self._with_second(state, state.clocks)

    def ended(self, state: State) -> "History":
        """Return the history with what happened since the last second, at the end of a sample."""
        if state.clocks is None or self.at_s is None or state.clocks.monotonic_s <= self.at_s:
            return self
        return self._with_second(state, state.clocks)

    def _with_second(self, state: State, clocks: Clocks) -> "History":
        """Return the history with the time until the sample of a state, which has these clocks."""
        now_s, assessed_s = clocks.monotonic_s, state.assessed.seconds
        longest_s = 2 * max(1.0, state.settings.sampling.interval_s)
        since_s = now_s if self.at_s is None else self.at_s
        seconds = now_s - since_s if now_s - since_s <= longest_s else None
        idle = RunningTotals(idle_s=assessed_s - self.assessed_s)
        packed_idle = Slot(now_s, now_s - since_s, None, idle).pack()
        disks = {
            device: self._disk_after(disk_state, clocks, assessed_s, seconds, packed_idle)
            for device, disk_state in state.monitored.items()
        }
        machine = {
            name: self._machine(name, group.devices).plus(now_s, sum(group.throttled_s.values()))
            for name, group in state.groups.items()
            if not group.shared.of_type
        }
        return msgspec.structs.replace(
            self,
            disks=disks,
            at_s=now_s,
            assessed_s=assessed_s,
            machine=machine,
            realtime_s=clocks.realtime_s,
        )

    def _disk_after(
        self,
        disk_state: DiskState,
        clocks: Clocks,
        assessed_s: float,
        seconds: float | None,
        packed_idle: bytes,
    ) -> DiskHistory:
        """Return the history of a disk after a slot that ends now; without `seconds` after a gap.

        `packed_idle` is the slot of a disk that was idle and has no credits.
        """
        history, end_s = self.disks.get(disk_state.disk.name), clocks.monotonic_s
        is_unchanged = history is not None and disk_state is history.disk_state
        if history is None or not (is_unchanged or history.disk.is_same_as(disk_state.disk)):
            totals = totals_of(disk_state, assessed_s)
            events = self.saved_events.get(disk_key(disk_state.disk) or "", ())
            return DiskHistory(disk_state, 0.0, totals, end_s, events=events)
        at_minute, started_s = history.totals_at_minute, history.started_s
        packed_seconds, packed_minutes = history.packed_seconds, history.packed_minutes
        latest = None
        if seconds is None:
            at_minute, started_s = totals_of(disk_state, assessed_s), end_s
        elif is_unchanged and disk_state.is_listed and disk_state.credits is None:
            packed_seconds = packed_seconds.plus(packed_idle, SECONDS_KEPT)
        else:
            before = totals_of(history.disk_state, self.assessed_s)
            latest = _slot(before, disk_state, clocks, assessed_s, seconds)
            packed_seconds = packed_seconds.plus(latest.pack(), SECONDS_KEPT)
        if disk_state.never_done > history.disk_state.never_done:
            # Their silence was taken for a stall until other requests were completed beside them.
            packed_seconds = packed_seconds.without_stall(SECONDS_KEPT)
        if end_s - started_s >= _MINUTE_S:
            slot = _slot(at_minute, disk_state, clocks, assessed_s, end_s - started_s)
            packed_minutes = packed_minutes.plus(slot.pack(), MINUTES_KEPT)
            at_minute, started_s = totals_of(disk_state, assessed_s), end_s
        same_limits = is_unchanged or history.limits == disk_state.assignment.limits
        events = events_after(_without_stall(history, disk_state), latest, clocks.realtime_s)
        if not same_limits:
            now_s = clocks.realtime_s
            events += (DiskEvent("limits_changed", None, now_s, now_s, stage="ended"),)
        return msgspec.structs.replace(
            history,
            disk_state=disk_state,
            limits_since_s=history.limits_since_s if same_limits else end_s,
            totals_at_minute=at_minute,
            started_s=started_s,
            packed_seconds=packed_seconds,
            packed_minutes=packed_minutes,
            events=events,
        )

    def _machine(self, name: str, devices: tuple[str, ...]) -> MachineHistory:
        """Return the history of a group, a new one if it has other disks."""
        before = self.machine.get(name)
        is_same = before is not None and before.devices == devices
        return before if before is not None and is_same else MachineHistory(devices)


def history_of(states: Iterable[State]) -> History:
    """Return the history of a sample or a recording, to its last state: they follow each other."""
    history, state = History(), None
    for state in states:
        history = history.after(state)
    return history if state is None else history.ended(state)


def _without_stall(history: DiskHistory, disk_state: DiskState) -> tuple[DiskEvent, ...]:
    """Return the events of before; without a stall that was none, as in `_disk_after`."""
    if disk_state.never_done == history.disk_state.never_done:
        return history.events
    return tuple(each for each in history.events if each.cause != "stalled" or each.is_over)


def _slot(
    before: RunningTotals, disk_state: DiskState, clocks: Clocks, assessed_s: float, seconds: float
) -> Slot:
    """Return what a disk did in a time that ends now; `before` are its totals at the begin."""
    ratio = credits_ratio_of(
        disk_state.credits_at(clocks.boottime_s), disk_state.assignment.limits
    )
    after = totals_of(disk_state, assessed_s)
    return Slot(clocks.monotonic_s, seconds, ratio, after - before)
