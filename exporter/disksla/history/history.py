"""The last five minutes of each disk by seconds, and the last hour by minutes."""

from collections.abc import Iterable, Mapping

import msgspec

from disksla.disks import Disk
from disksla.history.slot import (
    PACKED_BYTES,
    Slot,
    Totals,
    credits_ratio_of,
    slot_between,
    totals_of,
    unpack,
)
from disksla.limits import Limits
from disksla.pipeline import DiskState, State

SECONDS_KEPT = 300
MINUTES_KEPT = 60
BYTES_PER_DISK = (SECONDS_KEPT + MINUTES_KEPT) * (PACKED_BYTES + 33)
"""What the slots of a disk take at most; an object of type bytes has a header of 33 bytes."""
_MINUTE_S = 59.5
"""A minute ends at the second that is nearest to its end."""


class DiskHistory(msgspec.Struct, frozen=True):
    """The past of one disk, from the first sample on."""

    disk: Disk
    limits: Limits
    """Now."""
    limits_since_s: float
    """Monotonic time of the first slot with these limits."""
    totals: Totals
    """At the end of the last second, and of the last minute."""
    totals_at_minute: Totals
    started_s: float
    """Monotonic time at which the present minute of this disk began."""
    packed_seconds: tuple[bytes, ...] = ()
    packed_minutes: tuple[bytes, ...] = ()

    def seconds(self) -> list[Slot]:
        """Return the slots of about a second, the oldest first."""
        return [unpack(packed) for packed in self.packed_seconds]

    def with_limits(self, slots: Iterable[Slot]) -> list[Slot]:
        """Return those slots in which the verdicts are by the limits of now."""
        return [slot for slot in slots if slot.end_s > self.limits_since_s]

    def minutes(self) -> list[Slot]:
        """Return the slots of about a minute, the oldest first."""
        return [unpack(packed) for packed in self.packed_minutes]


class History(msgspec.Struct, frozen=True):
    """The past of all monitored disks."""

    disks: Mapping[str, DiskHistory] = {}
    """By kernel name."""
    at_s: float | None = None
    """Monotonic time of the last slot; None before the first."""

    def after(self, state: State) -> "History":
        """Return the history with what happened until the last sample.

        It is the same until a second has passed. After a gap, a slot is left out: the time in
        which its requests completed is not known.
        """
        if state.clocks is None:
            return self
        now_s = state.clocks.monotonic_s
        if self.at_s is not None and int(now_s) == int(self.at_s):
            return self
        longest_s = 2 * max(1.0, state.settings.sampling.interval_s)
        since_s = now_s if self.at_s is None else self.at_s
        seconds = now_s - since_s if now_s - since_s <= longest_s else None
        return History(
            {
                device: _after(self.disks.get(device), disk_state, state, now_s, seconds)
                for device, disk_state in state.monitored.items()
            },
            now_s,
        )


def _after(
    history: DiskHistory | None,
    disk_state: DiskState,
    state: State,
    now_s: float,
    seconds: float | None,
) -> DiskHistory:
    """Return the history of a disk; `seconds` since the last slot are None after a gap."""
    totals = totals_of(disk_state, state)
    limits = disk_state.assignment.limits
    if history is None or not history.disk.is_same_as(disk_state.disk):
        return DiskHistory(disk_state.disk, limits, now_s, totals, totals, now_s)
    packed_seconds, packed_minutes = history.packed_seconds, history.packed_minutes
    at_minute, started_s = history.totals_at_minute, history.started_s
    if seconds is None:
        at_minute, started_s = totals, now_s
    else:
        boottime_s = state.clocks.boottime_s if state.clocks is not None else 0.0
        ratio = credits_ratio_of(disk_state.credits_at(boottime_s), limits)
        slot = slot_between(history.totals, totals, now_s, seconds, ratio)
        packed_seconds = (*packed_seconds[1 - SECONDS_KEPT :], slot.pack())
        if now_s - started_s >= _MINUTE_S:
            slot = slot_between(at_minute, totals, now_s, now_s - started_s, ratio)
            packed_minutes = (*packed_minutes[1 - MINUTES_KEPT :], slot.pack())
            at_minute, started_s = totals, now_s
    limits_since_s = history.limits_since_s if limits == history.limits else now_s
    return DiskHistory(
        disk_state.disk,
        limits,
        limits_since_s,
        totals,
        at_minute,
        started_s,
        packed_seconds,
        packed_minutes,
    )
