"""One disk on a page: what it did lately, in a sentence, a strip of verdicts and charts."""

from collections.abc import Sequence

from disksla.api import credits_document
from disksla.history import (
    COLUMNS,
    RECENT_S,
    SHOWN_OF,
    HistoryView,
    MachineLimit,
    Slot,
    columns_of,
    describe_condition,
    describe_machine,
)
from disksla.limits import Limits
from disksla.pipeline import DiskSnapshot
from disksla.provider_count import explain_provider
from disksla.text import escape_bytes, escape_html, percent_encoded
from disksla.web.charts import line_charts, verdict_strip

DISK_PATH = "/disk"


def disk_card(snapshot: DiskSnapshot, past: HistoryView, slots: Sequence[Slot]) -> str:
    """Return the card of a disk with the last five minutes."""
    first, *others = past.explain(snapshot, slots)
    return f"""{_head(snapshot, past)}
<p>{escape_html(first)}</p>
{"".join(f'<p class="soft">{escape_html(sentence)}</p>' for sentence in others)}
{charts(snapshot, slots, past.history.at_s or 0.0, RECENT_S, "5 minutes")}
{notes(snapshot)}
</article>"""


def brief_card(snapshot: DiskSnapshot, past: HistoryView, slots: Sequence[Slot]) -> str:
    """Return the first sentence and the strip of a disk: a tenth of the size of a card."""
    strip = verdict_strip(_columns(slots, past.history.at_s or 0.0, RECENT_S), "5 minutes")
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
    lines = list(explain_provider(snapshot.agreement))
    lines += [credits_document(level).describe() for level in snapshot.credits]
    return "".join(f'<p class="soft">{escape_html(line)}</p>' for line in lines)


def machine_note(machine: MachineLimit | None) -> str:
    """Return the limits of the machine over a disk; nothing without any."""
    if machine is None:
        return ""
    text = escape_html(describe_machine(machine.shared))
    return f"<p>The disk shares limits of the machine: {text}.</p>"
