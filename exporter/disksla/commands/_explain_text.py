"""Sentences of `disksla explain` about the last minute of a disk."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import NamedTuple, get_args

from disksla.limits import Assignment, Limits, Rates, SharedLimits
from disksla.pipeline import WindowRecord
from disksla.units import format_bandwidth, format_count, format_duration
from disksla.verdict import LIMIT_KINDS, OF_MACHINE, LimitKind, ThrottleLevel, Verdict

RECENT_S = 60.0
"""Longest time that is explained."""
LEAST_SHARE = 0.02
"""Verdicts without a problem are left out below this share of that time, and limits below this
share of the throttled time."""
WHOLE_FROM_S = 10.0
"""Seconds are shown without a fraction from here on."""
LEVELS: tuple[ThrottleLevel, ...] = get_args(ThrottleLevel)


class LargerMachine(NamedTuple):
    """A machine of the same family with a higher limit."""

    name: str
    rate: float
    """IOPS, or bytes per second."""


class MachineLimit(NamedTuple):
    """The limit of the machine over a disk and others, and which machines have more."""

    shared: SharedLimits
    larger: Mapping[LimitKind, LargerMachine]
    """By `iops` and `bandwidth`; without those that no machine of the family has more of."""


def explain_minute(
    records: Iterable[WindowRecord], assignment: Assignment, machine: MachineLimit | None = None
) -> list[str]:
    """Return sentences about the last minute of a disk, problems first.

    `records` are those of this disk, in order of time.
    """
    windows = [record for record in records if record.verdict is not None]
    windows = [each for each in windows if each.monotonic_s > windows[-1].monotonic_s - RECENT_S]
    if not windows:
        return ["Nothing was measured: no two samples of this disk were without a gap."]
    period = _Period(windows)
    sentences = list(_problems(period, assignment, machine))
    sentences += _other_verdicts(period, assignment.limits, has_problems=bool(sentences))
    return sentences


def describe_machine(shared: SharedLimits) -> str:
    """Return the limits of the machine over a group of disks, in words."""
    owner = f"{shared.machine}: " if shared.machine else ""
    text = f"{owner}{_promise(shared.limits.rates)} for {shared.title}"
    burst = shared.limits.burst
    return text if burst is None else f"{text}; {_promise(burst.rates)} with burst credits"


def explain_writes(records: Iterable[WindowRecord], why_not_exact: str | None = None) -> list[str]:
    """Return a sentence on whether data writes were counted exactly, if the disk has flushes.

    `why_not_exact` is the reason why not, if there is one.
    """
    exact = [record.is_exact for record in records if record.flushes]
    if not exact:
        return []
    if any(exact):
        windows = f"{sum(map(bool, exact))} of {len(exact)} windows with flushes"
        return [f"Its data writes are counted exactly, without empty flushes, in {windows}."]
    reason = f": {why_not_exact}" if why_not_exact else ""
    sentence = (
        "The kernel counts empty flushes of this disk as writes, so that the number of data writes"
        f" is only known between two bounds. They were not counted exactly{reason}."
    )
    return [sentence]


class _Period:
    """Some windows of a disk, summed; `whole` is the period that they are a part of."""

    def __init__(self, records: list[WindowRecord], whole: "_Period | None" = None) -> None:
        self.records = records
        self.seconds = sum(record.window_s or 0.0 for record in records)
        self.requests = sum((record.reads or 0) + (record.writes or 0) for record in records)
        self.bytes = sum(
            (record.read_bytes or 0) + (record.written_bytes or 0) for record in records
        )
        self.whole_s = whole.seconds if whole is not None else self.seconds

    def with_verdict(self, verdict: Verdict) -> "_Period":
        """Return the windows with this verdict, as a part of this period."""
        return _Period([record for record in self.records if record.verdict == verdict], self)

    @property
    def duration(self) -> str:
        """How long, as the beginning of a sentence."""
        return self._part(self.seconds)

    @property
    def waiting_s(self) -> float:
        """Seconds in which requests waited for the limiter."""
        return sum(record.throttled_s or 0.0 for record in self.records)

    @property
    def waiting(self) -> str:
        """How long requests waited for the limiter, as the beginning of a sentence."""
        return self._part(self.waiting_s)

    def _part(self, seconds: float) -> str:
        return f"For {_seconds(seconds)} of the last {_seconds(self.whole_s)} s"

    @property
    def rates(self) -> str:
        """Mean IOPS and throughput."""
        iops = format_count(self.requests / self.seconds)
        return f"{iops} IOPS, {format_bandwidth(self.bytes / self.seconds)}"

    @property
    def inflight(self) -> str:
        """Mean number of requests in flight."""
        mean = sum(record.inflight or 0 for record in self.records) / len(self.records)
        return format_count(round(mean))

    @property
    def wait(self) -> str:
        """Mean time that a request waited because of throttling."""
        waited_s = sum(record.throttle_wait_s or 0.0 for record in self.records)
        return format_duration(waited_s / max(1, self.requests))


def _problems(
    period: _Period, assignment: Assignment, machine: MachineLimit | None
) -> Iterator[str]:
    limits = assignment.limits
    throttled = period.with_verdict("throttled")
    by_limit = {
        (level, limit): _Period(
            [each for each in throttled.records if (each.level, each.limit) == (level, limit)],
            period,
        )
        for level, limit in product(LEVELS, LIMIT_KINDS)
    }
    least_s = LEAST_SHARE * throttled.waiting_s
    for (level, limit), part in by_limit.items():
        if not part.records or part.waiting_s < least_s:
            continue  # a rate may be that of a limit by chance for a window or two
        if limit in OF_MACHINE:
            yield _throttled_by_machine(part, level, OF_MACHINE[limit], machine)
        else:
            yield _throttled(part, limits, level, limit)
    below = period.with_verdict("below")
    if below.records:
        yield (
            f"{below.duration} the disk gave less than promised: {below.rates}, with"
            f" {below.inflight} requests in flight; the promise is {_promise(limits.rates)}."
            " Report this to the provider, with a recording (disksla record) as evidence."
        )
    stalled = period.with_verdict("stalled")
    if stalled.records:
        yield (
            f"{stalled.duration} requests were in flight and none completed: the disk, or the"
            " storage behind it, hung. Neither a limit nor load causes that."
        )


def _throttled_by_machine(
    throttled: _Period, level: ThrottleLevel, limit: LimitKind, machine: MachineLimit | None
) -> str:
    found = f"{throttled.waiting} the disk was throttled at the limit of the machine"
    served = f"requests waited {throttled.wait} each, and the disk served {throttled.rates}"
    relief = "A larger or faster disk would not help"
    if machine is None:
        return f"{found}: {served}. {relief}."
    limits = machine.shared.limits
    allowed = f"{_owner(machine.shared)} allows {machine.shared.title}"
    if level == "burst" and limits.burst is not None:
        allowed += (
            f" {_limit(limits.burst.rates, limit)} (burst rate; without credits"
            f" {_limit(limits.rates, limit)})"
        )
    else:
        allowed += f" {_limit(limits.rates, limit)}"
    larger = machine.larger.get(limit)
    if larger is None:
        return f"{found}: {served}. {allowed}. {relief}; a larger machine may."
    rate = format_bandwidth(larger.rate) if limit == "bandwidth" else _iops(larger.rate)
    return f"{found}: {served}. {allowed}. {relief}; {larger.name} would ({rate})."


def _owner(shared: SharedLimits) -> str:
    """Return the machine as the beginning of a sentence."""
    if " " in shared.machine:
        return f"A machine with {shared.machine}"
    return shared.machine or "It"


def _throttled(throttled: _Period, limits: Limits, level: ThrottleLevel, limit: LimitKind) -> str:
    served = f"requests waited {throttled.wait} each, and the disk served {throttled.rates}"
    windows_s = [each.limiter_window_s for each in throttled.records if each.limiter_window_s]
    if windows_s:
        served += f", at intervals of {format_duration(windows_s[-1])}"
    if level == "base":
        relief = "fewer bytes" if limit == "bandwidth" else "fewer requests"
        return (
            f"{throttled.waiting} the disk was throttled at its limit of"
            f" {_limit(limits.rates, limit)} (baseline): {served}. The provider keeps its promise"
            f" of {_promise(limits.rates)}. A larger or faster disk, or {relief}, would help."
        )
    if level == "burst" and limits.burst is not None:
        return (
            f"{throttled.waiting} the disk was throttled at"
            f" {_limit(limits.burst.rates, limit)} (burst rate): {served}. This uses up burst"
            f" credits; without credits the limit is {_limit(limits.rates, limit)}."
        )
    unknown = f"{throttled.waiting} the disk was throttled at an unknown limit: {served}."
    if not limits.promise_charges:
        return f"{unknown} Configure the terms of this disk to compare this with what was sold."
    return (
        f"{unknown} The terms of this disk do not explain this rate. Either it is of another type"
        " or size than configured, or the provider counts requests in another way (a large one as"
        " several), or a limit of the machine applies that is not configured."
    )


def _other_verdicts(period: _Period, limits: Limits, *, has_problems: bool) -> Iterator[str]:
    least_s = LEAST_SHARE * period.seconds
    met, idle = period.with_verdict("met"), period.with_verdict("idle")
    unproven = period.with_verdict("unproven")
    if met.seconds > least_s:
        yield f"{met.duration} the disk gave what is promised or more: {met.rates}."
    if unproven.seconds > least_s:
        if limits.promise_charges:
            found = "the load did not test the promise"
        else:
            found = "the disk served the load, and there is no promise to compare it with"
        yield f"{unproven.duration} {found}: {unproven.rates}."
    if idle.seconds > least_s:
        yield f"{idle.duration} the disk was idle."
    if not has_problems:
        yield "If something was slow in this time, throttling of this disk was not the reason."


def _promise(rates: Rates) -> str:
    """Return all limits of the rates as text."""
    kinds: tuple[LimitKind, ...] = ("iops", "bandwidth")
    present = (limit for limit in kinds if _read_and_write(rates, limit) != (None, None))
    return " and ".join(_limit(rates, limit) for limit in present)


def _limit(rates: Rates, limit: LimitKind) -> str:
    """Return one limit as text, with a single number if reads and writes have the same."""
    read, write = _read_and_write(rates, limit)
    formatted = format_bandwidth if limit == "bandwidth" else _iops
    if read == write or write is None or read is None:
        rate = read if read is not None else write
        kind = "" if read == write else " for reads" if write is None else " for writes"
        return f"{formatted(rate or 0.0)}{kind}"
    return f"{formatted(read)} for reads and {formatted(write)} for writes"


def _read_and_write(rates: Rates, limit: LimitKind) -> tuple[float | None, float | None]:
    if limit == "bandwidth":
        return rates.read_bytes_per_second, rates.write_bytes_per_second
    return rates.read_iops, rates.write_iops


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= WHOLE_FROM_S else f"{seconds:.2g}"


def _iops(rate: float) -> str:
    return f"{format_count(rate)} IOPS"
