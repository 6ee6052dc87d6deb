"""The status page: what each disk did lately, and a table of limits and rates."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from disksla.base.histogram import Histogram
from disksla.base.text import escape_html
from disksla.base.units import format_bandwidth, format_count, format_duration, format_percent
from disksla.promise.catalogue import Limits
from disksla.serve.metrics import BuildInfo
from disksla.serve.pages.charts import verdict_key
from disksla.serve.pages.disk_page import brief_card, disk_card, link, terms_words
from disksla.serve.pages.page import DASH, Frame
from disksla.state.history import Slot, total_slot
from disksla.state.pipeline import DiskSnapshot, GroupSnapshot, SamplerStats, Snapshot, Traffic
from disksla.tell.explanation import (
    CONDITION_TEXT,
    PROBLEMS,
    SHOWN_TEXT,
    ConditionSeconds,
    HistoryView,
    array_name,
    describe_condition,
    explain_array,
    headline,
    seconds_of,
    shown_load,
    shown_seconds,
    watched_period,
    without_terms,
)
from disksla.tell.page import (
    DataTable,
    Drawing,
    Heading,
    Line,
    PagePart,
    Section,
    Styled,
    Words,
    html_of,
)
from disksla.verdict.throttling import OF_MACHINE, UNKNOWN_LIMIT, VERDICTS

_UNKNOWN = Styled(DASH, "soft")
_COLUMNS = (
    "disk", "mounted on", "state", "terms", "limits", "now", "load", "in flight", "peak",
)  # fmt: skip
_MACHINE_COLUMNS = ("machine", "disks", "limits", "load", "throttled", "burst credits")
_EXPLANATION = (
    "Rates are read / write. Limits are those of the terms for the size of the disk. Now is the"
    " mean of the last second. Load is the utilization of the limit; at 100 % the disk is at the"
    " limit. Peak is the highest 100 ms window of the last 60 s. The state is that of the last"
    " five seconds, with the shares of problems since the daemon started."
)
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
    whole = {name: total_slot(slots) for name, slots in seconds.items()}
    ordered = sorted(snapshot.disks, key=lambda disk: -_rank(whole[disk.disk.name].bad_s))
    shown, others = ordered[:_MAX_SHOWN], ordered[_MAX_SHOWN:]
    step = without_terms(disk.assignment.source for disk in snapshot.disks)
    names = [disk.disk.name for disk in ordered]
    by_name = sorted(shown, key=lambda each: each.disk.name)
    table = DataTable(_COLUMNS, [_row(disk, past, snapshot.timestamp_s) for disk in by_name])
    parts: list[PagePart] = [
        *_problems(snapshot, build_info),
        *([] if step is None else [Line(step)]),
        _headline({name: seconds_of(whole[name]).conditions() for name in names}),
        *_cards(shown, past, seconds),
        *_arrays(snapshot, past),
        *((Heading("Limits and rates"), table, Line(_EXPLANATION, "soft")) if shown else ()),
        *_links(others),
        *_unknown_limit(snapshot.disks),
        DataTable(_MACHINE_COLUMNS, [_group(group) for group in snapshot.groups]),
        _sampler(snapshot.sampler),
    ]
    return frame.page(frame.host, html_of(parts))


def _headline(conditions: Mapping[str, ConditionSeconds]) -> PagePart:
    if not conditions:
        command = Styled("disksla disks", tag="code")
        return Heading(("No disk is monitored; ", command, " shows why."), level=1)
    answer = headline(conditions, watched_period(conditions.values()))
    return Drawing(f'<div role="status"><h1>{escape_html(answer)}</h1></div>')


def _cards(
    disks: Sequence[DiskSnapshot], past: HistoryView, seconds: Mapping[str, Sequence[Slot]]
) -> Iterator[PagePart]:
    """Yield what each disk did in the last five minutes, those with problems first."""
    for style, make, some in (
        ("cards", disk_card, disks[:_MAX_CARDS]),
        ("cards brief", brief_card, disks[_MAX_CARDS:]),
    ):
        if some:
            cards = [make(disk, past, seconds[disk.disk.name]) for disk in some]
            yield Section(cards, style=style, key=style)
    if disks:
        yield verdict_key()


def _arrays(snapshot: Snapshot, past: HistoryView) -> Iterator[PagePart]:
    """Yield what the arrays on several disks are promised; the rest is on the disks' pages."""
    for array in snapshot.arrays[:_MAX_SHOWN]:
        sentences = " ".join(explain_array(array, past))
        yield Line((Styled(f"{array_name(array)}:", "strong"), f" {sentences}"))


def _links(disks: Sequence[DiskSnapshot]) -> Iterator[PagePart]:
    """Yield links to the pages of disks that are not shown; nothing without any."""
    if disks:
        links = [(link(name), " ") for name in sorted(disk.disk.name for disk in disks)]
        words = Line(tuple(piece for each in links for piece in each))
        summary = f"{len(disks)} other disks, with less or no trouble"
        yield Section([words], key="others", summary=summary)


def _rank(bad_s: float) -> int:
    """Return a number by which disks are ordered; cards do not change places for a few seconds."""
    return 0 if bad_s < _LEAST_BAD_S else 1 + int(bad_s / _RANK_S)


