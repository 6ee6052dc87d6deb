"""One disk on a page: what it did lately, in a sentence, a strip of verdicts and charts."""

from collections.abc import Sequence

from disksla.base.text import escape_bytes, escape_html, percent_encoded
from disksla.promise.catalogue import CUSTOM_TERMS, UNKNOWN_TERMS, Assignment
from disksla.serve.pages.charts import ChartPeriod, period_until, verdict_strip
from disksla.serve.pages.disk_charts import history_charts
from disksla.state.history import Slot
from disksla.state.pipeline import DiskSnapshot
from disksla.tell.api import credits_document
from disksla.tell.explanation import CONDITION_TEXT, RECENT_S, HistoryView, describe_condition
from disksla.tell.page import Drawing, Heading, Line, PagePart, Piece, Section, Styled

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
