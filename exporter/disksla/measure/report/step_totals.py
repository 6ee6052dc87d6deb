"""Totals of steps, and their spans: incidents, throttled times and gaps.

The time in which the promise was tested is that of the verdicts met, below and stalled, and that
throttled at a limit of the disk. Time at a limit of the machine is no evidence about the disk, and
at an unknown limit it is not known whether the promise was kept.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median

from disksla.measure.prometheus import CounterName, Key, Step
from disksla.measure.report.document import (
    Gap,
    GivenService,
    HistoryGapReason,
    PeriodTotals,
    ThrottledSpan,
)
from disksla.verdict.throttling import VERDICTS

_OF_THE_DISK = ("iops", "bandwidth")
_DIGITS = 6
"""Decimals of seconds: sums of binary fractions have an error after that."""

BREAK_S = 600.0
"""Spans with a shorter break between them are one."""
_LEAST_GAP_S = 5.0
"""A verdict may be decided two seconds late; so much may be missing of a step without a gap."""
_LONG = 2.5
"""A step of so many usual ones is one in which samples are missing."""
_HALF = 0.5


def totals_of(steps: Iterable[Step], period_s: float) -> PeriodTotals:
    """Return the totals of the steps of a disk in a time of `period_s`."""
    sums = _sums(steps)
    throttled, slow = (
        dict(sorted((label, each_s) for (name, label), each_s in sums.items() if name == counter))
        for counter in (CounterName.THROTTLED_SECONDS, CounterName.SLOW_SECONDS)
    )
    verdict_seconds: dict[str, float] = {
        verdict: sums.get((CounterName.VERDICT_SECONDS, verdict), 0.0) for verdict in VERDICTS
    }
    assessed_s = _rounded(verdict_seconds.values())
    noncompliant_s = _rounded((verdict_seconds["below"], verdict_seconds["stalled"]))
    at_promise = (throttled.get(limit, 0.0) for limit in _OF_THE_DISK)
    proven_s = _rounded((verdict_seconds["met"], noncompliant_s, *at_promise))
    return PeriodTotals(
        period_s=period_s,
        assessed_s=assessed_s,
        unassessed_s=max(0.0, _rounded((period_s, -assessed_s))),
        proven_s=proven_s,
        noncompliant_s=noncompliant_s,
        compliance_ratio=_compliance_ratio(proven_s, noncompliant_s),
        verdict_seconds=verdict_seconds,
        throttled_seconds=throttled,
        slow_seconds=slow,
        throttled_iowait_s=sums.get((CounterName.IOWAIT_SECONDS, "")),
        throttle_wait_s=sums.get((CounterName.WAIT_SECONDS, "")),
    )


def _together(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sums of seconds by label."""
    known = list(parts)
    labels = sorted({label for part in known for label in part})
    return {label: _rounded(part.get(label, 0.0) for part in known) for label in labels}


def total_of(parts: Sequence[PeriodTotals]) -> PeriodTotals:
    """Return the totals of several disks, or times, together."""
    proven_s = _rounded(part.proven_s for part in parts)
    noncompliant_s = _rounded(part.noncompliant_s for part in parts)
    return PeriodTotals(
        period_s=_rounded(part.period_s for part in parts),
        assessed_s=_rounded(part.assessed_s for part in parts),
        unassessed_s=_rounded(part.unassessed_s for part in parts),
        proven_s=proven_s,
        noncompliant_s=noncompliant_s,
        compliance_ratio=_compliance_ratio(proven_s, noncompliant_s),
        verdict_seconds={
            verdict: _rounded(part.verdict_seconds[verdict] for part in parts)
            for verdict in VERDICTS
        },
        throttled_seconds=_together(part.throttled_seconds for part in parts),
        slow_seconds=_together(part.slow_seconds for part in parts),
        throttled_iowait_s=_known(part.throttled_iowait_s for part in parts),
        throttle_wait_s=_known(part.throttle_wait_s for part in parts),
    )


def _compliance_ratio(proven_s: float, noncompliant_s: float) -> float | None:
    return 1 - noncompliant_s / proven_s if proven_s else None


