"""What happened to a disk, in sentences that somebody who runs a database understands."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import get_args

from disksla.limits import Assignment, Limits, Rates
from disksla.pipeline import WindowRecord
from disksla.units import format_bandwidth, format_count, format_duration
from disksla.verdict import LIMIT_KINDS, LimitKind, ThrottleLevel, Verdict

RECENT_S = 60.0
"""So much is told of."""
LEAST_SHARE = 0.02
"""Of less of that time nothing is told, unless it was trouble."""
WHOLE_FROM_S = 10.0
"""So many seconds and more are told without a fraction."""
LEVELS: tuple[ThrottleLevel, ...] = get_args(ThrottleLevel)


def explain_minute(rows: Iterable[WindowRecord], assignment: Assignment) -> list[str]:
    """Tell the last minute of one disk, what matters first; `rows` are its own, in order."""
    windows = [row for row in rows if row.verdict is not None]
    windows = [row for row in windows if row.monotonic_s > windows[-1].monotonic_s - RECENT_S]
    if not windows:
        return ["Nothing is known of this disk yet: it was not seen twice without a gap."]
    whole = _Passage(windows)
    sentences = list(_problems(whole, assignment))
    sentences += _quiet(whole, assignment.limits, troubled=bool(sentences))
    return sentences


class _Passage:
    """Some of the windows, put together."""

    def __init__(self, rows: list[WindowRecord], of: "_Passage | None" = None) -> None:
        self.rows = rows
        self.seconds = sum(row.window_s or 0.0 for row in rows)
        self.requests = sum((row.reads or 0) + (row.writes or 0) for row in rows)
        self.bytes = sum((row.read_bytes or 0) + (row.written_bytes or 0) for row in rows)
        self.whole_s = of.seconds if of is not None else self.seconds

    def judged(self, verdict: Verdict) -> "_Passage":
        """Give the windows with a verdict."""
        return _Passage([row for row in self.rows if row.verdict == verdict], self)

    @property
    def share(self) -> str:
        """Say for how long of the time."""
        return f"For {_whole(self.seconds)} of the last {_whole(self.whole_s)} s"

    @property
    def pace(self) -> str:
        """Say how fast the disk was."""
        iops = format_count(self.requests / self.seconds)
        return f"{iops} IOPS, {format_bandwidth(self.bytes / self.seconds)}"

    @property
    def depth(self) -> str:
        """Say how many requests were in flight."""
        mean = sum(row.inflight or 0 for row in self.rows) / len(self.rows)
        return format_count(round(mean))

    @property
    def wait(self) -> str:
        """Say how long each request waited for the limiter."""
        waited_s = sum(row.throttle_wait_s or 0.0 for row in self.rows)
        return format_duration(waited_s / max(1, self.requests))


def _problems(whole: _Passage, assignment: Assignment) -> Iterator[str]:
    limits = assignment.limits
    throttled = whole.judged("throttled")
    for level, limit in product(LEVELS, LIMIT_KINDS):
        rows = [row for row in throttled.rows if (row.level, row.limit) == (level, limit)]
        if rows:
            yield _held(_Passage(rows, whole), limits, level, limit)
    below = whole.judged("below")
    if below.rows:
        yield (
            f"{below.share} the disk gave less than was promised: {below.pace}, with"
            f" {below.depth} requests in flight. The promise is {_promise(limits.rates)}."
            " That is for the provider to answer; a recording (disksla record) is evidence."
        )
    stalled = whole.judged("stalled")
    if stalled.rows:
        yield (
            f"{stalled.share} requests were in flight and none completed: the disk, or what is"
            " below it, hung. A limit does not do that, and neither does load."
        )


def _held(held: _Passage, limits: Limits, level: ThrottleLevel, limit: LimitKind) -> str:
    relief = "fewer bytes" if limit == "bandwidth" else "fewer requests"
    because = f"requests waited {held.wait} each because of that. It gave {held.pace}"
    if level == "base":
        return (
            f"{held.share} the disk was held at its limit of {_named(limits.rates, limit)} (base"
            f" rate): {because}; the promise is {_promise(limits.rates)}. A larger or faster"
            f" disk or {relief} would help; the provider keeps its promise."
        )
    if level == "burst" and limits.burst is not None:
        return (
            f"{held.share} the disk was held at {_named(limits.burst.rates, limit)} (burst rate):"
            f" {because}. That costs credits: once they are used up, it is held at"
            f" {_named(limits.rates, limit)}."
        )
    return (
        f"{held.share} the disk was held at a limit that nobody told us of: {because}. Whether"
        " that is what was promised can be said once the configuration names its terms."
    )


def _quiet(whole: _Passage, limits: Limits, *, troubled: bool) -> Iterator[str]:
    met, unproven, idle = whole.judged("met"), whole.judged("unproven"), whole.judged("idle")
    if met.seconds > LEAST_SHARE * whole.seconds:
        yield (f"{met.share} it did what is promised or more, and was not held back: {met.pace}.")
    if unproven.seconds > LEAST_SHARE * whole.seconds:
        if limits.promise_charges:
            said = "what was asked of it did not put its promise to the test"
        else:
            said = "it served what was asked; nothing is promised to hold that against"
        yield f"{unproven.share} {said}: {unproven.pace}."
    if idle.seconds > LEAST_SHARE * whole.seconds:
        yield f"{idle.share} it had nothing to do."
    if not troubled:
        yield "If something was slow then, this disk was not held at a limit."


def _promise(rates: Rates) -> str:
    limits: tuple[LimitKind, ...] = ("iops", "bandwidth")
    there = (limit for limit in limits if _pair(rates, limit) != (None, None))
    return " and ".join(_named(rates, limit) for limit in there)


def _named(rates: Rates, limit: LimitKind) -> str:
    """Say a limit: once if it is the same for reads and writes."""
    read, write = _pair(rates, limit)
    shown = format_bandwidth if limit == "bandwidth" else _iops
    if read == write or write is None or read is None:
        rate = read if read is not None else write
        kind = "" if read == write else " for reads" if write is None else " for writes"
        return f"{shown(rate or 0.0)}{kind}"
    return f"{shown(read)} for reads and {shown(write)} for writes"


def _pair(rates: Rates, limit: LimitKind) -> tuple[float | None, float | None]:
    if limit == "bandwidth":
        return rates.read_bytes_per_second, rates.write_bytes_per_second
    return rates.read_iops, rates.write_iops


def _whole(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= WHOLE_FROM_S else format_count(seconds)


def _iops(rate: float) -> str:
    return f"{format_count(rate)} IOPS"
