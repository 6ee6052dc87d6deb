"""What consumers used of one disk: sums for metrics, and the last hour for sentences."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple

import msgspec

from disksla.kernel.consumers.consumption import NOT_NAMED, OTHER, Consumption, OwnLimit

Who = tuple[str, str]  # consumer, and program or an empty text
MOST_SERIES = 5  # consumers with series of their own on a disk; beside them are NOT_NAMED
MOST_NAMES = 100  # consumers with series of their own at a time, on all disks
FORGOTTEN_S = 3600.0
"""A consumer that was silent for so long loses its series, if others need the room."""
LEAST_SHARE = 0.05  # of a minute; consumers with less get no series
_SILENT_S = 120.0
"""After this time, in which Prometheus has read it, the series of a consumer may be given to
another."""
_MINUTE_S = 60.0
_RECENT_SLOT_S, _RECENT_SLOTS = 10.0, 31
_HOUR_SLOT_S, _HOUR_SLOTS = 300.0, 13
_MOST_IN_SLOT = 8
_MOST_HELD = 4


class Usage(NamedTuple):
    """What was used of a disk. None where it is not known."""

    requests: float | None = None
    bytes: float | None = None

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of what is known."""
        return Usage(_plus(self.requests, other.requests), _plus(self.bytes, other.bytes))


