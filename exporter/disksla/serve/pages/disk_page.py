"""The page of one disk: the last five minutes and the last hour, with the evidence by minute."""

from collections.abc import Iterator

from disksla.base.text import escape_bytes
from disksla.base.units import format_bandwidth, format_count, format_duration
from disksla.serve.pages.charts import period_until, verdict_key
from disksla.serve.pages.disk_card import badge, charts, notes, recent_period, terms_words
from disksla.serve.pages.page import DASH, Frame
from disksla.state.history import Slot
from disksla.state.pipeline import DiskSnapshot, Snapshot
from disksla.tell.explanation import (
    SHOWN_TEXT,
    HistoryView,
    array_name,
    describe_machine,
    explain_array,
    seconds_of,
)
from disksla.tell.page import DataTable, FactList, Heading, Items, Line, PagePart, html_of

_HOUR_S = 3600.0
_COLUMNS = (
    "minutes ago", "what", "reads", "writes", "read", "written", "read latency",
    "write latency", "flush latency", "queue depth", "waited",
)  # fmt: skip
_LEAST_SHARE = 0.005
"""Verdicts below this share of a minute are left out."""


def disk_page(snapshot: Snapshot, name: str, past: HistoryView, frame: Frame) -> str | None:
    """Return the page of the disk with this kernel name as HTML; None if it is not monitored."""
    found = [disk for disk in snapshot.disks if escape_bytes(disk.disk.name) == name]
    if not found:
        return None
    [disk] = found
    recent, minutes = past.seconds(disk), past.minutes(disk)
    now_s = past.history.at_s or 0.0
    parts: list[PagePart] = [
        Heading((disk.disk.name, " ", badge(disk, past)), level=1),
        _facts(disk, snapshot.timestamp_s),
        Heading("Last 5 minutes"),
        *map(Line, past.explain_lately(disk, recent)),
        charts(disk, recent, recent_period(past)),
        verdict_key(),
        *notes(disk),
    ]
    for array in snapshot.arrays:
        if name in map(escape_bytes, array.array.disks):
            parts += [Heading(array_name(array)), *map(Line, explain_array(array, past))]
    machine = past.machine(disk, recent)
    if machine is not None:
        text = describe_machine(machine.shared)
        parts.append(Line(f"The disk shares limits of the machine: {text}."))
    if events := past.events(disk):
        parts += [Heading("What happened"), Items(events)]
    if minutes:
        parts += [
            Heading("Last hour"),
            *map(Line, past.explain(disk, minutes)),
            charts(disk, minutes, period_until("hour", _HOUR_S, past.history)),
            DataTable(_COLUMNS, [_row(slot, now_s) for slot in reversed(minutes)]),
        ]
    return frame.page(f"{disk.disk.name} on {frame.host}", html_of(parts), disk.disk.name)


def _facts(snapshot: DiskSnapshot, now_s: float) -> FactList:
    """Return what is known of the disk and its terms, as a list."""
    disk, assignment = snapshot.disk, snapshot.assignment
    return FactList(
        (
            ("size", disk.size_text),
            ("model", disk.model),
            ("serial number", disk.serial),
            ("volume", disk.volume),
            ("claim", disk.full_claim),
            ("mounted on", ", ".join(disk.mount_points)),
            ("terms", ", ".join(terms_words(assignment))),
            ("said by", assignment.said_by(now_s) or assignment.source),
            ("limits", ", ".join(_limits(snapshot)) or "none"),
            ("machine type", snapshot.machine_type),
        )
    )


def _limits(snapshot: DiskSnapshot) -> Iterator[str]:
    rates = snapshot.assignment.limits.rates
    for what, rate, written in (
        ("reads", rates.read_iops, lambda rate: f"{format_count(rate)} IOPS"),
        ("writes", rates.write_iops, lambda rate: f"{format_count(rate)} IOPS"),
        ("read", rates.read_bytes_per_second, format_bandwidth),
        ("written", rates.write_bytes_per_second, format_bandwidth),
    ):
        if rate is not None:
            yield f"{what} {written(rate)}"


def _row(slot: Slot, now_s: float) -> list[str]:
    totals = slot.totals
    return [
        str(round((now_s - slot.end_s) / 60)),
        ", ".join(
            f"{SHOWN_TEXT[shown].words} {100 * seconds / (sum(slot.verdict_s) or 1.0):.0f} %"
            for shown, seconds in seconds_of(slot).shown.items()
            if seconds >= _LEAST_SHARE * slot.seconds
        )
        or DASH,
        f"{format_count(totals.reads / slot.seconds)}/s",
        f"{format_count(totals.writes / slot.seconds)}/s",
        format_bandwidth(totals.read_bytes / slot.seconds),
        format_bandwidth(totals.written_bytes / slot.seconds),
        _mean(totals.read_s, totals.reads),
        _mean(totals.write_s, totals.writes),
        _mean(totals.flush_s, totals.flushes),
        format_count(slot.queue_depth),
        format_duration(slot.wait_s) if totals.wait_s else DASH,
    ]


def _mean(seconds: float, requests: float) -> str:
    return format_duration(seconds / requests) if requests else DASH
