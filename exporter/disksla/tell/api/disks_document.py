"""What the daemon knows of all disks, as JSON: for `disksla explain` and `disksla top`."""

import math
import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.text import escape_bytes, percent_encoded
from disksla.base.units import format_duration, format_percent, format_size
from disksla.promise.catalogue import Rates, TermsSource
from disksla.state.history import COLUMNS, Slot, columns_of, total_slot
from disksla.state.pipeline import ArraySnapshot, DiskSnapshot, GroupSnapshot, Snapshot, Traffic
from disksla.tell.explanation import (
    RECENT_S,
    Condition,
    ConditionSeconds,
    ConsumerShare,
    HistoryView,
    PeriodSeconds,
    Shown,
    array_name,
    describe_machine,
    explain_array,
    seconds_of,
)
from disksla.verdict.credits import CreditLevel
from disksla.verdict.throttling import LIMITED_VERDICTS, VERDICTS, LimitKind, Verdict

MOST_DISKS = 100
"""The disks of a page at most, so that one request costs little."""
_KEYS = ("disk", "limit", "after")


class DisksQuery(NamedTuple):
    """What is asked for. Names are those of the kernel, with escaped bytes."""

    names: frozenset[str] = frozenset()
    """Only these disks; empty for all."""
    limit: int | None = MOST_DISKS
    """The most disks of the page; None for no limit."""
    after: str | None = None
    """The last disk of the page before; None for the first page."""

    def choose(self, disks: Sequence[DiskSnapshot]) -> tuple[list[DiskSnapshot], str | None]:
        """Return the disks of the page, and the name of the last one if more follow."""
        named = [(escape_bytes(disk.disk.name), disk) for disk in disks]
        chosen = sorted((each for each in named if self._has(each[0])), key=itemgetter(0))
        page = chosen[: self.limit]
        following = page[-1][0] if len(page) < len(chosen) else None
        return [disk for _, disk in page], following

    def _has(self, name: str) -> bool:
        is_named = not self.names or name in self.names
        return is_named and (self.after is None or name > self.after)


ALL_DISKS = DisksQuery(limit=None)


def disks_query(parameters: Mapping[str, Sequence[str]]) -> DisksQuery:
    """Return what the parameters of a URL ask for. Raise DiskslaError if they are invalid."""
    unknown = parameters.keys() - set(_KEYS)
    if unknown:
        raise DiskslaError(f"found {min(unknown)[:20]!r}; expected {', '.join(_KEYS)}")
    limit = "".join(parameters.get("limit", (str(MOST_DISKS),))[-1:])
    if not re.fullmatch("[0-9]{1,3}", limit) or not 1 <= int(limit) <= MOST_DISKS:
        raise DiskslaError(f"limit: found {limit[:20]!r}; expected 1 to {MOST_DISKS}")
    after = [*parameters.get("after", ()), None][0]
    return DisksQuery(frozenset(parameters.get("disk", ())), int(limit), after)


def target_of(path: str, names: Sequence[str], after: str | None) -> str:
    """Return the target of a request for these disks, or for all, after one."""
    pairs = [("disk", name) for name in names] + ([] if after is None else [("after", after)])
    query = "&".join(f"{key}={percent_encoded(value)}" for key, value in pairs)
    return f"{path}?{query}" if query else path


OK, BAD_REQUEST, UNAUTHORIZED, NOT_FOUND = 200, 400, 401, 404
TOO_MANY, UNAVAILABLE = 429, 503
REFUSALS = {
    BAD_REQUEST: "it requires HTTPS",
    UNAUTHORIZED: "it requires a password",
    NOT_FOUND: "there is no such page",
    TOO_MANY: "too many requests: its rate limit is used up",
    UNAVAILABLE: "too many scrapes or requests at once",
}
"""By the status of the answer."""


_HARDLY = 1.1
"""Bounds that differ by less than this factor say the same."""


class CreditsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Burst credits of one resource, as shares of the capacity."""

    resource: str
    ratio: float
    lower_ratio: float
    upper_ratio: float
    exhaustion_s: float | None
    """Seconds until they are used up at the present load; None while they do not decrease."""
    refill_s: float | None = None
    """Seconds until they are full without requests; None if that is not known."""
    lasting_ratio: float | None = None
    """Share of the present load at which they would not decrease; None without a load."""
    is_shared: bool = False
    """Other clients use them, too, so that only the upper bound is known."""

    @property
    def is_known(self) -> bool:
        """Whether anything is known of them; not so at the start."""
        return self.lower_ratio > 0 or self.upper_ratio < 1

    def describe(self) -> str:
        """Return how many are left, for how long, and after which time they are full."""
        share, lower, upper = map(format_percent, (self.ratio, self.lower_ratio, self.upper_ratio))
        name, known = f"Burst credits ({self.resource})", share
        if lower != upper:
            known += f", between {lower} and {upper}"
        if self.is_shared:
            name, known = f"{name}, shared by all clients", f"at most {upper}"
        parts = [f"{name}: {known}"]
        if self.exhaustion_s is not None:
            empty = f"empty in {format_duration(self.exhaustion_s)}"
            parts.append(f"{empty}{self._range(self.exhaustion_s)} at this load")
        if self.refill_s and not self.is_shared:
            parts.append(f"full again after {format_duration(self.refill_s)} at rest")
        if self.exhaustion_s is not None and self.lasting_ratio is not None:
            parts.append(f"{format_percent(round(self.lasting_ratio, 2))} of this load would last")
        return "; ".join(parts) + "."

    def _range(self, exhaustion_s: float) -> str:
        """Return the time until empty by both bounds; '' if it hardly differs."""
        least, most = self.lower_ratio, self.upper_ratio
        if self.is_shared or not self.ratio or most <= _HARDLY * least:
            return ""
        shortest, longest = (
            format_duration(exhaustion_s * each / self.ratio) for each in (least, most)
        )
        return f", between {shortest} and {longest}," if least else f", at most {longest},"


class DiskDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One disk: now, and in a period, which is the last five minutes if the daemon says it."""

    device: str
    size_bytes: int
    mount_points: tuple[str, ...]
    claim: str
    """Claim of Kubernetes with its namespace; empty without one."""
    terms: str
    terms_source: TermsSource
    said_by: str | None
    """Who says what the disk is; None for the configuration, and if nothing does."""
    as_of_timestamp_s: float | None = msgspec.field(name="as_of")
    """When it was true, in seconds since 1970; None as above."""
    limits: Rates
    verdict: Verdict | None
    """On the last window; None after a gap."""
    limit: LimitKind | None
    """Where it is throttled now."""
    present: Traffic
    load_ratio: float | None
    """Mean load, 1.0 is at the limit: of the last second if the daemon says it."""
    inflight: int | None
    latency_s: float | None
    """Mean time of a request in the last five seconds; None if none completed."""
    credits: tuple[CreditsDocument, ...]
    sentences: tuple[str, ...]
    """What the period means, problems first."""
    verdict_seconds: Mapping[Verdict, float]
    """In the period, by each verdict."""
    throttled_seconds: Mapping[LimitKind, float]
    slow_s: float
    """In the period, how long it was slow; these seconds are among those of the verdicts."""
    condition: Condition | None
    """What is said of it first: of the last five seconds if the daemon says it; None if nothing
    is known."""
    hour_sentences: tuple[str, ...] = ()
    """What the last hour means, problems first; empty in the first minute."""
    events: tuple[str, ...] = ()
    """When problems began and ended in the last hour, the latest first."""
    consumers: tuple[ConsumerShare, ...] = ()
    """Who used it in the period, while it was throttled or, if it was not, while it was watched;
    the greatest first. Empty where that is not known."""
    why_no_consumers: str | None = None
    """Why it is not known; None while it is, or before that is known."""

    def __post_init__(self) -> None:
        """Raise ValueError unless each verdict has its seconds: another version has others."""
        missing = [verdict for verdict in VERDICTS if verdict not in self.verdict_seconds]
        if missing:
            raise ValueError(f"verdict_seconds: found no {missing[0]}")

    @property
    def size_text(self) -> str:
        """The size for people; of a mount, which has none, what it is."""
        return format_size(self.size_bytes) if self.size_bytes else "NFS mount"

    @property
    def bad_s(self) -> float:
        """How long the disk was slow, throttled, below its promise or stalled."""
        return self.slow_s + sum(self.verdict_seconds[verdict] for verdict in LIMITED_VERDICTS)

    def conditions(self) -> ConditionSeconds:
        """Return how long each condition held in the period."""
        return PeriodSeconds(
            self.verdict_seconds, self.throttled_seconds, self.slow_s
        ).conditions()


class MachineLimitDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of the machine over a disk and others."""

    limits: str
    """In words."""
    load_ratio: float | None
    """Mean load of its disks together in the last second, 1.0 is at the limit."""


class ChartsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The last five minutes in columns of five seconds, the oldest first; None is not known."""

    verdicts: tuple[Shown | None, ...]
    """The worst, or slow, that applied for a tenth of the time."""
    iops: tuple[float | None, ...]
    bytes_per_second: tuple[float | None, ...]
    latency_s: tuple[float | None, ...]
    queue_depth: tuple[float | None, ...]
    credits_ratio: tuple[float | None, ...]
    """Burst credits left, of the resource with the least."""


class LiveDiskDocument(DiskDocument, frozen=True, kw_only=True):
    """One disk, with what is shown live: the last second, the last minute and charts."""

    machine_limits: tuple[MachineLimitDocument, ...]
    await_s: float | None
    """Mean time of a request in the last second, as iostat's await; None if none completed."""
    queue_depth: float | None
    """Mean number of requests in flight in the last second, as iostat's aqu-sz."""
    last_minute: tuple[Shown | None, ...]
    """The worst verdict of each second that applied for a tenth of it, or slow, the oldest
    first."""
    charts: ChartsDocument


class ArrayDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Several disks that are used as one device: md, LVM, and what is on them."""

    device: str
    name: str
    """Where it is mounted, and its names."""
    disks: tuple[str, ...]
    """The disks at the bottom."""
    limits: Rates | None
    """What it is promised; None if that is not known."""
    binding: Mapping[str, tuple[str, ...]]
    """The disks or limits of the machine that are reached first, by the field of `limits`."""
    sentences: tuple[str, ...]


class DisksDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Monitored disks of a host: all of them, or a page of them."""

    host: str
    version: str
    timestamp_s: float
    """Wall-clock time of the last sample, in seconds since 1970."""
    disks: tuple[LiveDiskDocument, ...]
    """In the order of their names."""
    arrays: tuple[ArrayDocument, ...] = ()
    """The arrays on several disks, of which one at least is among these."""
    next: str | None = None
    """The last disk of this page, if there are more: they are `?after=` it."""


DISKS_PATH = "/api/v1/disks"
_LATENCY_SLOTS = 5


def disks_document(
    snapshot: Snapshot, past: HistoryView, host: str, version: str, query: DisksQuery = ALL_DISKS
) -> DisksDocument:
    """Return the document of the disks that are asked for."""
    disks, following = query.choose(snapshot.disks)
    names = {disk.disk.name for disk in disks}
    return DisksDocument(
        host=host,
        version=version,
        timestamp_s=snapshot.timestamp_s,
        disks=tuple(_disk(disk, snapshot.groups, past) for disk in disks),
        arrays=tuple(
            _array(array, past)
            for array in snapshot.arrays
            if not names.isdisjoint(array.array.disks)
        ),
        next=following,
    )


def _array(snapshot: ArraySnapshot, past: HistoryView) -> ArrayDocument:
    array, promise = snapshot.array, snapshot.promise
    return ArrayDocument(
        device=escape_bytes(array.device.name),
        name=escape_bytes(array_name(snapshot)),
        disks=tuple(map(escape_bytes, array.disks)),
        limits=None if promise is None else promise.rates,
        binding={} if promise is None else promise.binding,
        sentences=tuple(map(escape_bytes, explain_array(snapshot, past))),
    )


