"""What disks did lately: as the daemon says, in a sample, or in a recording; and its text."""

import argparse
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
from rich.text import Text

from disksla import VERSION
from disksla.base.console import SafeConsole, progress_bar
from disksla.base.text import escape_bytes
from disksla.base.units import format_duration
from disksla.commands._context import prepare_sampler
from disksla.commands._daemon import disks_of_daemon
from disksla.promise.catalogue import TERMS_TITLES, SharedLimits
from disksla.promise.configuration import Configuration
from disksla.state.history import History
from disksla.state.pipeline import Snapshot, State, Tick
from disksla.tell.api import ArrayDocument, DiskDocument, disks_document
from disksla.tell.explanation import (
    RECENT_S,
    HistoryView,
    describe_condition,
    explain_writes,
    headline,
    present_condition,
    watched_period,
    without_terms,
)
from disksla.tell.explanation.machine_limit import limits_over, machine_limit

SAMPLED_S = 5.0
_INDENT = "  "


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
    arrays: Sequence[ArrayDocument] = ()
    """The arrays on several of the disks."""
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
        period=watched_period(disk.conditions() for disk in document.disks),
        seconds=RECENT_S,
        timestamp_s=document.timestamp_s,
        disks=disks,
        source="daemon",
        arrays=document.arrays,
        host=document.host,
        version=document.version,
    )


def from_sample(arguments: argparse.Namespace, configuration: Configuration) -> RecentDisks:
    """Sample all disks for a while, with a progress bar. Raise DiskslaError."""
    seconds = arguments.duration_s or SAMPLED_S
    sampler = prepare_sampler(arguments, configuration=configuration)
    followed = FollowedStates((sampler.state,))
    with progress_bar(seconds) as progress:

        def on_tick_done(tick: Tick) -> None:
            followed.add(sampler.state)
            progress("sampling", tick.clocks.monotonic_s - begin_s)

        begin_s = time.monotonic()
        sampler.on_tick_done = on_tick_done
        sampler.run_for(seconds)
    return _of_states("sample", followed, seconds, sampler.why_not_exact)


class FollowedStates:
    """States that follow each other, of which only the last is kept, and the history."""

    def __init__(self, states: Iterable[State]) -> None:
        """Follow these, of which there is one at least."""
        self.history = History()
        self._first_s: float | None = None
        for state in states:
            self.add(state)

    def add(self, state: State) -> None:
        """Follow another one."""
        self.history = self.history.after(state)
        self.last = state
        if self._first_s is None and state.clocks is not None:
            self._first_s = state.clocks.monotonic_s

    @property
    def seconds(self) -> float:
        """Time between the first sample and the last."""
        if self._first_s is None or self.last.clocks is None:
            return 0.0
        return self.last.clocks.monotonic_s - self._first_s


def from_recording(followed: FollowedStates) -> RecentDisks:
    """Return what the disks did at the end of a recording."""
    return _of_states("recording", followed, followed.seconds, None)


def _of_states(
    source: RecentSource, followed: FollowedStates, seconds: float, why_not_exact: str | None
) -> RecentDisks:
    """Return what the disks did in states that follow each other, as the daemon says it.

    `why_not_exact` is why data writes were not counted exactly, if the reason is known.
    """
    last = followed.last
    seconds = min(RECENT_S, seconds)
    past = HistoryView(
        followed.history.ended(last), lambda device, name: machine_limit(last, device, name)
    )
    snapshot = Snapshot(last)
    by_device = {escape_bytes(each.disk.name): each for each in snapshot.disks}
    document = disks_document(snapshot, past, host="", version=VERSION)
    disks = {
        each.device: msgspec.structs.replace(
            each,
            condition=present_condition(each.conditions(), by_device[each.device].credits),
            load_ratio=past.load(by_device[each.device]),
        )
        for each in document.disks
    }
    return RecentDisks(
        period=f"the last {format_duration(seconds)}",
        seconds=seconds,
        timestamp_s=snapshot.timestamp_s,
        disks=disks,
        source=source,
        arrays=document.arrays,
        machine={name: limits_over(last, disk.disk.name) for name, disk in by_device.items()},
        writes={
            name: explain_writes(past.seconds(disk), why_not_exact)
            for name, disk in by_device.items()
        },
    )


def print_recent(recent: RecentDisks, order: Sequence[str]) -> None:
    """Print what each disk did: those with problems first, then in the `order` of names."""
    console = SafeConsole()
    if not recent.disks:
        console.print("No disk is monitored; disksla disks shows why.")
        return
    places = {name: place for place, name in enumerate(order)}
    disks = sorted(
        recent.disks.values(), key=lambda disk: (-disk.bad_s, places.get(disk.device, len(places)))
    )
    if step := without_terms(disk.terms_source for disk in disks):
        console.print(f"{step}\n")
    conditions = {disk.device: disk.conditions() for disk in disks}
    console.print(headline(conditions, recent.period), style="bold")
    for disk in disks:
        facts = [disk.size_text, TERMS_TITLES.get(disk.terms, disk.terms)]
        mounted = [f"mounted at {each}" for each in disk.mount_points]
        facts += [f"claim {disk.claim}"] if disk.claim else mounted
        console.print()
        console.print(Text.assemble((disk.device, "bold"), ", ", ", ".join(facts)))
        console.print(Text(f"{_INDENT}{condition_text(recent, disk)}", "bold"))
        _print_sentences(console, sentences_of(disk))
    for array in recent.arrays:
        console.print()
        console.print(Text(array.name, "bold"))
        _print_sentences(console, array.sentences)


def _print_sentences(console: SafeConsole, sentences: Iterable[str]) -> None:
    for sentence in sentences:
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
