"""Why a disk is not probed now: it is busy with better things, or nothing could be learned."""

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from disksla.config import ProbeEntry
from disksla.credits import CreditLevel
from disksla.disks import PROBE_MAX_QUEUE_DEPTH, activity_between
from disksla.pipeline import DiskSnapshot, Skip
from disksla.probes.plan import MOST_SHARE, ProbePlan
from disksla.units import format_count, format_size
from disksla.verdict import VERDICTS

OBSERVATION_S = 3.0
OBSERVATION_TICKS = 3
"""How long a disk is looked at before it is probed, at least."""
LEAST_SEEN_SHARE = 0.5
"""Of that time that has to be judged, or too little is known."""

_TROUBLES: Mapping[Literal["stalled", "throttled", "below"], str] = {
    "stalled": "requests are in flight and none completes",
    "throttled": "it is held at its limit",
    "below": "it gives less than was promised",
}


class Observation(msgspec.Struct, frozen=True):
    """A disk, looked at twice, shortly one after the other; None where it was not there."""

    before: DiskSnapshot | None
    now: DiskSnapshot | None
    elapsed_s: float
    is_suspended: bool = False
    """The kernel has suspended the device to save power."""


def observation_s(tick_s: float, least_s: float = OBSERVATION_S) -> float:
    """Give how long to look before a probe, where samples are taken so often."""
    return max(least_s, OBSERVATION_TICKS * tick_s)


def skip_reasons(plan: ProbePlan, sight: Observation, timestamp_s: float) -> tuple[Skip, ...]:
    """Give everything that speaks against a probe now, the most telling first; nothing if none.

    `timestamp_s` is Unix time, by which days are told apart.
    """
    before, now = sight.before, sight.now
    if before is None or now is None or not now.disk.size_bytes:
        return (Skip("device_missing", f"there is no disk {plan.device} that is watched"),)
    if sight.is_suspended:
        return (Skip("suspended", "the kernel has suspended it, and a probe would wake it"),)
    return tuple(_reasons(plan, before, now, sight.elapsed_s, timestamp_s))


def _reasons(
    plan: ProbePlan, before: DiskSnapshot, now: DiskSnapshot, elapsed_s: float, timestamp_s: float
) -> Iterator[Skip]:
    seconds = {
        verdict: after_s - before_s
        for verdict, before_s, after_s in zip(
            VERDICTS, before.verdict_totals.seconds, now.verdict_totals.seconds, strict=True
        )
    }
    seen_s = sum(seconds.values())
    if seen_s < LEAST_SEEN_SHARE * elapsed_s:
        yield Skip(
            "not_sampled", f"only {seen_s:.1f} of the last {elapsed_s:.1f} s could be judged"
        )
    for reason, words in _TROUBLES.items():
        if seconds[reason] > 0:
            yield Skip(reason, f"{words}, {seconds[reason]:.1f} of the last {elapsed_s:.1f} s")
    yield from _busy(plan.entry, before, now, seen_s)
    yield from _low_credits(plan.entry, now.credits)
    if not plan.rate_iops:
        words = f"one request per second is more than {MOST_SHARE:.0%} of what is promised"
        yield Skip("limit_too_low", words)
    if plan.entry.uses_file and not now.disk.mount_points:
        yield Skip("no_file_system", "there is no mounted file system for a file")
    totals = now.probes.get(plan.entry.kind)
    spent_bytes = totals.spent_bytes(timestamp_s) if totals is not None else 0
    if spent_bytes + plan.most_bytes > plan.entry.daily_bytes:
        of = f"{format_size(spent_bytes)} of {format_size(plan.entry.daily_bytes)}"
        yield Skip("daily", f"probes have used {of} today")


def _busy(
    entry: ProbeEntry, before: DiskSnapshot, now: DiskSnapshot, seen_s: float
) -> Iterator[Skip]:
    """Check the load, or the queue depth of a disk without limits."""
    if before.counters is None or now.counters is None or seen_s <= 0:
        return
    charges = now.assignment.limits.promise_charges
    activity = activity_between(before.counters, now.counters, seen_s, charges)
    if activity.load is None:
        if activity.queue_depth > PROBE_MAX_QUEUE_DEPTH:
            words = f"{format_count(activity.queue_depth)} requests are in flight on average"
            yield Skip(
                "busy", f"{words}, and nothing is promised that would say whether it is much"
            )
        return
    load = max(activity.load, now.present_load or 0.0)
    if load > entry.busy_share:
        yield Skip("busy", f"{load:.0%} of the promise is in use, over {entry.busy_share:.0%}")


def _low_credits(entry: ProbeEntry, levels: tuple[CreditLevel, ...]) -> Iterator[Skip]:
    """Leave a disk alone whose credits are needed.

    A lower bound above the threshold proves that there are enough, an upper bound below it that
    there are not. In between, and above all when nothing is known yet (from 0 to the capacity),
    the estimate decides: to wait for a proof would mean never to probe a disk that is never quite
    at rest, and a probe of a hundredth of the promise drains less than comes back.
    """
    for level in levels:
        least = entry.credits_share * level.capacity_credits
        if level.lower_credits < least and level.estimate_credits < least:
            share = level.estimate_credits / level.capacity_credits
            yield Skip(
                "credits",
                f"about {share:.1%} of its burst credits ({level.resource}) are left, between"
                f" {level.lower_credits / level.capacity_credits:.1%} and"
                f" {level.upper_credits / level.capacity_credits:.1%}",
            )
