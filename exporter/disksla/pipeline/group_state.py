"""State of a group of disks that share limits of the machine, and its update by one sample."""

from collections.abc import Mapping, Sequence
from functools import reduce

import msgspec

from disksla.credits import CreditAccount
from disksla.limits import SharedLimits
from disksla.pipeline.assessment import TickContext, assess, assess_gap, credits_at
from disksla.pipeline.disk_state import DiskState, Sample
from disksla.pipeline.totals import DiskTotals
from disksla.verdict import (
    DetectorState,
    Interval,
    SharedThrottle,
    WindowVerdict,
    after_gap,
    shared_throttle,
)


class GroupState(msgspec.Struct, frozen=True, gc=False):
    """Everything known of one group. What its disks do in the same time counts as one disk's."""

    shared: SharedLimits
    devices: tuple[str, ...]
    """The monitored disks in it, by kernel name."""
    inflight: int = 0
    """Requests in flight at the last sample."""
    totals: DiskTotals = DiskTotals()
    detector: DetectorState = DetectorState()
    window_verdict: WindowVerdict | None = None
    decided: tuple[WindowVerdict, ...] = ()
    credits: CreditAccount | None = None
    """Burst credits of the machine; None if its limits have no burst."""
    is_listed: bool = True

    def credits_at(self, boottime_s: float) -> CreditAccount | None:
        """Return the credits at a time after the last update; None without a burst."""
        return credits_at(self, self.shared.limits, boottime_s)


def update_group(group: GroupState, samples: Sequence[Sample], context: TickContext) -> GroupState:
    """Return the state of a group after a sample.

    `samples` are those of its disks that were read; the others did nothing. If one of them has no
    window, although there is one, the time is a gap in which anything may have been done.
    """
    limits = group.shared.limits
    intervals = [sample.interval for sample in samples if sample.interval is not None]
    inflight = sum(sample.inflight for sample in samples)
    is_complete = len(intervals) == len(samples) and all(
        bool(interval.seconds) == bool(context.elapsed_s) for interval in intervals
    )
    if is_complete:
        assessed = assess(group, limits, _together(intervals), context, _fewest(group, samples))
    else:
        assessed = assess_gap(group, limits, context, inflight)
    return GroupState(
        group.shared,
        group.devices,
        inflight,
        assessed.totals,
        assessed.detector,
        assessed.window_verdict,
        assessed.decided,
        assessed.credits,
    )


def throttle_of(group: GroupState) -> SharedThrottle | None:
    """Return where a group that was updated at this sample is throttled; None if it is not."""
    if not group.totals.recent:
        return None
    seconds = group.totals.recent[-1].seconds
    return shared_throttle(group.detector, group.decided, group.shared.limits, seconds)


def groups_after(
    before: Mapping[str, GroupState],
    limits: tuple[SharedLimits, ...],
    monitored: Mapping[str, DiskState],
) -> dict[str, GroupState]:
    """Return the groups of other disks or limits; a group without a disk is left out.

    Totals stay. Credits stay if the burst does, and what was learned if the disks do.
    """
    groups = {}
    for shared in limits:
        devices = tuple(
            sorted(
                device
                for device, disk_state in monitored.items()
                if shared.covers_terms(disk_state.assignment.terms)
            )
        )
        if not devices:
            continue
        group = before.get(shared.name, GroupState(shared, devices))
        same_burst = group.shared.limits.burst == shared.limits.burst
        if group.shared != shared or group.devices != devices:
            group = msgspec.structs.replace(
                group,
                shared=shared,
                devices=devices,
                detector=after_gap(group.detector),
                totals=group.totals.with_undecided_unproven(),
                credits=group.credits if same_burst else None,
            )
        groups[shared.name] = group
    return groups


def _together(intervals: Sequence[Interval]) -> Interval:
    """Return what several disks did in the same time."""
    return reduce(Interval.beside, intervals)


def _fewest(group: GroupState, samples: Sequence[Sample]) -> Interval | None:
    """Return the interval of a group with a burst with the least number of data writes.

    None if that is certain.
    """
    if group.shared.limits.burst is None:
        return None
    fewest = [sample.fewest for sample in samples]
    if not any(fewest):
        return None
    return _together(
        [
            least or sample.interval
            for least, sample in zip(fewest, samples, strict=True)
            if sample.interval is not None
        ]
    )