def _problems(snapshot: Snapshot, build_info: BuildInfo) -> Iterator[PagePart]:
    sampler, terms = snapshot.sampler, snapshot.terms
    if not build_info.reload_successful:
        yield Line(
            "The last reload failed; the previous configuration is in force."
            " See the log of disksla.",
            "alarm",
        )
    unreadable = [source for source, works in sampler.collectors.items() if not works]
    if unreadable:
        yield Line(f"Not working: {', '.join(unreadable)}.", "alarm")
    details = [f"{source}: {text}" for source, text in sampler.problems.items()]
    details += [*terms.problems, *(f"{entry.describe()}." for entry in terms.unused)]
    yield from map(Line, details[:_MAX_PROBLEMS])
    if len(details) > _MAX_PROBLEMS:
        yield Line(f"and {len(details) - _MAX_PROBLEMS} more")


def _row(snapshot: DiskSnapshot, past: HistoryView, now_s: float) -> list[Words]:
    disk, assignment = snapshot.disk, snapshot.assignment
    terms, *provider = terms_words(assignment)
    present, peak = (
        (None, None) if snapshot.counters is None else (snapshot.present, snapshot.peak)
    )
    return [
        (disk.name, *_soft(disk.size_text, disk.model, disk.serial)),
        tuple(disk.mount_points) or _UNKNOWN,
        _condition(snapshot, past),
        (terms, *_soft(*provider, assignment.said_by(now_s))),
        _limits(assignment.limits),
        _traffic(present),
        _load(snapshot.present_load),
        _UNKNOWN if snapshot.inflight is None else str(snapshot.inflight),
        _traffic(peak),
    ]


def _group(group: GroupSnapshot) -> list[Words]:
    throttled_s = sum(group.throttled_s.values())
    levels = tuple(
        f"{level.resource} {format_percent(level.ratio(level.estimate_credits))}"
        for level in group.credits
    )
    return [
        (group.shared.machine or "limits written out", *_soft(group.shared.title)),
        tuple(group.devices),
        _limits(group.shared.limits),
        _load(group.present_load),
        format_duration(throttled_s) if throttled_s else "never",
        levels or _UNKNOWN,
    ]


def _traffic(traffic: Traffic | None) -> Words:
    return _UNKNOWN if traffic is None else _rates(*msgspec.structs.astuple(traffic))


def _limits(limits: Limits) -> Words:
    latency = None
    if limits.latency_s is not None:
        latency = f"latency {format_duration(limits.latency_s)}"
        latency = ", ".join(filter(None, (latency, limits.latency_kind)))
    is_shared = limits.budget is not None and limits.budget.kind != "separate"
    lines = _rates(*msgspec.structs.astuple(limits.rates))
    return (*lines, *_soft(latency, "shared" if is_shared else None)) or Styled("none", "soft")


def _rates(*rates: float | None) -> tuple[Styled, ...]:
    """Return a line for IOPS and one for throughput, each without those that are unknown."""
    lines = [
        " / ".join(DASH if rate is None else written(rate) for rate in pair) + unit
        for pair, written, unit in (
            (rates[:2], format_count, " IOPS"), (rates[2:], format_bandwidth, ""),
        )
        if pair != (None, None)
    ]  # fmt: skip
    return tuple(Styled(line, "rate") for line in lines)


def _load(load: float | None) -> Words:
    if load is None:
        return _UNKNOWN
    meter = (
        f'<meter min="0" max="1" high="0.9" value="{min(load, 1):.3f}" aria-hidden="true"></meter>'
    )
    return Drawing(f'<span class="rate">{meter} {format_percent(shown_load(load))}</span>')


def _condition(snapshot: DiskSnapshot, past: HistoryView) -> Words:
    """Return what is said of a disk now, and the shares of problems since the start."""
    by_verdict = dict(zip(VERDICTS, snapshot.verdict_totals.seconds, strict=True))
    slow = snapshot.slow
    shown_s = shown_seconds(by_verdict, slow.above_promise_s + slow.above_usual_s)
    total_s = sum(by_verdict.values())
    shares = [
        f"{SHOWN_TEXT[each].words} {format_percent(shown_s[each] / total_s)}"
        for each in PROBLEMS
        if shown_s[each]
    ]
    condition = past.condition(snapshot)
    if condition is None:
        return (_UNKNOWN, *_soft(*shares))
    style = "alarm" if CONDITION_TEXT[condition].shown in PROBLEMS else ""
    words = Styled(describe_condition(condition, snapshot.present_load), style)
    return (words, *_soft(*_ceiling(snapshot), *shares))


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


def _unknown_limit(disks: Iterable[DiskSnapshot]) -> Iterator[PagePart]:
    """Yield what it suggests that a disk is throttled at a rate that its terms do not explain."""
    names = [
        snapshot.disk.name
        for snapshot in disks
        if snapshot.throttle == UNKNOWN_LIMIT and snapshot.assignment.limits.promise_charges
    ]
    if names:
        sentence = (
            f"The terms of {', '.join(names)} do not explain the rate at which it is throttled: it"
            " is of another type or size than configured, or the provider counts requests in"
            " another way, or a limit of the machine applies. See "
        )
        yield Line((sentence, Styled("disksla explain", tag="code"), "."))


def _sampler(sampler: SamplerStats) -> PagePart:
    gaps = _counts(sampler.gaps) or "none"
    errors = _counts(sampler.errors) or "none"
    return Line(
        f"Sampler: {sampler.ticks} ticks, {sampler.missed_ticks} missed,"
        f" {_lateness(sampler.lateness_s)}. Gaps: {gaps}. Errors: {errors}."
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
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count)


def _soft(*texts: str | None) -> list[Styled]:
    return [Styled(text, "soft") for text in texts if text]
