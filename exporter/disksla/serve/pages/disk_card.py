"""One disk on a page: what it did lately, in a sentence, a strip of verdicts and charts."""

from collections.abc import Sequence

from disksla.base.text import escape_bytes, escape_html, percent_encoded
from disksla.promise.catalogue import UNKNOWN_TERMS, Assignment
from disksla.promise.configuration import CUSTOM_TERMS
from disksla.serve.pages.charts import ChartPeriod, period_until, verdict_strip
from disksla.serve.pages.disk_charts import history_charts
from disksla.state.history import Slot
from disksla.state.pipeline import DiskSnapshot
from disksla.tell.api import credits_document
from disksla.tell.explanation import (
    RECENT_S,
    SHOWN_OF,
    HistoryView,
    MachineLimit,
    describe_condition,
    describe_machine,
)

DISK_PATH = "/disk"


def disk_card(snapshot: DiskSnapshot, past: HistoryView, slots: Sequence[Slot]) -> str:
    """Return the card of a disk with the last five minutes."""
    first, *others = past.explain(snapshot, slots)
    return f"""{_head(snapshot, past)}
<p>{escape_html(first)}</p>
{"".join(f'<p class="soft">{escape_html(sentence)}</p>' for sentence in others)}
{charts(snapshot, slots, recent_period(past))}
{notes(snapshot)}
</article>"""


def brief_card(snapshot: DiskSnapshot, past: HistoryView, slots: Sequence[Slot]) -> str:
    """Return the first sentence and the strip of a disk: a tenth of the size of a card."""
    strip = verdict_strip(slots, recent_period(past))
    return f"""{_head(snapshot, past)}
<p class="soft">{escape_html(past.explain(snapshot, slots)[0])}</p>
{strip}
</article>"""


def _head(snapshot: DiskSnapshot, past: HistoryView) -> str:
    disk = snapshot.disk
    uses = [f"claim {disk.full_claim}"] if disk.claim else disk.mount_points
    facts = [disk.size_text, *uses]
    return f"""<article data-key="{escape_html(disk.name)}">
<h2>{link(disk.name)} {badge(snapshot, past)}
<small>{escape_html(", ".join(facts))}</small></h2>"""


def link(name: str) -> str:
    """Return a link to the page of the disk with this kernel name."""
    href = f"{DISK_PATH}?name={percent_encoded(escape_bytes(name))}"
    return f'<a href="{escape_html(href)}">{escape_html(name)}</a>'


def badge(snapshot: DiskSnapshot, past: HistoryView) -> str:
    """Return what is said of a disk now, as a label."""
    condition = past.condition(snapshot)
    if condition is None:
        return ""
    words = escape_html(describe_condition(condition, snapshot.present_load))
    return f'<span class="badge"><i class="{SHOWN_OF[condition]}"></i>{words}</span>'


def recent_period(past: HistoryView) -> ChartPeriod:
    """Return the last five minutes."""
    return period_until("5 minutes", RECENT_S, past.history)


def charts(snapshot: DiskSnapshot, slots: Sequence[Slot], period: ChartPeriod) -> str:
    """Return the strip of verdicts and the charts of a period."""
    return history_charts(slots, period, snapshot.assignment.limits, snapshot.disk.name)


def terms_words(assignment: Assignment) -> list[str]:
    """Return the terms of a disk, and their provider if they are of the catalogue."""
    if assignment.terms == CUSTOM_TERMS:
        return ["written out"]
    is_known = assignment.terms != UNKNOWN_TERMS
    return [assignment.title, assignment.provider] if is_known else [assignment.title]


def notes(snapshot: DiskSnapshot) -> str:
    """Return the burst credits of a disk."""
    lines = [credits_document(level).describe() for level in snapshot.credits]
    return "".join(f'<p class="soft">{escape_html(line)}</p>' for line in lines)


def machine_note(machine: MachineLimit | None) -> str:
    """Return the limits of the machine over a disk; nothing without any."""
    if machine is None:
        return ""
    text = escape_html(describe_machine(machine.shared))
    return f"<p>The disk shares limits of the machine: {text}.</p>"
