"""Totals of steps: seconds by verdict and limit, compliance, and means of what was given.

The time in which the promise was tested is that of the verdicts met, below and stalled, and that
throttled at a limit of the disk. Time at a limit of the machine is no evidence about the disk, and
at an unknown limit it is not known whether the promise was kept.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from disksla.measure.prometheus import CounterName, Key, Step
from disksla.measure.report.document import GivenService, PeriodTotals
from disksla.verdict.throttling import VERDICTS

_OF_THE_DISK = ("iops", "bandwidth")
_DIGITS = 6
"""Decimals of seconds: sums of binary fractions have an error after that."""


def totals_of(steps: Iterable[Step], period_s: float) -> PeriodTotals:
    """Return the totals of the steps of a disk in a time of `period_s`."""
    sums = _sums(steps)
    throttled = _divided(sums, CounterName.THROTTLED_SECONDS)
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
        slow_seconds=_divided(sums, CounterName.SLOW_SECONDS),
        throttled_iowait_s=sums.get((CounterName.IOWAIT_SECONDS, "")),
        throttle_wait_s=sums.get((CounterName.WAIT_SECONDS, "")),
    )


def _divided(sums: Mapping[Key, float], counter: str) -> dict[str, float]:
    """Return the seconds of a counter by the label that divides it."""
    found = {label: each_s for (name, label), each_s in sums.items() if name == counter}
    return dict(sorted(found.items()))


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
