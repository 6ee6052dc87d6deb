"""Slow seconds: requests took longer than the terms promise, or far longer than they usually do.

No verdict reads this, and only seconds count in which nothing was throttled, below its promise or
stalled: then the time that requests took is that of the disk, and not that of a limiter.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from disksla.base.counts import total
from disksla.promise.catalogue import Limits
from disksla.verdict.interval import Interval, load_of
from disksla.verdict.throttling import LIMITED_VERDICTS, WindowVerdict

Direction = Literal["read", "write"]
FORGOTTEN_IN_S = 6 * 3600.0
"""What was usual counts less by a factor of e each time: after a day, by 55."""
KNOWN_AFTER_S = 600.0  # seconds of a kind of requests until it is known what is usual
ABOVE_USUAL = 5.0  # caches and other machines on the same storage change latency by less
ABOVE_PROMISE = 1.2
LEAST_S = 0.001  # nobody waits for less
ENOUGH_MS = 5
"""Of a second. The kernel counts whole milliseconds, so one is a fifth of this."""
SMALL_BYTES = 16 * 1024  # promises of latency are about requests of up to this size,
LOW_LOAD = 0.8  # at up to this load,
ALONE = 2.0  # and with up to this many requests in flight, on average


class Kind(NamedTuple):
    """What decides how long requests usually take."""

    direction: Direction
    is_small: bool
    depth: int
    """Binary digits of the mean number of requests in flight: 1 for one, 2 for two or three."""

    @property
    def is_small_and_alone(self) -> bool:
        """Whether requests are up to SMALL_BYTES, and one is in flight."""
        return self.is_small and self.depth == 1


class Usual(NamedTuple):
    """How long requests of a kind usually take."""

    log_s: float  # mean of the logarithms of seconds, so that a few slow seconds do not count much
    seconds: float  # by how many seconds it is known; those that are forgotten do not count
    at_s: float  # when it was updated

    @property
    def latency_s(self) -> float:
        """Time of a request."""
        return math.exp(self.log_s)

    def after(self, latency_s: float, seconds: float, now_s: float) -> "Usual":
        """Return it after some seconds in which requests took this time."""
        known_s = self.seconds * math.exp((self.at_s - now_s) / FORGOTTEN_IN_S)
        more = seconds / (known_s + seconds)
        log_s = self.log_s + more * (math.log(latency_s) - self.log_s)
        return Usual(log_s, known_s + seconds, now_s)

    def is_known(self, now_s: float) -> bool:
        """Return whether it was learned for long enough, and is not forgotten."""
        return self.seconds * math.exp((self.at_s - now_s) / FORGOTTEN_IN_S) >= KNOWN_AFTER_S


class SlowTotals(msgspec.Struct, frozen=True, gc=False):
    """How long a disk was slow, and what is usual for it."""

    above_promise_s: float = 0.0
    above_usual_s: float = 0.0  # those above the promise do not count here
    compared_s: float = 0.0  # seconds in which it was known what is promised or usual, slow or not
    reads: int = 0  # requests that were slow, in the seconds above
    writes: int = 0
    took_s: float = 0.0  # their time in I/O-seconds
    expected_s: float = 0.0  # their time in I/O-seconds, had they been as is promised or usual
    usual: tuple[tuple[Kind, Usual], ...] = ()

    def after(
        self, windows: Sequence[Interval], verdicts: Sequence[WindowVerdict], limits: Limits
    ) -> "SlowTotals":
        """Return totals after the windows of about a second, with their verdicts."""
        if any(each.throttle or each.verdict in LIMITED_VERDICTS for each in verdicts):
            return self
        whole = total(windows).without_flushes()
        taken = dict(_latencies(whole))
        if not taken:  # they took so little time together that nobody waited
            is_known = whole.requests > 0 and None not in {whole.read_ms, whole.write_ms}
            if not is_known:
                return self
            return msgspec.structs.replace(self, compared_s=self.compared_s + whole.seconds)
        promised = dict(_promised_s(taken, whole, limits))
        usual = dict(self._usual_s(taken, whole.end_s))
        above_promise = {
            kind: each_s
            for kind, each_s in promised.items()
            if taken[kind] > ABOVE_PROMISE * each_s
        }
        above_usual = {
            kind: each_s
            for kind, each_s in usual.items()
            if taken[kind] > max(LEAST_S, ABOVE_USUAL * each_s)
        }
        is_compared = promised.keys() | usual.keys() == taken.keys()
        slow = above_promise or above_usual
        numbers: Mapping[Direction, int] = {"read": whole.reads, "write": whole.writes}
        requests = {kind: numbers[kind.direction] for kind in slow}
        return SlowTotals(
            above_promise_s=self.above_promise_s + whole.seconds * bool(above_promise),
            above_usual_s=self.above_usual_s + whole.seconds * (bool(slow) and not above_promise),
            compared_s=self.compared_s + whole.seconds * is_compared,
            reads=self.reads + sum(requests[each] for each in slow if each.direction == "read"),
            writes=self.writes + sum(requests[each] for each in slow if each.direction == "write"),
            took_s=self.took_s + sum(requests[each] * taken[each] for each in slow),
            expected_s=self.expected_s + sum(requests[each] * slow[each] for each in slow),
            usual=self._learned(taken, whole),
        )

    def _usual_s(self, kinds: Iterable[Kind], now_s: float) -> Iterator[tuple[Kind, float]]:
        """Yield how long requests of these kinds usually take, where that is known."""
        usual = dict(self.usual)
        for kind in kinds:
            if kind in usual and usual[kind].is_known(now_s):
                yield kind, usual[kind].latency_s

    def _learned(
        self, taken: Mapping[Kind, float], whole: Interval
    ) -> tuple[tuple[Kind, Usual], ...]:
        """Return what is usual after a second."""
        usual = dict(self.usual)
        for kind, latency_s in taken.items():
            known = usual.get(kind, Usual(math.log(latency_s), 0.0, whole.end_s))
            usual[kind] = known.after(latency_s, whole.seconds, whole.end_s)
        return tuple(usual.items())

    def usual_latencies_s(self, now_s: float) -> dict[Direction, float]:
        """Return how long a small request usually takes alone, where that is known."""
        alone = {kind.direction: usual for kind, usual in self.usual if kind.is_small_and_alone}
        return {each: usual.latency_s for each, usual in alone.items() if usual.is_known(now_s)}


def _latencies(whole: Interval) -> Iterator[tuple[Kind, float]]:
    """Yield the kinds of requests of a second whose time is known well enough, and that time."""
    in_flight = ((whole.read_ms or 0) + (whole.write_ms or 0)) / 1000 / whole.seconds
    depth = max(1, round(in_flight)).bit_length()
    both: tuple[tuple[Direction, int, int, int | None], ...] = (
        ("read", whole.reads, whole.read_bytes, whole.read_ms),
        ("write", whole.writes, whole.written_bytes, whole.write_ms),
    )
    for direction, requests, transferred, milliseconds in both:
        if requests and milliseconds is not None and milliseconds >= ENOUGH_MS:
            is_small = transferred <= SMALL_BYTES * requests
            yield Kind(direction, is_small, depth), milliseconds / 1000 / requests


def _promised_s(
    kinds: Iterable[Kind], whole: Interval, limits: Limits
) -> Iterator[tuple[Kind, float]]:
    """Yield the latency that is promised for requests of these kinds, where it applies to them."""
    in_flight = ((whole.read_ms or 0) + (whole.write_ms or 0)) / 1000 / whole.seconds
    load = load_of(whole, limits.promise_charges) or 0.0
    if in_flight > ALONE or load > LOW_LOAD or limits.shared_by is not None:
        return  # others may load a shared storage
    for kind in kinds:
        promised_s = limits.latency_of(kind.direction)
        if promised_s is not None and kind.is_small:
            yield kind, promised_s