def _known(values: Iterable[float | None]) -> float | None:
    """Return the sum of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return _rounded(known) if known else None


def given_of(steps: Sequence[Step]) -> GivenService:
    """Return the means over steps: rates, queue depth by Little's law, latency and load."""
    sums = _sums(steps)

    def total(name: str) -> float:
        return sums.get((name, ""), 0.0)

    seconds = math.fsum(step.seconds for step in steps)
    reads, writes = total(CounterName.READS), total(CounterName.WRITES)
    read_bytes, written_bytes = total(CounterName.READ_BYTES), total(CounterName.WRITTEN_BYTES)
    waited_s = total(CounterName.READ_SECONDS) + total(CounterName.WRITE_SECONDS)
    windows = total(CounterName.LOAD_COUNT)
    requests = reads + writes
    return GivenService(
        over_s=_rounded((seconds,)),
        read_iops=reads / seconds,
        write_iops=writes / seconds,
        read_bytes_per_second=read_bytes / seconds,
        write_bytes_per_second=written_bytes / seconds,
        queue_depth=waited_s / seconds,
        latency_s=waited_s / requests if requests else None,
        request_bytes=(read_bytes + written_bytes) / requests if requests else None,
        load_ratio=total(CounterName.LOAD_SUM) / windows if windows else None,
    )


def _sums(steps: Iterable[Step]) -> dict[Key, float]:
    """Return the sum of the increases of each counter."""
    increases: dict[Key, list[float]] = {}
    for step in steps:
        for key, increase in step.increases.items():
            increases.setdefault(key, []).append(increase)
    return {key: _rounded(each) for key, each in increases.items()}


def _rounded(values: Iterable[float]) -> float:
    return round(math.fsum(values), _DIGITS)


def spans(steps: Sequence[Step], is_in: Callable[[Step], bool]) -> list[list[Step]]:
    """Return the steps of each span, with those of short breaks inside it."""
    found: list[list[Step]] = []
    since: list[Step] = []
    for step in steps:
        since.append(step)
        if not is_in(step):
            continue
        if found and step.start_s - found[-1][-1].end_s < BREAK_S:
            found[-1] += since
        else:
            found.append([step])
        since = []
    return found


def worst_steps(incident: Sequence[Step]) -> list[Step]:
    """Return the steps that are below or stalled for half of their time; without one, for any."""
    bad = [step for step in incident if step.noncompliant_s > 0]
    return [step for step in bad if step.noncompliant_s >= _HALF * step.seconds] or bad


def throttled_spans(steps: Sequence[Step]) -> tuple[ThrottledSpan, ...]:
    """Return the times in which a disk was throttled."""
    found = []
    for span in spans(steps, lambda step: step.is_throttled):
        start_s, end_s = span[0].start_s, span[-1].end_s
        totals = totals_of(span, end_s - start_s)
        throttled = totals.throttled_seconds, totals.throttled_iowait_s
        found.append(ThrottledSpan(start_s, end_s, *throttled))
    return tuple(found)


def gaps(steps: Sequence[Step], start_s: float, end_s: float) -> tuple[Gap, ...]:
    """Return the times between two moments that were not assessed."""
    joined: list[Gap] = []
    for gap in _gaps_of(steps, start_s, end_s):
        last = joined[-1] if joined else None
        is_next = last is not None and gap.start_timestamp_s <= last.end_timestamp_s
        if last is not None and is_next and last.reason == gap.reason:
            both_s = round(last.unassessed_s + gap.unassessed_s, 6)
            joined[-1] = Gap(last.start_timestamp_s, gap.end_timestamp_s, both_s, gap.reason)
        else:
            joined.append(gap)
    return tuple(joined)


def _gaps_of(steps: Sequence[Step], start_s: float, end_s: float) -> Iterator[Gap]:
    """Yield the gaps between steps and in each of them."""
    usual_s = median(step.seconds for step in steps) if steps else 0.0
    last_s = start_s
    for step in steps:
        if step.start_s - last_s > _LEAST_GAP_S:
            yield Gap(last_s, step.start_s, step.start_s - last_s, "no samples")
        last_s, unassessed_s = step.end_s, round(step.seconds - step.assessed_s, 6)
        if unassessed_s > _LEAST_GAP_S:
            reason: HistoryGapReason = "daemon restarted" if step.is_reset else "not sampled"
            if step.seconds > _LONG * usual_s and not step.is_reset:
                reason = "no samples"
            yield Gap(step.start_s, last_s, unassessed_s, reason)
    if end_s - last_s > _LONG * usual_s:
        yield Gap(last_s, end_s, end_s - last_s, "no samples")
