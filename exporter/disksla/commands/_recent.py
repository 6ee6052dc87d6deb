"""What disks did lately: as the daemon says, in a sample, or in a recording; and its text."""

import argparse
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from rich.text import Text

from disksla.api import DiskDocument, disk_document
from disksla.commands._context import prepare_sampler
from disksla.commands._daemon import disks_of_daemon
from disksla.config import CUSTOM_TERMS, Configuration
from disksla.console import SafeConsole, progress_bar
from disksla.history import (
    PeriodSeconds,
    Slot,
    Summary,
    describe_condition,
    explain,
    explain_who,
    explain_writes,
    headline,
    joined,
    period_since,
    present_condition,
    summary_of_records,
    with_latency,
)
from disksla.history.machine_limit import limits_over, machine_limit
from disksla.history.past import RECENT_S, most_throttled
from disksla.history.slot import slot_between, totals_of
from disksla.limits import UNKNOWN_TERMS, SharedLimits
from disksla.pipeline import (
    State,
    Tick,
    advance,
    present_periods,
    take_snapshot,
    with_named_limits,
)
from disksla.provider_count import ProviderSpan
from disksla.units import format_duration, format_size
from disksla.verdict import VERDICTS, LimitKind

SAMPLED_S = 5.0
_LONGEST_S = 60.0
"""Longest part of a sample or a recording that is described."""
_LATENCY_S = 5.0
_ROUNDING_S = 1e-6
_INDENT = "  "
_TITLES = {UNKNOWN_TERMS: "unknown type", CUSTOM_TERMS: "terms written out"}


RecentSource = Literal["daemon", "sample", "recording"]


class RecentDisks(NamedTuple):
    """What the monitored disks did in a period, up to now or to the end of a recording."""

    period: str
    seconds: float
    """Duration of the period; a disk may have been monitored for less."""
    timestamp_s: float
    """Wall-clock time of the last sample, in seconds since 1970."""
    disks: Mapping[str, DiskDocument]
    """By kernel name, with escaped bytes."""
    source: RecentSource
    machine: Mapping[str, tuple[SharedLimits, ...]] | None = None
    """Limits of the machine by disk; None if they are those of this machine."""
    writes: Mapping[str, list[str]] = {}
    """Whether data writes were counted exactly, by disk, in sentences."""
    host: str = ""
    """Name of the daemon's machine; empty without a daemon."""
    version: str = ""
    """Of the daemon; empty without one."""


def from_daemon(arguments: argparse.Namespace, names: Sequence[str] = ()) -> RecentDisks | None:
    """Return what the daemon says of these disks, by default of all.

    None if it does not say it, which is printed, or need not be asked.
    """
    if arguments.duration_s is not None:
        return None
    document = disks_of_daemon(arguments, f"sampling for {format_duration(SAMPLED_S)}", names)
    if document is None:
        return None
    disks = {disk.device: disk for disk in document.disks}
    return RecentDisks(
        period="the last five minutes",
        seconds=RECENT_S,
        timestamp_s=document.timestamp_s,
        disks=disks,
        source="daemon",
        host=document.host,
        version=document.version,
    )


def from_sample(arguments: argparse.Namespace, configuration: Configuration) -> RecentDisks:
    """Sample all disks for a while, with a progress bar. Raise DiskslaError."""
    seconds = arguments.duration_s or SAMPLED_S
    ticks: list[Tick] = []
    with progress_bar(seconds) as progress:

        def on_tick(tick: Tick) -> None:
            ticks.append(tick)
            progress("sampling", tick.clocks.monotonic_s - ticks[0].clocks.monotonic_s)

        sampler = prepare_sampler(arguments, on_tick, configuration)
        initial = sampler.state
        sampler.run_for(seconds)
    states = list(accumulate(ticks, advance, initial=initial))
    return _of_states("sample", states, min(seconds, _LONGEST_S), sampler.why_not_exact)


def from_recording(states: Sequence[State]) -> RecentDisks:
    """Return what the disks did at the end of a recording."""
    clocks = [state.clocks.monotonic_s for state in states if state.clocks is not None]
    seconds = min(_LONGEST_S, clocks[-1] - clocks[0]) if clocks else 0.0
    return _of_states("recording", states, seconds, None)


def _of_states(
    source: RecentSource, states: Sequence[State], seconds: float, why_not_exact: str | None
) -> RecentDisks:
    """Return what the disks did in states that follow each other.

    `why_not_exact` is why data writes were not counted exactly, if the reason is known.
    """
    found = present_periods(states)
    records = {} if found is None else found.records
    last = states[-1]
    timestamp_s = 0.0 if last.clocks is None else last.clocks.realtime_s
    now_s = 0.0 if last.clocks is None else last.clocks.monotonic_s
    disks, machine, writes = {}, {}, {}
    for snapshot in take_snapshot(last).disks:
        device = snapshot.disk.name
        since_s = None if found is None else found.since_s.get(device)
        first = _state_before(states, seconds, since_s)
        name, machine_s = most_throttled(_machine_s(first, last, device))
        limit = machine_limit(last, device, name)
        named = with_named_limits(records.get(device, ()), _spans(states, device))
        lived = [_slot(first, last, device)]
        summary = with_latency(summary_of_records(named, seconds), lived)
        lasted = PeriodSeconds(
            {
                verdict: summary.verdicts[verdict].seconds if verdict in summary.verdicts else 0.0
                for verdict in VERDICTS
            },
            _throttled_seconds(summary),
            lived[0].slow_s,
        )
        from_s = max(now_s - seconds, since_s or 0.0)
        who = explain_who(snapshot.consumers, from_s, now_s, summary)
        document = disk_document(
            snapshot,
            latency_s=_latency_s(states, device, since_s or 0.0),
            sentences=[
                *explain(summary, snapshot.assignment, limit, machine_s, who),
                *_since(last, since_s),
            ],
            seconds=lasted,
            condition=present_condition(lasted.conditions(), snapshot.credits),
            consumers=period_since(snapshot.consumers, from_s, summary).shares,
        )
        disks[document.device] = document
        machine[document.device] = limits_over(last, device)
        writes[document.device] = explain_writes(records.get(device, ()), why_not_exact)
    period = f"the last {format_duration(seconds)}"
    return RecentDisks(
        period=period,
        seconds=seconds,
        timestamp_s=timestamp_s,
        disks=disks,
        source=source,
        machine=machine,
        writes=writes,
    )


