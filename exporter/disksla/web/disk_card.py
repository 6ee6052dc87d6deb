"""One disk on a page: what it did lately, in a sentence, a strip of verdicts and charts."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from disksla.history import (
    DiskHistory,
    History,
    MachineLimit,
    Slot,
    describe_machine,
    explain,
    explain_provider,
    joined,
    summary_of_slots,
)
from disksla.limits import Limits
from disksla.pipeline import DiskSnapshot
from disksla.text import escape_bytes, escape_html, percent_encoded
from disksla.units import format_duration, format_size
from disksla.verdict import OF_MACHINE, VERDICTS, Verdict
from disksla.web.charts import COLUMNS, columns_of, line_charts, verdict_strip
from disksla.web.credits_document import credits_document

BAD_VERDICTS: tuple[Verdict, ...] = ("throttled", "below", "stalled")
RECENT_S = 300.0
DISK_PATH = "/disk"
_NOW_SLOTS = 5
"""A verdict may be decided two seconds late."""


class Past(NamedTuple):
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
        history = self.of(snapshot)
        chosen = list(slots) if history is None else history.with_limits(slots)
        charges = snapshot.assignment.limits.promise_charges
        window_s = None if snapshot.ceiling is None else snapshot.ceiling.window_s
        summary = summary_of_slots(chosen, window_s, charges)
        by_machine = any(limit in OF_MACHINE for _, limit in summary.throttled)
        device, machine_s = snapshot.disk.name, 0.0
        if chosen:
            machine_s = self.history.machine_s(device, chosen[0].end_s - chosen[0].seconds)
        machine = self.machine_limit(device) if by_machine or machine_s else None
        sentences = explain(summary, snapshot.assignment, machine, machine_s)
        if history is not None and len(chosen) < len(slots):
            ago_s = (self.history.at_s or 0.0) - history.limits_since_s
            sentences.append(f"The limits of the disk changed {format_duration(ago_s)} ago.")
        return sentences


def bad_seconds(slots: Sequence[Slot]) -> float:
    """Return how long a disk was throttled, below its promise or stalled."""
    by_verdict = dict(zip(VERDICTS, joined(slots).verdict_s, strict=True))
    return sum(by_verdict[verdict] for verdict in BAD_VERDICTS)


def disk_card(snapshot: DiskSnapshot, past: Past, slots: Sequence[Slot]) -> str:
    """Return the card of a disk with the last five minutes."""
    first, *others = past.explain(snapshot, slots)
    return f"""{_head(snapshot, slots)}
<p>{escape_html(first)}</p>
{"".join(f'<p class="soft">{escape_html(sentence)}</p>' for sentence in others)}
{charts(snapshot, slots, past.history.at_s or 0.0, RECENT_S, "5 minutes")}
{notes(snapshot)}
</article>"""


def brief_card(snapshot: DiskSnapshot, past: Past, slots: Sequence[Slot]) -> str:
    """Return the first sentence and the strip of a disk: a tenth of the size of a card."""
    strip = verdict_strip(_columns(slots, past.history.at_s or 0.0, RECENT_S), "5 minutes")
    return f"""{_head(snapshot, slots)}
<p class="soft">{escape_html(past.explain(snapshot, slots)[0])}</p>
{strip}
</article>"""


def _head(snapshot: DiskSnapshot, slots: Sequence[Slot]) -> str:
    disk = snapshot.disk
    href = f"{DISK_PATH}?name={percent_encoded(escape_bytes(disk.name))}"
    facts = [format_size(disk.size_bytes), *disk.mount_points]
    return f"""<article data-key="{escape_html(disk.name)}">
<h2><a href="{escape_html(href)}">{escape_html(disk.name)}</a> {badge(slots)}
<small>{escape_html(", ".join(facts))}</small></h2>"""


def badge(slots: Sequence[Slot]) -> str:
    """Return what the disk does now as a label: the longest verdict of the last five seconds."""
    last = joined(slots[-_NOW_SLOTS:]).verdict_s
    if not any(last):
        return ""
    verdict = VERDICTS[last.index(max(last))]
    return f'<span class="badge"><i class="{verdict}"></i>now {verdict}</span>'


def charts(
    snapshot: DiskSnapshot, slots: Sequence[Slot], now_s: float, period_s: float, period: str
) -> str:
    """Return the strip of verdicts and the charts of a period up to a monotonic time."""
    columns = _columns(slots, now_s, period_s)
    iops, bandwidth = shared_limits(snapshot.assignment.limits)
    return verdict_strip(columns, period) + line_charts(columns, period, iops, bandwidth)


def _columns(slots: Sequence[Slot], now_s: float, period_s: float) -> list[Slot | None]:
    return columns_of(slots, now_s, period_s / COLUMNS)


def shared_limits(limits: Limits) -> tuple[float | None, float | None]:
    """Return the limits of IOPS and bandwidth that hold for reads and writes together.

    None where reads and writes have limits of their own, or different ones.
    """
    rates, budget = limits.rates, limits.budget
    if budget is None or budget.kind == "separate":
        return None, None
    pairs = (
        (rates.read_iops, rates.write_iops),
        (rates.read_bytes_per_second, rates.write_bytes_per_second),
    )
    iops, bandwidth = (read if read == write else None for read, write in pairs)
    return iops, bandwidth


def notes(snapshot: DiskSnapshot) -> str:
    """Return what the provider counts of a disk, and its burst credits."""
    lines = list(explain_provider(snapshot))
    lines += [credits_document(level).describe() for level in snapshot.credits]
    return "".join(f'<p class="soft">{escape_html(line)}</p>' for line in lines)


def machine_note(machine: MachineLimit | None) -> str:
    """Return the limits of the machine over a disk; nothing without any."""
    if machine is None:
        return ""
    text = escape_html(describe_machine(machine.shared))
    return f"<p>The disk shares limits of the machine: {text}.</p>"
