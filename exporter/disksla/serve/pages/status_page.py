"""The status page: what each disk did lately, and a table of limits and rates."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from disksla.base.histogram import Histogram
from disksla.base.text import escape_html
from disksla.base.units import format_bandwidth, format_count, format_duration, format_percent
from disksla.promise.catalogue import Limits
from disksla.serve.metrics import BuildInfo
from disksla.serve.pages.charts import verdict_key
from disksla.serve.pages.disk_card import brief_card, disk_card, link, terms_words
from disksla.serve.pages.page import DASH, Frame, table, table_row
from disksla.state.history import Slot, joined
from disksla.state.pipeline import DiskSnapshot, GroupSnapshot, SamplerStats, Snapshot, Traffic
from disksla.tell.explanation import (
    CONDITION_TEXT,
    PROBLEMS,
    SHOWN_TEXT,
    ConditionSeconds,
    HistoryView,
    describe_condition,
    headline,
    seconds_of,
    shown_load,
    shown_seconds,
    watched_period,
)
from disksla.verdict.throttling import OF_MACHINE, UNKNOWN_LIMIT, VERDICTS

_ReadAndWrite = tuple[float | None, float | None]
_UNKNOWN = f'<span class="soft">{DASH}</span>'
_COLUMNS = (
    "Disk", "Mounted on", "State", "Terms", "Limits", "Now", "Load", "In flight", "Peak",
)  # fmt: skip
_MACHINE_COLUMNS = ("Machine", "Disks", "Limits", "Load", "Throttled", "Burst credits")
_MAX_PROBLEMS = 10
_MAX_CARDS = 12
"""The cards of further disks have no charts; those are on the pages of the disks."""
_MAX_SHOWN = 20
"""Disks with a card and a row; of the others, there are links to their pages."""
_LEAST_BAD_S = 1.0
_RANK_S = 30.0


def status_page(snapshot: Snapshot, build_info: BuildInfo, past: HistoryView, frame: Frame) -> str:
    """Return the page as HTML; names from devices, users and the configuration are escaped."""
    seconds = {disk.disk.name: past.seconds(disk) for disk in snapshot.disks}
    whole = {name: joined(slots) for name, slots in seconds.items()}
    ordered = sorted(snapshot.disks, key=lambda disk: -_rank(whole[disk.disk.name].bad_s))
    shown, others = ordered[:_MAX_SHOWN], ordered[_MAX_SHOWN:]
    main = f"""{_problems(snapshot, build_info)}
{_headline({disk.disk.name: seconds_of(whole[disk.disk.name]).conditions() for disk in ordered})}
{_cards(shown, past, seconds)}
{_table_of_disks(shown, past, snapshot.timestamp_s)}
{_links(others)}
{_unknown_limit(snapshot.disks)}
{_machine(snapshot.groups)}
{_sampler(snapshot.sampler)}"""
    return frame.page(frame.host, main)


def _headline(conditions: Mapping[str, ConditionSeconds]) -> str:
    if not conditions:
        return "<h1>No disk is monitored; <code>disksla disks</code> shows why.</h1>"
    answer = headline(conditions, watched_period(conditions.values()))
    return f'<div role="status"><h1>{escape_html(answer)}</h1></div>'


def _cards(
    disks: Sequence[DiskSnapshot], past: HistoryView, seconds: Mapping[str, Sequence[Slot]]
) -> str:
    """Return what each disk did in the last five minutes, those with problems first."""
    if not disks:
        return ""
    cards = [disk_card(disk, past, seconds[disk.disk.name]) for disk in disks[:_MAX_CARDS]]
    brief = [brief_card(disk, past, seconds[disk.disk.name]) for disk in disks[_MAX_CARDS:]]
    return f"{_grid('cards', cards)}\n{_grid('cards brief', brief)}\n{verdict_key()}"


def _links(disks: Sequence[DiskSnapshot]) -> str:
    """Return links to the pages of disks that are not shown; nothing without any."""
    if not disks:
        return ""
    links = " ".join(link(name) for name in sorted(disk.disk.name for disk in disks))
    return f"""<details data-key="others"><summary>{len(disks)} other disks, with less or no
