"""State of a group of disks that share limits of the machine, and its update by one sample."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from disksla.base.counts import total
from disksla.kernel.disks import Disk, at_bottom
from disksla.promise.catalogue import Caching, SharedLimits
from disksla.promise.configuration import Settings, is_shared_by
from disksla.state.pipeline.assessment import Assessed, TickContext, assess, assess_gap, credits_at
from disksla.state.pipeline.disk_state import DiskState, Sample
from disksla.verdict import throttling
from disksla.verdict.credits import CreditAccount
from disksla.verdict.interval import Interval

SECONDS_OF_WINDOWS = 5


class GroupState(Assessed, frozen=True, kw_only=True, gc=False):
    """Everything known of one group. What its disks do in the same time counts as one disk's."""

    shared: SharedLimits
    devices: tuple[str, ...]  # the monitored disks in it, by kernel name
    counted: tuple[str, ...]
    """The disks whose I/O is added up, monitored or not; none of them is above another."""
    certain_detector: throttling.DetectorState = throttling.DetectorState()
    """The same without requests that the cache of the host may have served."""
    window: throttling.SharedWindow | None = None
    """The second that was decided now, for the verdicts on the disks; None if none was."""
    throttled_s: Mapping[throttling.LimitKind, float] = {}
    """Seconds in which one of its disks was throttled by its limit, by limit."""
    is_listed: bool = True  # its disks are always sampled, or did nothing

    def credits_at(self, boottime_s: float) -> CreditAccount | None:
        """Return the credits at a time after the last update; None without a burst."""
        return credits_at(self, self.shared.limits, boottime_s)


def update_group(group: GroupState, samples: Sequence[Sample], context: TickContext) -> GroupState:
    """Return the state of a group after a sample.

    `samples` are those of the counted disks that were read; the others did nothing. If one of them
    has no window, although there is one, the time is a gap in which anything may have been done.
    """
    limits = group.shared.limits
    intervals = [sample.interval for sample in samples if sample.interval is not None]
    inflight = sum(sample.inflight for sample in samples)
    is_complete = len(intervals) == len(samples) and all(
        bool(interval.seconds) == bool(context.elapsed_s) for interval in intervals
    )
    certain: Interval | None = None
    if is_complete:
        whole, certain = _together(intervals), _certain(group, samples)
        fewest = _fewest(group, samples, whole)
        assessed = assess(group, limits, whole, context, fewest=fewest)
    else:
        assessed = assess_gap(group, limits, context, inflight)
    group = msgspec.structs.replace(group, **assessed)
    certain_detector, certain_decided = throttling.after_gap(group.certain_detector), group.decided
    if certain is not None and certain.seconds:
        certain_detector, certain_decided = throttling.classify(
            group.certain_detector, certain, (), limits, context.tolerance_ratio
        )
    window = None
    if group.decided and certain_decided:
        detectors = [group.detector] if certain is None else [group.detector, certain_detector]
        decided = (*reversed(group.decided), *reversed(certain_decided))
        window = _window(group.shared, detectors, decided, len(samples), context.tolerance_ratio)
    return msgspec.structs.replace(group, certain_detector=certain_detector, window=window)


def _window(
    shared: SharedLimits,
    detectors: Sequence[throttling.DetectorState],
    decided: Sequence[throttling.WindowVerdict],
    disks: int,
    tolerance: float,
) -> throttling.SharedWindow | None:
    """Return the second that was decided now, by all requests of a group and by the certain ones.

    `decided` are the verdicts on it, the newest first, and `disks` is how many of its disks were
    read.
    """
    if not detectors[0].seconds:
        return None
    served = [each for detector in detectors for each in _last_served(detector.seconds)]
    throttled = [each for each in decided if each.throttle is not None]
    throttles = [each.throttle for each in throttled if each.throttle is not None]
    own = [each for each in throttles if each.limit in throttling.MACHINE_LIMITS]
    # Where the cache of the host may serve requests, the load is between those of both detectors,
    # and one of them is that of the limit.
    at_limit = [throttling.limit_at(each, shared.limits, tolerance) for each in served]
    found = own + [each for each in at_limit if each is not None]
    throttle = found[0] if found else None
    if throttle is not None and not shared.of_type:
        throttle = throttling.Throttle(
            throttle.level, throttling.MACHINE_LIMITS.get(throttle.limit, "unknown")
        )
    return throttling.SharedWindow(
        detectors[0].seconds[-1].number,
        throttle,
        waited_share=sum(each.throttled_share for each in throttled if each.throttle in found)
        / len(decided),
        charges=shared.limits.promise_charges,
        least_load=1 / (2 * disks),
    )


def _last_served(seconds: Sequence[throttling.Second]) -> list[Interval]:
    """Return what was served in the last second, and in the last few together.

    One second may have a window of the limiter more or less.
    """
    last = [each.served for each in seconds[-SECONDS_OF_WINDOWS:]]
    return [last[-1], total(last)] if last else []


