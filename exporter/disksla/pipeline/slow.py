"""Slow seconds: requests took longer than the terms promise, or far longer than they usually do.

No verdict reads this, and only seconds count in which nothing was throttled, below its promise or
stalled: then the time that requests took is that of the disk, and not that of a limiter.
"""

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Literal, NamedTuple

import msgspec

from disksla.interval import Interval, load_of
from disksla.limits import Limits
from disksla.verdict import LIMITED_VERDICTS, WindowVerdict

Direction = Literal["read", "write"]
FORGOTTEN_IN_S = 6 * 3600.0
"""What was usual counts less by a factor of e each time: after a day, by 55."""
KNOWN_AFTER_S = 600.0
"""Seconds of a kind of requests until it is known what is usual."""
ABOVE_USUAL = 5.0
"""Caches and other machines on the same storage change latency by less."""
ABOVE_PROMISE = 1.2
LEAST_S = 0.001
"""Nobody waits for less."""
ENOUGH_MS = 5
"""Of a second. The kernel counts whole milliseconds, so one is a fifth of this."""
SMALL_BYTES = 16 * 1024
"""Promises of latency are about requests of up to this size,"""
LOW_LOAD = 0.8
"""at up to this load,"""
ALONE = 2.0
"""and with up to this many requests in flight, on average."""


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

    log_s: float
    """Mean of the logarithms of seconds, so that a few slow seconds do not count much."""
    seconds: float
    """By how many seconds it is known; those that are forgotten do not count."""
    at_s: float
    """When it was updated."""

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
    above_usual_s: float = 0.0
    """Those above the promise do not count here."""
    usual: tuple[tuple[Kind, Usual], ...] = ()

    def after(
        self, windows: Sequence[Interval], verdicts: Sequence[WindowVerdict], limits: Limits
    ) -> "SlowTotals":
        """Return totals after the windows of about a second, with their verdicts."""
        if any(each.throttle or each.verdict in LIMITED_VERDICTS for each in verdicts):
            return self
        whole = reduce(Interval.plus, windows).without_flushes()
        taken = dict(_latencies(whole))
        if not taken:
            return self
        usual = dict(self.usual)
        is_above_promise = any(
            _is_above_promise(kind, latency_s, whole, limits) for kind, latency_s in taken.items()
        )
        is_above_usual = any(
            kind in usual
            and usual[kind].is_known(whole.end_s)
            and latency_s > max(LEAST_S, ABOVE_USUAL * usual[kind].latency_s)
            for kind, latency_s in taken.items()
        )
        for kind, latency_s in taken.items():
            known = usual.get(kind, Usual(math.log(latency_s), 0.0, whole.end_s))
            usual[kind] = known.after(latency_s, whole.seconds, whole.end_s)
        return SlowTotals(
            above_promise_s=self.above_promise_s + whole.seconds * is_above_promise,
            above_usual_s=self.above_usual_s
            + whole.seconds * (is_above_usual and not is_above_promise),
            usual=tuple(usual.items()),
        )

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


def _is_above_promise(kind: Kind, latency_s: float, whole: Interval, limits: Limits) -> bool:
    """Return whether requests to which a promised latency applies took longer."""
    promised_s = limits.latency_s
    if kind.direction == "write" and limits.write_latency_s is not None:
        promised_s = limits.write_latency_s
    if promised_s is None or not kind.is_small:
        return False
    in_flight = ((whole.read_ms or 0) + (whole.write_ms or 0)) / 1000 / whole.seconds
    load = load_of(whole, limits.promise_charges) or 0.0
    is_asked_for = in_flight <= ALONE and load <= LOW_LOAD
    return is_asked_for and latency_s > ABOVE_PROMISE * promised_s