def _disk(
    snapshot: DiskSnapshot, groups: Sequence[GroupSnapshot], past: HistoryView
) -> LiveDiskDocument:
    slots = past.seconds(snapshot)
    history = past.of(snapshot)
    minutes = [] if history is None else history.with_limits(history.minutes())
    seconds = seconds_of(total_slot(slots))
    disk, assignment, at_s = snapshot.disk, snapshot.assignment, past.history.at_s or 0.0
    last = [slot for slot in slots[-1:] if slot.end_s == at_s]
    return LiveDiskDocument(
        device=escape_bytes(disk.name),
        size_bytes=disk.size_bytes,
        mount_points=tuple(map(escape_bytes, disk.mount_points)),
        claim=escape_bytes(disk.full_claim),
        terms=escape_bytes(assignment.terms),
        terms_source=assignment.source,
        said_by=escape_bytes(assignment.origin) or None,
        as_of_timestamp_s=assignment.as_of_timestamp_s,
        limits=assignment.limits.rates,
        verdict=snapshot.verdict,
        limit=snapshot.throttle.limit if snapshot.throttle is not None else None,
        present=snapshot.present,
        load_ratio=snapshot.present_load,
        inflight=snapshot.inflight,
        latency_s=total_slot(slots[-_LATENCY_SLOTS:]).latency_s,
        credits=tuple(map(credits_document, snapshot.credits)),
        sentences=tuple(past.explain_lately(snapshot, slots)),
        hour_sentences=tuple(past.explain(snapshot, minutes)) if minutes else (),
        events=tuple(past.events(snapshot)),
        verdict_seconds={each: seconds.verdicts.get(each, 0.0) for each in VERDICTS},
        throttled_seconds={limit: each_s for limit, each_s in seconds.throttled.items() if each_s},
        slow_s=seconds.slow,
        condition=past.condition(snapshot),
        consumers=tuple(past.who(snapshot, slots)),
        why_no_consumers=snapshot.why_no_consumers,
        machine_limits=tuple(_machine(group) for group in groups if disk.name in group.devices),
        await_s=last[0].latency_s if last else None,
        queue_depth=last[0].queue_depth if last else None,
        last_minute=_verdicts(columns_of(slots[-COLUMNS:], at_s, 1.0)),
        charts=_charts(columns_of(slots, at_s, RECENT_S / COLUMNS)),
    )


def _machine(group: GroupSnapshot) -> MachineLimitDocument:
    text = escape_bytes(describe_machine(group.shared))
    return MachineLimitDocument(limits=text, load_ratio=group.present_load)


def _verdicts(columns: Sequence[Slot | None]) -> tuple[Shown | None, ...]:
    """Return the worst verdict of each column; one without any has that of the next.

    That is because a verdict may be decided two seconds late. At the end, it is not known yet.
    """
    verdicts: list[Shown | None] = []
    following: Shown | None = None
    for slot in reversed(columns):
        following = None if slot is None else seconds_of(slot).worst_shown or following
        verdicts.append(following)
    return tuple(reversed(verdicts))


def _charts(columns: Sequence[Slot | None]) -> ChartsDocument:
    return ChartsDocument(
        verdicts=_verdicts(columns),
        iops=tuple(slot and slot.least_iops for slot in columns),
        bytes_per_second=tuple(slot and slot.bytes_per_second for slot in columns),
        latency_s=tuple(slot and slot.latency_s for slot in columns),
        queue_depth=tuple(slot and slot.queue_depth for slot in columns),
        credits_ratio=tuple(slot and slot.credits_ratio for slot in columns),
    )


def credits_document(level: CreditLevel) -> CreditsDocument:
    """Return what is known of the credits of one resource."""
    return CreditsDocument(
        resource=level.resource,
        ratio=level.ratio(level.estimate_credits),
        lower_ratio=level.ratio(level.lower_credits),
        upper_ratio=level.ratio(level.upper_credits),
        exhaustion_s=_finite(level.exhaustion_s),
        refill_s=_finite(level.refill_s),
        lasting_ratio=level.lasting_ratio,
        is_shared=level.is_shared,
    )


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None
