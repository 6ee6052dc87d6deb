"""The assessment of one window: of a disk, or of a group of disks under a limit of the machine."""

import msgspec

from disksla.kernel.procfs import CloseSample
from disksla.promise.catalogue import Limits
from disksla.state.pipeline.totals import AssessedTime, DiskTotals
from disksla.state.provider_count import NONE_WAITING, ProviderState, decided_by_count
from disksla.verdict.credits import CreditAccount, open_account
from disksla.verdict.interval import Interval
from disksla.verdict.throttling import (
    DetectorState,
    MachineWindow,
    Sign,
    Throttle,
    WindowVerdict,
    after_gap,
    classify,
)


class TickContext(msgspec.Struct, frozen=True, gc=False):
    """What all disks have in common at one tick."""

    now_s: float  # monotonic time
    boottime_s: float
    """Time since boot, suspended time included: credits refill while a machine is suspended."""
    last_boottime_s: float  # `boottime_s` at the sample before
    elapsed_s: float  # time since the sample before; 0 if it is a gap
    assessed_before: AssessedTime  # time assessed up to the sample before
    assessed_after: AssessedTime  # time assessed up to and including this sample
    tolerance_ratio: float  # share by which a rate may miss a limit and still be at the limit
    signs: frozenset[Sign]  # the signs of a limiter that are looked for
    unknown_machines: frozenset[str] = frozenset()
    """Providers whose machines have limits, of which this machine's are not known."""


class Assessed(msgspec.Struct, frozen=True, gc=False):
    """What a disk and a group have in common: what is known after a sample."""

    is_listed: bool = False
    """Whether it was sampled: /proc/diskstats had a line for it that could be parsed."""
    totals: DiskTotals = DiskTotals()
    detector: DetectorState = DetectorState()
    window_verdict: WindowVerdict | None = None
    """Verdict on the last second that is decided; None after a gap."""
    decided: tuple[WindowVerdict, ...] = ()
    """Verdicts that were decided at the last sample: on undecided windows, and on the last."""
    by_signs: tuple[WindowVerdict, ...] = ()
    """Those of the signs at the last sample: the same, unless the provider counts, as its count
    decides, up to a second later."""
    credits: CreditAccount | None = None  # burst credits; None without a burst


def assess(
    before: Assessed,
    limits: Limits,
    interval: Interval,
    context: TickContext,
    close: tuple[CloseSample, ...] = (),
    fewest: Interval | None = None,
    machine: MachineWindow = MachineWindow(),  # noqa: B008 -- frozen
    provider: ProviderState | None = None,
) -> dict[str, object]:
    """Return the fields of `Assessed` after an interval, which is a gap if it has no duration.

    Of a gap, requests and bytes are counted, without verdict, load and rate. `close` are the close
    samples within it, `fewest` is the interval with the least number of data writes, if that is
    not certain.
    """
    detector = before.detector
    if not interval.seconds:
        detector = after_gap(detector)
    window_verdict = None
    decided: tuple[WindowVerdict, ...] = ()
    by_signs, waiting = decided, NONE_WAITING
    account = before.credits or open_account(limits, context.boottime_s)
    if interval.seconds:
        detector, by_signs = classify(
            detector,
            window=interval,
            close=close,
            limits=limits,
            tolerance=context.tolerance_ratio,
            machine=machine,
            signs=context.signs,
        )
        decided = by_signs
        if provider is not None:
            undecided = before.totals.undecided
            windows = (*undecided.windows, interval)
            waiting, decided = decided_by_count(
                undecided.waiting, windows, by_signs, provider, context.now_s
            )
        window_verdict = _present(decided) if decided else before.window_verdict
        if account is not None:
            seen = _seen(before.window_verdict, decided)
            account = account.after_window(limits, interval, seen, context.boottime_s, fewest)
            throttle = _throttle_of_both(before.window_verdict, window_verdict)
            if throttle is not None:
                account = account.at_baseline(limits.buckets, throttle)
    elif account is not None:
        account = credits_at_last_sample(before, limits, context) or account
        account = account.after_gap(
            limits, interval, context.boottime_s, interval.inflight, fewest
        )
    totals = before.totals
    if not interval.seconds:
        totals = totals_at_last_sample(before, limits, context)
    elif totals.complete_to.windows != context.assessed_before.windows and before.is_listed:
        totals = totals.with_idle_until(context.assessed_before, context.now_s)
    totals = totals.plus(interval, limits, decided, context.assessed_after, waiting)
    return {
        "is_listed": True,
        "totals": totals,
        "detector": detector,
        "window_verdict": window_verdict,
        "decided": decided,
        "by_signs": by_signs,
        "credits": account,
    }


def assess_gap(
    before: Assessed, limits: Limits, context: TickContext, inflight: int
) -> dict[str, object]:
    """Return the fields of `Assessed` after a time in which any I/O may have been done."""
    account = credits_at_last_sample(before, limits, context)
    if account is None:
        account = open_account(limits, context.boottime_s)
    else:
        account = account.after_gap(limits, None, context.boottime_s, inflight)
    totals = totals_at_last_sample(before, limits, context)
    totals = msgspec.structs.replace(totals, complete_to=context.assessed_after)
    return {
        "is_listed": True,
        "totals": totals,
        "detector": after_gap(before.detector),
        "window_verdict": None,
        "decided": (),
        "by_signs": (),
        "credits": account,
    }


def totals_at_last_sample(before: Assessed, limits: Limits, context: TickContext) -> DiskTotals:
    """Return the totals before a gap, as they were published at the last sample.

    What was listed and not updated at it was idle.
    """
    totals = before.totals.with_undecided_unproven(limits)
    if not before.is_listed:
        return totals
    return totals.with_idle_until(context.assessed_before, context.now_s)


def credits_at(before: Assessed, limits: Limits, boottime_s: float) -> CreditAccount | None:
    """Return the credits at a time after the last update; None without a burst.

    What is listed was idle since the last update. What is not may have done anything.
    """
    if before.credits is None or limits.burst is None:
        return None
    if before.is_listed:
        return before.credits.after_idle(limits.burst.buckets, boottime_s)
    return before.credits.after_gap(limits, None, boottime_s)


def credits_at_last_sample(
    before: Assessed, limits: Limits, context: TickContext
) -> CreditAccount | None:
    """Return the credits at the last sample; at an earlier update if it was not listed."""
    if not before.is_listed:
        return before.credits
    return credits_at(before, limits, context.last_boottime_s)


def _present(decided: tuple[WindowVerdict, ...]) -> WindowVerdict:
    """Return the verdict of those on the windows of a second that holds for the disk now."""
    last = decided[-1]
    if last.verdict == "idle":
        return last
    # Where a limiter has long windows, requests do not wait in all of ours.
    throttled = [verdict for verdict in decided if verdict.throttle is not None]
    return throttled[-1] if throttled else last


def _throttle_of_both(before: WindowVerdict | None, now: WindowVerdict | None) -> Throttle | None:
    """Return the limit of a second, if it was that of the second before, too."""
    if before is None or now is None or before.throttle != now.throttle:
        return None
    return now.throttle


def _seen(before: WindowVerdict | None, decided: tuple[WindowVerdict, ...]) -> Throttle | None:
    """Return the limit whose limiter is seen, if it was in the second before, too."""
    last = decided[-1] if decided else None
    is_seen = before is not None and before.is_seen and last is not None and last.is_seen
    return _throttle_of_both(before, last) if is_seen else None
