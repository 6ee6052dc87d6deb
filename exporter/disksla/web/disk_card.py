"""One disk on a page: what it did lately, in a sentence, a strip of verdicts and charts."""

from collections.abc import Sequence

from disksla.api import credits_document
from disksla.history import (
    COLUMNS,
    RECENT_S,
    HistoryView,
    MachineLimit,
    Slot,
    columns_of,
    describe_machine,
    joined,
)
from disksla.limits import Limits
from disksla.pipeline import DiskSnapshot
from disksla.provider_count import explain_provider
from disksla.text import escape_bytes, escape_html, percent_encoded
from disksla.units import format_size
from disksla.verdict import LIMITED_VERDICTS, VERDICTS
from disksla.web.charts import line_charts, verdict_strip

DISK_PATH = "/disk"
_NOW_SLOTS = 5
"""A verdict may be decided two seconds late."""


def bad_seconds(slots: Sequence[Slot]) -> float:
    """Return how long a disk was throttled, below its promise or stalled."""
    by_verdict = dict(zip(VERDICTS, joined(slots).verdict_s, strict=True))
    return sum(by_verdict[verdict] for verdict in LIMITED_VERDICTS)


def disk_card(snapshot: DiskSnapshot, past: HistoryView, slots: Sequence[Slot]) -> str:
    """Return the card of a disk with the last five minutes."""
    first, *others = past.explain(snapshot, slots)
    return f"""{_head(snapshot, slots)}
<p>{escape_html(first)}</p>
{"".join(f'<p class="soft">{escape_html(sentence)}</p>' for sentence in others)}
{charts(snapshot, slots, past.history.at_s or 0.0, RECENT_S, "5 minutes")}
{notes(snapshot)}
</article>"""


def brief_card(snapshot: DiskSnapshot, past: HistoryView, slots: Sequence[Slot]) -> str:
    """Return the first sentence and the strip of a disk: a tenth of the size of a card."""
    strip = verdict_strip(_columns(slots, past.history.at_s or 0.0, RECENT_S), "5 minutes")
    return f"""{_head(snapshot, slots)}
<p class="soft">{escape_html(past.explain(snapshot, slots)[0])}</p>
{strip}
</article>"""


def _head(snapshot: DiskSnapshot, slots: Sequence[Slot]) -> str:
    disk = snapshot.disk
    uses = [f"claim {disk.full_claim}"] if disk.claim else disk.mount_points
    facts = [format_size(disk.size_bytes), *uses]
    return f"""<article data-key="{escape_html(disk.name)}">
<h2>{link(disk.name)} {badge(slots)}
<small>{escape_html(", ".join(facts))}</small></h2>"""


def link(name: str) -> str:
    """Return a link to the page of the disk with this kernel name."""
    href = f"{DISK_PATH}?name={percent_encoded(escape_bytes(name))}"
    return f'<a href="{escape_html(href)}">{escape_html(name)}</a>'


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
    lines = list(explain_provider(snapshot.agreement))
    lines += [credits_document(level).describe() for level in snapshot.credits]
    return "".join(f'<p class="soft">{escape_html(line)}</p>' for line in lines)


def machine_note(machine: MachineLimit | None) -> str:
    """Return the limits of the machine over a disk; nothing without any."""
    if machine is None:
        return ""
    text = escape_html(describe_machine(machine.shared))
    return f"<p>The disk shares limits of the machine: {text}.</p>"