def _since(last: State, since_s: float | None) -> list[str]:
    """Return a sentence on what the others are not about."""
    if since_s is None or last.clocks is None:
        return []
    ago = format_duration(last.clocks.monotonic_s - since_s)
    return [f"Until {ago} before the end, another disk had this name, or this one other limits."]


def _state_before(states: Sequence[State], seconds: float, begin_s: float | None) -> State:
    """Return the first of the states since `begin_s` less than `seconds` older than the last."""
    last = states[-1]
    if last.clocks is None:
        return last
    since_s = max(last.clocks.monotonic_s - seconds, (begin_s or 0.0) - _ROUNDING_S)
    return next(each for each in states if each.clocks and each.clocks.monotonic_s > since_s)


def _machine_s(first: State, last: State, device: str) -> dict[str, float]:
    """Return how long each limit of the machine over a disk throttled any disk in between."""
    return {
        name: sum(group.throttled_s.values()) - sum(first.groups[name].throttled_s.values())
        for name, group in last.groups.items()
        if device in group.devices and not group.shared.of_type and name in first.groups
    }


def _spans(states: Sequence[State], device: str) -> list[ProviderSpan]:
    """Return the times of which the provider's count was compared with the verdicts."""
    spans = {}
    for state in states:
        disk_state = state.monitored.get(device)
        if disk_state is not None and disk_state.comparison is not None:
            last = disk_state.comparison.last
            if last is not None:
                spans[last.end_s] = last
    return list(spans.values())


def _throttled_seconds(summary: Summary) -> dict[LimitKind, float]:
    seconds: defaultdict[LimitKind, float] = defaultdict(float)
    for (_, limit), part in summary.throttled.items():
        seconds[limit] += part.seconds
    return seconds


def _slot(first: State, last: State, device: str) -> Slot:
    """Return what a disk did between two states; nothing of one that the first does not have."""
    if first.clocks is None or last.clocks is None or device not in first.monitored:
        return joined([])
    before, after = (
        totals_of(each.monitored[device], each.assessed.seconds) for each in (first, last)
    )
    end_s = last.clocks.monotonic_s
    return slot_between(before, after, end_s, end_s - first.clocks.monotonic_s, None)


def _latency_s(states: Sequence[State], device: str, since_s: float) -> float | None:
    """Return the mean time of a request at the end; None if none completed."""
    last = states[-1]
    if last.clocks is None:
        return None
    end_s = last.clocks.monotonic_s
    for state in states:
        if state.clocks is None or device not in state.monitored:
            continue
        if state.clocks.monotonic_s < since_s:
            continue
        seconds = end_s - state.clocks.monotonic_s
        if 0 < seconds <= _LATENCY_S:
            return _slot(state, last, device).latency_s
    return None


def print_recent(recent: RecentDisks, order: Sequence[str]) -> None:
    """Print what each disk did: those with problems first, then in the `order` of names."""
    console = SafeConsole()
    if not recent.disks:
        console.print("No disk is monitored; disksla discover shows why.")
        return
    places = {name: place for place, name in enumerate(order)}
    disks = sorted(
        recent.disks.values(), key=lambda disk: (-disk.bad_s, places.get(disk.device, len(places)))
    )
    conditions = {disk.device: disk.conditions() for disk in disks}
    console.print(headline(conditions, recent.period), style="bold")
    for disk in disks:
        size = format_size(disk.size_bytes) if disk.size_bytes else "NFS mount"
        facts = [size, _TITLES.get(disk.terms, disk.terms)]
        facts += [f"mounted at {each}" for each in disk.mount_points]
        console.print()
        console.print(Text.assemble((disk.device, "bold"), ", ", ", ".join(facts)))
        console.print(Text(f"{_INDENT}{condition_text(recent, disk)}", "bold"))
        for sentence in sentences_of(disk):
            lines = textwrap.wrap(sentence, console.width - len(_INDENT), break_on_hyphens=False)
            console.print(textwrap.indent("\n".join(lines), _INDENT), soft_wrap=True)


def condition_text(recent: RecentDisks, disk: DiskDocument) -> str:
    """Return what is said of a disk first: now, or in a sample or recording."""
    when = "Now: " if recent.source == "daemon" else ""
    return when + describe_condition(disk.condition, disk.load_ratio)


def sentences_of(disk: DiskDocument) -> list[str]:
    """Return what a disk did lately, and its burst credits as far as they are known.

    Of a disk that was throttled, also why it is not known who used it.
    """
    sentences = [*disk.sentences, *(each.describe() for each in disk.credits if each.is_known)]
    if disk.why_no_consumers is not None and disk.throttled_seconds and not disk.consumers:
        sentences.append(
            f"Who used the disk is not known: {disk.why_no_consumers} (docs/consumers.md)."
        )
    return sentences