def with_verdicts(group: GroupState, disks: Sequence[DiskState]) -> GroupState:
    """Return a group after the verdicts on those of its disks that were judged with it.

    The longest time for which one of them was throttled at its limit is added to its seconds.
    """
    if group.window is None or group.window.throttle is None:
        return group
    limit = group.window.throttle.limit
    longest_s = max((_throttled_s(disk, limit) for disk in disks), default=0.0)
    if not longest_s:
        return group
    throttled_s = {**group.throttled_s, limit: group.throttled_s.get(limit, 0.0) + longest_s}
    return msgspec.structs.replace(group, throttled_s=throttled_s)


def _throttled_s(disk: DiskState, limit: throttling.LimitKind) -> float:
    """Return the seconds at a limit of the windows of a disk that were decided now."""
    last = disk.detector.seconds[-1:]
    windows = [each.window for second in last for each in second.observations]
    return sum(
        verdict.throttled_share * window.seconds
        for verdict, window in zip(disk.by_signs, windows, strict=False)
        if verdict.throttle is not None and verdict.throttle.limit == limit
    )


def groups_after(
    before: Mapping[str, GroupState],
    limits: tuple[SharedLimits, ...],
    monitored: Mapping[str, DiskState],
    others: Mapping[str, DiskState],
    inventory: Collection[Disk],
    settings: Settings,
) -> dict[str, GroupState]:
    """Return the groups of other disks or limits; a group without a monitored disk is left out.

    Its disks are those that are monitored, and those of `others` that its limits are over, too.
    Totals stay. Credits stay if the burst does, and what was learned if the disks do.
    """
    groups = {}
    for shared in limits:
        devices = _devices_in(monitored, shared, settings)
        if not devices:
            continue
        beside = _devices_in(others, shared, settings)
        counted = tuple(sorted(at_bottom(devices + beside, inventory)))
        group = before.get(
            shared.name, GroupState(shared=shared, devices=devices, counted=counted)
        )
        same_burst = group.shared.limits.burst == shared.limits.burst
        if (group.shared, group.devices, group.counted) != (shared, devices, counted):
            group = msgspec.structs.replace(
                group,
                shared=shared,
                devices=devices,
                counted=counted,
                detector=throttling.after_gap(group.detector),
                certain_detector=throttling.after_gap(group.certain_detector),
                totals=group.totals.with_undecided_unproven(group.shared.limits),
                credits=group.credits if same_burst else None,
            )
        groups[shared.name] = group
    return groups


def _together(intervals: Sequence[Interval]) -> Interval:
    """Return what several disks did in the same time."""
    first = intervals[0]
    if len(intervals) == 1:
        return first
    return msgspec.structs.replace(
        total(intervals),
        end_s=first.end_s,
        seconds=first.seconds,
        inflight=sum(each.inflight for each in intervals),
        inflight_before=sum(each.inflight_before for each in intervals),
        busy_ms=0,  # several may be busy at the same time
    )


def _devices_in(
    disks: Mapping[str, DiskState], shared: SharedLimits, settings: Settings
) -> tuple[str, ...]:
    """Return the names of the disks that a limit is over, sorted."""
    return tuple(
        sorted(
            device
            for device, disk_state in disks.items()
            if is_shared_by(shared, disk_state.disk, disk_state.assignment, settings)
        )
    )


def _certain(group: GroupState, samples: Sequence[Sample]) -> Interval | None:
    """Return what certainly reaches the limit; None if that is everything."""
    if not group.shared.excludes_hits:
        return None
    cached = [sample.disk_state.assignment.caching for sample in samples]
    if set(cached) == {"none"}:
        return None
    return _together(
        [
            _without_hits(sample.interval, caching)
            for sample, caching in zip(samples, cached, strict=True)
            if sample.interval is not None
        ]
    )


def _without_hits(interval: Interval, caching: Caching | None) -> Interval:
    """Return an interval without requests that the cache of the host may have served."""
    if caching == "none":
        return interval
    return interval.without_reads() if caching == "read-only" else interval.without_requests()


def _fewest(group: GroupState, samples: Sequence[Sample], whole: Interval) -> Interval | None:
    """Return the least use of a group with a burst; None if that is the `whole`.

    It has the fewest data writes, and no requests that the cache of the host may have served.
    """
    if group.shared.limits.burst is None:
        return None
    fewest = [sample.fewest or sample.interval for sample in samples]
    intervals = [interval for interval in fewest if interval is not None]
    if group.shared.excludes_hits:
        caching = [sample.disk_state.assignment.caching for sample in samples]
        intervals = [
            _without_hits(interval, each)
            for interval, each in zip(intervals, caching, strict=True)
        ]
    certain = _together(intervals)
    return None if certain == whole else certain
