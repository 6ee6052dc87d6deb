"""The past of disks, as pages and documents show it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from disksla.history.history import DiskHistory, History
from disksla.history.sentences import MachineLimit, explain
from disksla.history.slot import Slot
from disksla.history.summary import Summary, summary_of_slots
from disksla.history.who import ConsumerShare, explain_who, period_since
from disksla.pipeline import DiskSnapshot
from disksla.units import format_duration
from disksla.verdict import OF_MACHINE

RECENT_S = 300.0
"""What a disk did lately is what it did in this time."""


class HistoryView(NamedTuple):
    """What the daemon knows of the past, and of the limits of its machine."""

    history: History = History()
    machine_limit: Callable[[str], MachineLimit | None] = lambda _device: None
    """The limit of the machine over a disk, by kernel name."""

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

    def explain(self, snapshot: DiskSnapshot, slots: Sequence[Slot]) -> list[str]:
        """Return sentences about a period of a disk, problems first.

        They are about the time since its limits changed last.
        """
        chosen, summary, since_s = self._summary(snapshot, slots)
        by_machine = any(limit in OF_MACHINE for _, limit in summary.throttled)
        device = snapshot.disk.name
        machine_s = self.history.machine_s(device, since_s) if chosen else 0.0
        machine = self.machine_limit(device) if by_machine or machine_s else None
        who = explain_who(snapshot.consumers, since_s, self.history.at_s or 0.0, summary)
        sentences = explain(summary, snapshot.assignment, machine, machine_s, who)
        history = self.of(snapshot)
        if history is not None and len(chosen) < len(slots):
            ago_s = (self.history.at_s or 0.0) - history.limits_since_s
            sentences.append(f"The limits of the disk changed {format_duration(ago_s)} ago.")
        return sentences

    def who(self, snapshot: DiskSnapshot, slots: Sequence[Slot]) -> Sequence[ConsumerShare]:
        """Return what consumers used in a period of a disk, the greatest first."""
        _, summary, since_s = self._summary(snapshot, slots)
        return period_since(snapshot.consumers, since_s, summary).shares

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
