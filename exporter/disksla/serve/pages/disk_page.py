"""One disk on a page: its card on the status page, and the page of its own."""

from collections.abc import Iterator, Sequence

from disksla.base.text import escape_bytes, escape_html, percent_encoded
from disksla.base.units import format_bandwidth, format_count, format_duration
from disksla.promise.catalogue import CUSTOM_TERMS, UNKNOWN_TERMS, Assignment
from disksla.serve.pages.charts import (
    ChartPeriod,
    history_charts,
    period_until,
    verdict_key,
    verdict_strip,
)
from disksla.serve.pages.page import DASH, Frame
from disksla.state.history import Slot
from disksla.state.pipeline import DiskSnapshot, Snapshot
from disksla.tell.api import credits_document
from disksla.tell.explanation import (
    CONDITION_TEXT,
    RECENT_S,
    SHOWN_TEXT,
    HistoryView,
    array_name,
    describe_condition,
    describe_machine,
    explain_array,
    seconds_of,
)
from disksla.tell.page import (
    DataTable,
    Drawing,
    FactList,
    Heading,
    Items,
    Line,
    PagePart,
    Piece,
    Section,
    Styled,
    html_of,
)

DISK_PATH = "/disk"


def disk_card(snapshot: DiskSnapshot, past: HistoryView, slots: Sequence[Slot]) -> Section:
    """Return the card of a disk with the last five minutes."""
    first, *others = past.explain_lately(snapshot, slots)
    parts: list[PagePart] = [
        Line(first),
        *(Line(sentence, "soft") for sentence in others),
        charts(snapshot, slots, recent_period(past)),
        *notes(snapshot),
    ]
    return _card(snapshot, past, parts)


def brief_card(snapshot: DiskSnapshot, past: HistoryView, slots: Sequence[Slot]) -> Section:
    """Return the first sentence and the strip of a disk: a tenth of the size of a card."""
    first = Line(past.explain(snapshot, slots)[0], "soft")
    return _card(snapshot, past, [first, Drawing(verdict_strip(slots, recent_period(past)))])


def _card(snapshot: DiskSnapshot, past: HistoryView, parts: Sequence[PagePart]) -> Section:
    disk = snapshot.disk
    uses = [f"claim {disk.full_claim}"] if disk.claim else disk.mount_points
    facts = Styled(", ".join([disk.size_text, *uses]), tag="small")
    head = Heading((link(disk.name), " ", badge(snapshot, past), "\n", facts))
    return Section((head, *parts), "article", key=disk.name)


def link(name: str) -> Styled:
    """Return a link to the page of the disk with this kernel name."""
    return Styled(name, href=f"{DISK_PATH}?name={percent_encoded(escape_bytes(name))}")


def badge(snapshot: DiskSnapshot, past: HistoryView) -> Piece:
    """Return what is said of a disk now, as a label."""
    condition = past.condition(snapshot)
    if condition is None:
        return ""
    words = escape_html(describe_condition(condition, snapshot.present_load))
    style = CONDITION_TEXT[condition].shown
    return Drawing(f'<span class="badge"><i class="{style}"></i>{words}</span>')


def recent_period(past: HistoryView) -> ChartPeriod:
    """Return the last five minutes."""
    return period_until("5 minutes", RECENT_S, past.history)


def charts(snapshot: DiskSnapshot, slots: Sequence[Slot], period: ChartPeriod) -> Drawing:
    """Return the strip of verdicts and the charts of a period."""
    return Drawing(history_charts(slots, period, snapshot.assignment.limits, snapshot.disk.name))


def terms_words(assignment: Assignment) -> list[str]:
    """Return the terms of a disk, and their provider if they are of the catalogue."""
    if assignment.terms == CUSTOM_TERMS:
        return ["written out"]
    is_known = assignment.terms != UNKNOWN_TERMS
    return [assignment.title, assignment.provider] if is_known else [assignment.title]


def notes(snapshot: DiskSnapshot) -> list[Line]:
    """Return the burst credits of a disk."""
    return [Line(credits_document(level).describe(), "soft") for level in snapshot.credits]


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