def _plus(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other


Usages = Mapping[Who, Usage]


def total_usages(many: Iterable[Usages]) -> Usages:
    """Return the sums by consumer."""
    total: dict[Who, Usage] = {}
    for who, use in chain.from_iterable(uses.items() for uses in many):
        total[who] = total[who].plus(use) if who in total else use
    return total


class Watched(msgspec.Struct, frozen=True, gc=False):
    """What consumers used of a disk in a slot of time."""

    end_s: float  # monotonic time
    seconds: float  # how long the disk was watched in it
    throttled_s: float  # how long of that it was throttled
    throttled: Usages  # what was used while it was throttled, and otherwise
    otherwise: Usages

    def plus(self, other: "Watched") -> "Watched":
        """Return both slots as one; consumers beyond the greatest are together."""
        return Watched(
            max(self.end_s, other.end_s),
            self.seconds + other.seconds,
            self.throttled_s + other.throttled_s,
            _greatest(total_usages((self.throttled, other.throttled))),
            _greatest(total_usages((self.otherwise, other.otherwise))),
        )


def _greatest(uses: Usages) -> Usages:
    """Return the greatest consumers, and the rest as OTHER."""
    named = [who for who in uses if who[0] not in NOT_NAMED]
    if len(named) <= _MOST_IN_SLOT:
        return uses
    total = Usage(*(_sum(use[index] for use in uses.values()) for index in (0, 1)))
    named.sort(key=lambda who: -_largest_share(uses[who], total))
    rest = set(named[_MOST_IN_SLOT:])
    return total_usages({(OTHER, "") if who in rest else who: use} for who, use in uses.items())


def _sum(values: Iterable[float | None]) -> float:
    return sum(value for value in values if value is not None)


def _largest_share(use: Usage, total: Usage) -> float:
    """Return the share of the requests or of the bytes, whichever is larger."""
    return max(
        part / whole if part and whole else 0.0 for part, whole in zip(use, total, strict=True)
    )


class ConsumerSums(msgspec.Struct, frozen=True, gc=False):
    """A sum for each of a few consumers, as counters publish them."""

    sums: Mapping[Who, float] = {}
    used_s: Mapping[Who, float] = {}
    """When each of the named consumers was seen last, in monotonic time."""

    def plus(
        self, amounts: Mapping[Who, float], now_s: float, great: frozenset[Who]
    ) -> "ConsumerSums":
        """Add amounts; those of `great` consumers have a series, if there is room."""
        sums, used_s = dict(self.sums), dict(self.used_s)
        for who, amount in amounts.items():
            if who[0] not in NOT_NAMED:
                if who not in used_s and who in great:
                    _make_room(sums, used_s, now_s, (who[0], ""))
                if who in used_s or (who in great and len(used_s) < MOST_SERIES):
                    used_s[who] = now_s
                else:
                    who = (OTHER, "")  # noqa: PLW2901
            sums[who] = sums.get(who, 0.0) + amount
        return ConsumerSums(sums, used_s)

    def without_silent(self, since_s: float) -> "ConsumerSums":
        """Remove the series of consumers that were seen last before a monotonic time."""
        silent = {who for who, at_s in self.used_s.items() if at_s < since_s}
        return ConsumerSums(
            {who: amount for who, amount in self.sums.items() if who not in silent},
            {who: at_s for who, at_s in self.used_s.items() if who not in silent},
        )


def _make_room(
    sums: dict[Who, float], used_s: dict[Who, float], now_s: float, without_program: Who
) -> None:
    """Remove the series that was not used for longest, if all are taken and that is long ago.

    That of the same consumer without a program goes first: its program is known now.
    """
    oldest = min(used_s, key=used_s.__getitem__, default=None)
    if oldest is None or len(used_s) < MOST_SERIES:
        return
    if without_program in used_s:
        del sums[without_program], used_s[without_program]
    elif now_s - used_s[oldest] > _SILENT_S:
        del sums[oldest], used_s[oldest]


class Held(msgspec.Struct, frozen=True, gc=False):
    """A group that was held at its own limit."""

    own: OwnLimit
    last_s: float  # monotonic time


class ConsumerTotals(msgspec.Struct, frozen=True, gc=False):
    """What consumers used of one disk since it was first watched."""

    watched_s: float = 0.0
    watched_until_s: float = 0.0  # monotonic end of the last reading
    requests: ConsumerSums = ConsumerSums()
    bytes: ConsumerSums = ConsumerSums()
    recent: tuple[Watched, ...] = ()
    """The last five minutes, by slots of ten seconds; the oldest first."""
    hour: tuple[Watched, ...] = ()  # the last hour, by slots of five minutes
    held: tuple[Held, ...] = ()
    """Groups that were held at their own limit while the disk was not throttled."""

    def plus(
        self,
        span_s: tuple[float, float],
        found: Iterable[Consumption],
        *,
        is_throttled: bool,
        may_be_named: frozenset[Who] | None,
    ) -> "ConsumerTotals":
        """Add a reading of a span of monotonic time.

        Two sources may have read the same time, which counts once. `may_be_named` are the
        consumers that may have series; None for all.
        """
        begin_s, end_s = span_s
        seconds = max(0.0, end_s - max(begin_s, self.watched_until_s))
        uses = total_usages(
            {(each.consumer, each.program): Usage(each.requests, each.bytes)} for each in found
        )
        slot = Watched(end_s, seconds, 0.0, {}, _greatest(uses))
        if is_throttled:
            slot = Watched(end_s, seconds, seconds, slot.otherwise, {})
        recent = _with_slot(self.recent, slot, _RECENT_SLOT_S, _RECENT_SLOTS)
        great = _great(recent, end_s)
        if may_be_named is not None:
            great &= may_be_named
        requests = {who: use.requests for who, use in uses.items() if use.requests is not None}
        used_bytes = {who: use.bytes for who, use in uses.items() if use.bytes is not None}
        return ConsumerTotals(
            watched_s=self.watched_s + seconds,
            watched_until_s=max(self.watched_until_s, end_s),
            requests=self.requests.plus(requests, end_s, great),
            bytes=self.bytes.plus(used_bytes, end_s, great),
            recent=recent,
            hour=_with_slot(self.hour, slot, _HOUR_SLOT_S, _HOUR_SLOTS),
            held=self.held,
        )

    def with_own_limit(self, own: OwnLimit, now_s: float) -> "ConsumerTotals":
        """Add a group that is held at its own limit now."""
        others = [each for each in self.held if each.own != own]
        held = (*others, Held(own, now_s))[-_MOST_HELD:]
        return msgspec.structs.replace(self, held=held)

    def used(self, device: str) -> tuple[Consumption, ...]:
        """Return what consumers used of the disk so far, as metrics count it."""
        requests, transferred = self.requests.sums, self.bytes.sums
        return tuple(
            Consumption(device, *who, requests.get(who), transferred.get(who))
            for who in sorted({*requests, *transferred})
        )

    def without_silent(self, since_s: float) -> "ConsumerTotals":
        """Remove the series of consumers that were seen last before a monotonic time."""
        requests, transferred = (
            each.without_silent(since_s) for each in (self.requests, self.bytes)
        )
        return msgspec.structs.replace(self, requests=requests, bytes=transferred)

    @property
    def used_s(self) -> Mapping[Who, float]:
        """When each consumer that has series was seen last, in monotonic time."""
        requests, transferred = self.requests.used_s, self.bytes.used_s
        both = {who: max(at_s, requests.get(who, at_s)) for who, at_s in transferred.items()}
        return {**requests, **both}

    def slots_since(self, since_s: float) -> list[Watched]:
        """Return what was used since a monotonic time, by slots of which some begin before it."""
        is_all = len(self.recent) < _RECENT_SLOTS
        is_enough = is_all or self.recent[0].end_s - _RECENT_SLOT_S <= since_s
        slots = self.recent if is_enough else self.hour
        return [slot for slot in slots if slot.end_s > since_s]


NO_CONSUMERS = ConsumerTotals()


def _with_slot(
    slots: tuple[Watched, ...], slot: Watched, slot_s: float, most: int
) -> tuple[Watched, ...]:
    """Return slots with a reading, which belongs to the last if it is of the same time."""
    if slots and int(slots[-1].end_s / slot_s) == int(slot.end_s / slot_s):
        return (*slots[:-1], slots[-1].plus(slot))
    return (*slots[1 - most :], slot)


def _great(slots: Iterable[Watched], now_s: float) -> frozenset[Who]:
    """Return the consumers that used LEAST_SHARE of the disk in the last minute."""
    lately = [slot for slot in slots if slot.end_s > now_s - _MINUTE_S]
    uses = total_usages(chain.from_iterable((each.throttled, each.otherwise) for each in lately))
    total = Usage(*(_sum(use[index] for use in uses.values()) for index in (0, 1)))
    return frozenset(who for who, use in uses.items() if _largest_share(use, total) >= LEAST_SHARE)