trouble</summary>
<p>{links}</p></details>"""


def _grid(style: str, cards: Sequence[str]) -> str:
    content = "\n".join(cards)
    return f'<div class="{style}" data-key="{style}">\n{content}\n</div>' if cards else ""


def _rank(bad_s: float) -> int:
    """Return a number by which disks are ordered; cards do not change places for a few seconds."""
    return 0 if bad_s < _LEAST_BAD_S else 1 + int(bad_s / _RANK_S)


def _table_of_disks(disks: Sequence[DiskSnapshot], past: HistoryView, now_s: float) -> str:
    if not disks:
        return ""
    rows = (_row(disk, past, now_s) for disk in sorted(disks, key=lambda each: each.disk.name))
    return f"""<h2>Limits and rates</h2>
{table(_COLUMNS, rows)}
<p class="soft">Rates are read / write. Limits are those of the terms for the size of the disk. Now
is the mean of the last second. Load is the utilization of the limit; at 100 % the disk is at the
limit. Peak is the highest 100 ms window of the last 60 s. The state is that of the last five
seconds, with the shares of problems since the daemon started.</p>"""


def _problems(snapshot: Snapshot, build_info: BuildInfo) -> str:
    sampler, terms = snapshot.sampler, snapshot.terms
    unreadable = [source for source, works in sampler.collectors.items() if not works]
    problems = []
    if not build_info.reload_successful:
        problems.append(
            "The last reload failed; the previous configuration is in force."
            " See the log of disksla."
        )
    if unreadable:
        problems.append(f"Not working: {escape_html(', '.join(unreadable))}.")
    details = [f"{source}: {text}" for source, text in sampler.problems.items()]
    details += [*terms.problems, *(f"{entry.describe()}." for entry in terms.unused)]
    if len(details) > _MAX_PROBLEMS:
        details[_MAX_PROBLEMS:] = [f"and {len(details) - _MAX_PROBLEMS} more"]
    return "\n".join(
        [f'<p class="alarm">{problem}</p>' for problem in problems]
        + [f"<p>{escape_html(detail)}</p>" for detail in details]
    )


def _row(snapshot: DiskSnapshot, past: HistoryView, now_s: float) -> str:
    disk, assignment = snapshot.disk, snapshot.assignment
    facts = (disk.size_text, disk.model, disk.serial)
    terms, *provider = terms_words(assignment)
    present, peak = (
        (None, None) if snapshot.counters is None else (snapshot.present, snapshot.peak)
    )
    cells = (
        _lines(disk.mount_points) or _UNKNOWN,
        _condition(snapshot, past),
        _lines([terms], soft=[*provider, assignment.said_by(now_s)]),
        _limits(assignment.limits),
        _traffic(present),
        _load(snapshot.present_load),
        _UNKNOWN if snapshot.inflight is None else str(snapshot.inflight),
        _traffic(peak),
    )
    name = _lines([disk.name], soft=filter(None, facts))
    return table_row(_COLUMNS, name, cells)


def _machine(groups: Iterable[GroupSnapshot]) -> str:
    """Return a table of the limits of the machine; nothing without any."""
    rows = [_group(group) for group in groups]
    return table(_MACHINE_COLUMNS, rows) if rows else ""


def _group(group: GroupSnapshot) -> str:
    throttled_s = sum(group.throttled_s.values())
    levels = [
        f"{level.resource} {format_percent(level.ratio(level.estimate_credits))}"
        for level in group.credits
    ]
    cells = (
        _lines(group.devices),
        _limits(group.shared.limits),
        _load(group.present_load),
        format_duration(throttled_s) if throttled_s else "never",
        _lines(levels) or _UNKNOWN,
    )
    name = _lines([group.shared.machine or "limits written out"], soft=[group.shared.title])
    return table_row(_MACHINE_COLUMNS, name, cells)


def _traffic(traffic: Traffic | None) -> str:
    if traffic is None:
        return _UNKNOWN
    return _rates(
        (traffic.read_iops, traffic.write_iops),
        (traffic.read_bytes_per_second, traffic.written_bytes_per_second),
    )


def _limits(limits: Limits) -> str:
    rates = limits.rates
    lines = _rates(
        (rates.read_iops, rates.write_iops),
        (rates.read_bytes_per_second, rates.write_bytes_per_second),
    )
    notes = []
    if limits.latency_s is not None:
        latency = f"latency {format_duration(limits.latency_s)}"
        notes.append(", ".join(filter(None, (latency, limits.latency_kind))))
    if limits.budget is not None and limits.budget.kind != "separate":
        notes.append("shared")
    return lines + _lines(soft=notes) or '<span class="soft">none</span>'


def _rates(iops: _ReadAndWrite, bandwidth: _ReadAndWrite) -> str:
    """Return a line for IOPS and one for throughput, each without those that are unknown."""
    lines = []
    if iops != (None, None):
        lines.append(" / ".join(_or_dash(rate, format_count) for rate in iops) + " IOPS")
    if bandwidth != (None, None):
        lines.append(" / ".join(_or_dash(rate, format_bandwidth) for rate in bandwidth))
    return "".join(f'<span class="rate">{line}</span>' for line in lines)


def _or_dash(number: float | None, format_number: Callable[[float], str]) -> str:
    return DASH if number is None else format_number(number)


def _load(load: float | None) -> str:
    if load is None:
        return _UNKNOWN
    meter = (
        f'<meter min="0" max="1" high="0.9" value="{min(load, 1):.3f}" aria-hidden="true"></meter>'
    )
    return f'<span class="rate">{meter} {format_percent(shown_load(load))}</span>'


def _condition(snapshot: DiskSnapshot, past: HistoryView) -> str:
    """Return what is said of a disk now, and the shares of problems since the start."""
    by_verdict = dict(zip(VERDICTS, snapshot.verdict_totals.seconds, strict=True))
    slow = snapshot.slow
    shown_s = shown_seconds(by_verdict, slow.above_promise_s + slow.above_usual_s)
    total_s = sum(by_verdict.values())
    notes = [
        f"{SHOWN_TEXT[each].words} {format_percent(shown_s[each] / total_s)}"
        for each in PROBLEMS
        if shown_s[each]
    ]
    condition = past.condition(snapshot)
    if condition is None:
        return _UNKNOWN + _lines(soft=notes)
    style = ' class="alarm"' if CONDITION_TEXT[condition].shown in PROBLEMS else ""
    words = escape_html(describe_condition(condition, snapshot.present_load))
    return f"<span{style}>{words}</span>" + _lines(soft=[*_ceiling(snapshot), *notes])


def _ceiling(snapshot: DiskSnapshot) -> Iterator[str]:
    """Yield at which rate a disk is throttled, if that is its own limit."""
    throttle, ceiling = snapshot.throttle, snapshot.ceiling
    is_of_machine = throttle is not None and throttle.limit in OF_MACHINE
    if is_of_machine or snapshot.verdict != "throttled" or ceiling is None:
        return
    if ceiling.throttle.limit != "bandwidth" and ceiling.iops is not None:
        yield f"at {format_count(ceiling.iops)} IOPS"
    elif ceiling.bytes_per_second is not None:
        yield f"at {format_bandwidth(ceiling.bytes_per_second)}"


def _unknown_limit(disks: Iterable[DiskSnapshot]) -> str:
    """Return what it suggests that a disk is throttled at a rate that its terms do not explain."""
    names = [
        snapshot.disk.name
        for snapshot in disks
        if snapshot.throttle == UNKNOWN_LIMIT and snapshot.assignment.limits.promise_charges
    ]
    if not names:
        return ""
    return (
        f"<p>The terms of {escape_html(', '.join(names))} do not explain the rate at which it is"
        " throttled: it is of another type or size than configured, or the provider counts"
        " requests in another way, or a limit of the machine applies. See"
        " <code>disksla explain</code>.</p>"
    )


def _sampler(sampler: SamplerStats) -> str:
    gaps = _counts(sampler.gaps) or "none"
    errors = _counts(sampler.errors) or "none"
    return (
        f"<p>Sampler: {sampler.ticks} ticks, {sampler.missed_ticks} missed,"
        f" {_lateness(sampler.lateness_s)}. Gaps: {gaps}. Errors: {errors}.</p>"
    )


def _lateness(lateness_s: Histogram) -> str:
    """Return a bound on the lateness of 99 % of the ticks."""
    for bound, count in zip(
        lateness_s.bounds, itertools.accumulate(lateness_s.counts), strict=False
    ):
        if count >= 0.99 * lateness_s.count:
            return f"99 % at most {format_duration(bound)} late"
    return f"1 % more than {format_duration(lateness_s.bounds[-1])} late"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{escape_html(name)} {count}" for name, count in counts.items() if count)


def _lines(texts: Iterable[str] = (), soft: Iterable[str] = ()) -> str:
    strong = "".join(f"<span>{escape_html(text)}</span>" for text in texts)
    return strong + "".join(f'<span class="soft">{escape_html(text)}</span>' for text in soft)
