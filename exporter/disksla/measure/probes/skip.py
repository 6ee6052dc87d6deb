"""Reasons to skip a probe: the disk is busy, throttled, low on credits, or cannot be measured."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from disksla.base.units import format_count, format_size
from disksla.kernel.procfs import SECTOR_BYTES, difference, to_counters
from disksla.measure.probes.probe_plan import MOST_SHARE, ProbePlan
from disksla.promise.catalogue import Work
from disksla.promise.configuration import ProbeEntry
from disksla.state.pipeline import DiskSnapshot, Skip
from disksla.tell.explanation import SHOWN_TEXT
from disksla.verdict.credits import CreditLevel
from disksla.verdict.throttling import VERDICTS

OBSERVATION_S = 3.0
OBSERVATION_TICKS = 3
"""A disk is observed for at least so long, in seconds and in ticks, before it is probed."""
MIN_SAMPLED_SHARE = 0.5
"""Share of that time that must have a verdict."""
MAX_QUEUE_DEPTH = 1.0
"""Queue depth above which a disk without limits is not probed. A probe keeps one request in
flight; above this it would measure how long that waits for the requests of other programs."""

_BLOCKING_VERDICTS: tuple[Literal["stalled", "throttled", "below"], ...] = (
    "stalled", "throttled", "below",
)  # fmt: skip


class SnapshotPair(msgspec.Struct, frozen=True):
    """Two snapshots of a disk, some seconds apart; None if it did not exist."""

    before: DiskSnapshot | None
    now: DiskSnapshot | None
    elapsed_s: float
    is_suspended: bool = False
    """Whether the kernel has suspended the device to save power."""


def observation_s(tick_s: float, min_s: float = OBSERVATION_S) -> float:
    """Return how long to observe a disk that is sampled every `tick_s`."""
    return max(min_s, OBSERVATION_TICKS * tick_s)


def skip_reasons(
    plan: ProbePlan, observation: SnapshotPair, timestamp_s: float
) -> tuple[Skip, ...]:
    """Return all reasons to skip the probe now, the most important first; empty if none.

    `timestamp_s` is Unix time; it selects the day whose budget applies.
    """
    before, now = observation.before, observation.now
    if before is None or now is None or not now.disk.size_bytes:
        return (Skip("device_missing", f"{plan.device} is missing or not monitored"),)
    if observation.is_suspended:
        return (Skip("suspended", "the kernel suspended the device; a probe would resume it"),)
    return tuple(_reasons(plan, before, now, observation.elapsed_s, timestamp_s))


def _reasons(
    plan: ProbePlan, before: DiskSnapshot, now: DiskSnapshot, elapsed_s: float, timestamp_s: float
) -> Iterator[Skip]:
    seconds = {
        verdict: after_s - before_s
        for verdict, before_s, after_s in zip(
            VERDICTS, before.verdict_totals.seconds, now.verdict_totals.seconds, strict=True
        )
    }
    sampled_s = sum(seconds.values())
    if sampled_s < MIN_SAMPLED_SHARE * elapsed_s:
        yield Skip("not_sampled", f"only {_part(sampled_s, elapsed_s)} were sampled")
    for reason in _BLOCKING_VERDICTS:
        if seconds[reason] > 0:
            did = SHOWN_TEXT[reason].did
            yield Skip(reason, f"the disk {did} for {_part(seconds[reason], elapsed_s)}")
    yield from _busy(plan.entry, before, now, elapsed_s)
    yield from _low_credits(plan.entry, now.credits)
    if not plan.rate_iops:
        yield Skip("limit_too_low", f"1 IOPS is more than {MOST_SHARE:.0%} of the limit")
    if plan.entry.uses_file and not now.disk.mount_points:
        yield Skip("no_file_system", "the probe needs a file, and no file system is mounted")
    totals = now.probes.get(plan.entry.kind)
    spent_bytes = totals.spent_bytes(timestamp_s) if totals is not None else 0
    if spent_bytes + plan.most_bytes > plan.entry.daily_bytes:
        budget = f"{format_size(spent_bytes)} of {format_size(plan.entry.daily_bytes)}"
        yield Skip("daily", f"the budget of the day is used up: {budget}")


def _part(seconds: float, elapsed_s: float) -> str:
    return f"{seconds:.1f} of the last {elapsed_s:.1f} s"


def _busy(
    entry: ProbeEntry, before: DiskSnapshot, now: DiskSnapshot, elapsed_s: float
) -> Iterator[Skip]:
    """Check the load, or the queue depth of a disk without limits."""
    if before.counters is None or now.counters is None or elapsed_s <= 0:
        return
    rise = to_counters(difference(now.counters, before.counters))
    work = Work(
        rise.reads or 0,
        rise.writes or 0,
        (rise.read_sectors or 0) * SECTOR_BYTES,
        (rise.written_sectors or 0) * SECTOR_BYTES,
    )
    load = work.load(now.assignment.limits.promise_charges, elapsed_s)
    if load is None:
        queue_depth = ((rise.read_ms or 0) + (rise.write_ms or 0)) / 1000 / elapsed_s
        if queue_depth > MAX_QUEUE_DEPTH:
            yield Skip(
                "busy",
                f"the queue depth is {format_count(queue_depth)}; at most"
                f" {format_count(MAX_QUEUE_DEPTH)} is allowed on a disk without limits",
            )
        return
    load = max(load, now.present_load or 0.0)
    if load > entry.busy_share:
        allowed = f"at most {entry.busy_share:.0%} is allowed"
        yield Skip("busy", f"the load is {load:.0%} of the limit; {allowed}")


def _low_credits(entry: ProbeEntry, levels: tuple[CreditLevel, ...]) -> Iterator[Skip]:
    """Check the burst credits.

    A lower bound above the threshold proves that there are enough, an upper bound below it that
    there are too few. In between, and while nothing is known (bounds 0 and capacity), the estimate
    decides. To wait for a proof would mean never to probe a disk that is never quite idle, and a
    probe at 1 % of the limit uses fewer credits than the disk regains.
    """
    for level in levels:
        threshold = entry.credits_share * level.capacity_credits
        if level.lower_credits < threshold and level.estimate_credits < threshold:
            share = level.estimate_credits / level.capacity_credits
            yield Skip(
                "credits",
                f"about {share:.1%} of the burst credits ({level.resource}) are left, between"
                f" {level.lower_credits / level.capacity_credits:.1%} and"
                f" {level.upper_credits / level.capacity_credits:.1%}; at least"
                f" {entry.credits_share:.1%} are required",
            )
