"""What a load asked for, from the counters of scrapes: between two of them, as a range.

A step has what completed between two scrapes; the second of them has the highest rate of a window
of 100 ms within the last PEAK_S. When it completed is not known, so its rate may have been as high
as that; without that rate, or after a longer time, all may have completed in one window.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import astuple

from disksla.base.counts import total
from disksla.base.errors import DiskslaError
from disksla.measure.advice.closed_loop import (
    ClosedLoop,
    ThrottledTime,
    closed_loop_of,
    steady_iops,
)
from disksla.measure.advice.demand import Demand, DemandWindow
from disksla.measure.means import Mean
from disksla.measure.prometheus import DATA_WRITES, FLUSHES, CounterName, Step
from disksla.promise.catalogue import (
    NO_LIMITS,
    Limits,
    Provision,
    Rates,
    Terms,
    Work,
    derive_limits,
    provision_bounds,
)
from disksla.verdict.throttling import LIMITED_VERDICTS, MACHINE_LIMITS

PEAK_S = 60.0
"""Seconds for which the highest rates are those of a scrape."""
PEAKS = (
    "disksla_peak_read_iops",
    "disksla_peak_write_iops",
    "disksla_peak_read_bytes_per_second",
    "disksla_peak_written_bytes_per_second",
)
SCRAPED = (
    *(CounterName.READS, CounterName.WRITES, CounterName.READ_BYTES, CounterName.WRITTEN_BYTES),
    *(CounterName.VERDICT_SECONDS, CounterName.THROTTLED_SECONDS, CounterName.WAIT_SECONDS),
    *(FLUSHES, DATA_WRITES, *PEAKS),
)
"""Metrics of a disk that say what its load asked for."""
_WINDOW_S = 0.1
"""Shortest time of a rate."""
_THROUGHOUT = 0.9
"""Share of a step in which a disk is throttled throughout."""


class _Served(NamedTuple):
    """What one disk, or several together, did between two scrapes."""

    seconds: float
    least: Work
    """With the fewest data writes."""
    most: Work
    throttled_s: float
    limited_s: float
    """Throttled, below its promise or stalled."""
    wait_s: float
    """I/O-seconds that requests took while it was throttled; zero if that is not known, or a limit
    of the machine throttled it as well."""
    peak: Work | None
    """Highest rates per second; None if they are not known, or not those of all of the time."""


def demand_of_scrapes(*disks: Sequence[Step], limits: Limits = NO_LIMITS) -> Demand:
    """Return what was asked of disks with these limits together between their scrapes.

    Disks of one daemon have scrapes at the same times. Time in which counters were reset, or that
    has them at its end only, is left out.
    """
    served: defaultdict[tuple[float, float], list[_Served]] = defaultdict(list)
    for steps in disks:
        for step in steps:
            if not step.is_reset and (CounterName.READS, "") in step.increases:
                served[step.start_s, step.end_s].append(_served(step))
    together = [_beside(served[times]) for times in sorted(served)]
    demand = Demand(tuple(window for each in together for window in _windows(each)))
    return demand._replace(loop=_loop(together, steady_iops(demand.work, limits)))


def demand_of_means(
    means: Sequence[Mean], at_limit: Sequence[bool], limits: Limits = NO_LIMITS
) -> Demand:
    """Return what was asked of a disk, or of disks together, in intervals that others recorded.

    In an interval at a limit, the load may have asked for more. That requests waited for a limiter
    is not known, but if they did, they were a closed loop by what is known of them.
    """
    windows: list[DemandWindow] = []
    throttled = []
    for mean, is_at in zip(means, at_limit, strict=True):
        whole = mean.interval
        least, most = _least_and_most(whole, whole.flushes)
        seconds = whole.seconds
        limited_s = seconds if is_at else 0.0
        served = _Served(seconds, least, most, 0.0, limited_s, wait_s=0.0, peak=None)
        windows += _windows(served)
        if is_at:
            requests = least.requests, most.requests
            throttled.append(ThrottledTime(seconds, *requests, mean.took_s))
    demand = Demand(tuple(windows), limited="at its limit")
    limit_iops = steady_iops(demand.work, limits)
    return demand._replace(loop=closed_loop_of(throttled, demand.seconds, limit_iops))


def _loop(steps: Sequence[_Served], limit_iops: float) -> ClosedLoop | None:
    """Return the closed loop that was throttled, if it was one.

    What was served while the disk was throttled is known of steps that were throttled throughout.
    """
    throttled = [
        ThrottledTime(step.seconds, step.least.requests, step.most.requests, step.wait_s)
        for step in steps
        if step.wait_s and step.throttled_s >= _THROUGHOUT * step.seconds
    ]
    return closed_loop_of(throttled, sum(step.seconds for step in steps), limit_iops)


def _served(step: Step) -> _Served:
    limited = [step.of(CounterName.VERDICT_SECONDS, verdict) for verdict in LIMITED_VERDICTS]
    limited_s = min(step.seconds, sum(limited))
    throttled_s = step.of(CounterName.VERDICT_SECONDS, "throttled")
    by_machine_s = [
        step.of(CounterName.THROTTLED_SECONDS, limit) for limit in MACHINE_LIMITS.values()
    ]
    peak = [step.gauges[name] for name in PEAKS if name in step.gauges]
    is_known = len(peak) == len(PEAKS) and step.seconds <= PEAK_S
    least, most = _work(step)
    return _Served(
        seconds=step.seconds,
        least=least,
        most=most,
        throttled_s=min(limited_s, throttled_s),
        limited_s=limited_s,
        wait_s=0.0 if any(by_machine_s) else step.of(CounterName.WAIT_SECONDS),
        peak=Work(*peak) if is_known else None,
    )


def _work(step: Step) -> tuple[Work, Work]:
    """Return what completed in a step, with the fewest and the most data writes."""
    is_exact = (DATA_WRITES, "") in step.increases
    whole = Work(
        reads=step.of(CounterName.READS),
        writes=step.of(DATA_WRITES if is_exact else CounterName.WRITES),
        read_bytes=step.of(CounterName.READ_BYTES),
        written_bytes=step.of(CounterName.WRITTEN_BYTES),
    )
    return _least_and_most(whole, 0.0 if is_exact else step.of(FLUSHES))


def _least_and_most(whole: Work, flushes: float) -> tuple[Work, Work]:
    """Return requests with the fewest and the most data writes.

    Flushes are counted before the writes that they follow, and merged, so that half of the writes
    is certain.
    """
    writes = whole.writes
    fewest = min(max(0.0, writes - flushes), writes / 2) if flushes else writes
    return (
        Work(whole.reads, fewest, whole.read_bytes, whole.written_bytes),
        Work(whole.reads, writes, whole.read_bytes, whole.written_bytes),
    )


def _beside(steps: Sequence[_Served]) -> _Served:
    """Return what several disks did in the same time.

    When within it each of them was throttled is not known: at least one was for the longest of
    these times, and perhaps one after the other was limited.
    """
    peaks = [step.peak for step in steps if step.peak is not None]
    return _Served(
        seconds=steps[0].seconds,
        least=total(step.least for step in steps),
        most=total(step.most for step in steps),
        throttled_s=max(step.throttled_s for step in steps),
        limited_s=min(steps[0].seconds, sum(step.limited_s for step in steps)),
        wait_s=sum(step.wait_s for step in steps),
        peak=total(peaks) if len(peaks) == len(steps) else None,
    )


def _windows(step: _Served) -> Iterator[DemandWindow]:
    """Yield the time that was limited, and the rest. Both may have all that completed."""
    least, most = step.least, step.most
    requests = most.requests
    if step.limited_s:
        share = step.limited_s / step.seconds
        part = step.limited_s, least * share, most * share, step.throttled_s
        yield DemandWindow(
            *part, is_limited=True, requests=requests * share, most_requests=math.inf
        )
    rest_s = step.seconds - step.limited_s
    if rest_s:
        share = rest_s / step.seconds
        busy_s = _busy_s(most, step.peak, rest_s)
        yield DemandWindow(
            rest_s,
            least * share,
            most,
            0.0,
            is_limited=False,
            requests=requests,
            most_requests=requests,
            burst_times=rest_s / busy_s,
        )


def _busy_s(work: Work, peak: Work | None, longest_s: float) -> float:
    """Return the least time in which work arrived, at the highest rates.

    These are of requests that completed; in a window, one more of them may have arrived.
    """
    if peak is None:
        return min(_WINDOW_S, longest_s)
    requests = work.requests
    needed_s: list[float] = [
        amount / (rate + amount / requests / _WINDOW_S)
        for amount, rate in zip(astuple(work), astuple(peak), strict=True)
        if amount
    ]
    return min(max([_WINDOW_S, *needed_s]), longest_s)


_ROUNDING = 1e-6
"""Servers differ in how many digits they store."""


def provision_by_limits(terms: Terms, size_bytes: int, published: Rates) -> Provision | None:
    """Return what makes the limits of a disk those that were published; None if nothing does."""
    return next(
        (
            provision
            for provision in _provisions(terms, size_bytes, published)
            if _are_equal(_rates(terms, size_bytes, provision), published)
        ),
        None,
    )


def _provisions(terms: Terms, size_bytes: int, published: Rates) -> Iterator[Provision]:
    """Yield what may have been chosen: nothing, one option, or provisioned values.

    What is provisioned is the limit, or what the limit has beyond that of a disk without it.
    """
    yield Provision()
    for name, option in terms.options.items():
        for value in option.values:
            yield Provision(options={name: value})
    bounds = provision_bounds(terms, size_bytes)
    iops = published.read_iops if bounds.iops else None
    bytes_per_second = published.read_bytes_per_second if bounds.bytes_per_second else None
    yield Provision(iops, bytes_per_second)
    yield Provision(iops)
    plain = _rates(terms, size_bytes, Provision()).read_iops
    if iops is not None and plain is not None:
        yield Provision(iops - plain)


def _rates(terms: Terms, size_bytes: int, provision: Provision) -> Rates:
    """Return the limits of a disk; none if it is not sold like this."""
    try:
        return derive_limits(terms, size_bytes, provision).rates
    except DiskslaError:  # a value must be chosen, or the disk is too small for an option
        return Rates()


def _are_equal(rates: Rates, others: Rates) -> bool:
    """Return whether there are limits, and all are the same."""
    pairs = zip(astuple(rates), astuple(others), strict=True)
    return rates != Rates() and all(
        math.isclose(rate, other, rel_tol=_ROUNDING)
        if rate is not None and other is not None
        else rate is other
        for rate, other in pairs
    )
