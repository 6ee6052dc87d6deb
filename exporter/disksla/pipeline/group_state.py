"""State of a group of disks that share limits of the machine, and its update by one sample."""

from collections.abc import Collection, Mapping, Sequence
from functools import reduce

import msgspec

from disksla.config import Settings, is_shared_by
from disksla.credits import CreditAccount
from disksla.disks import Disk, at_bottom
from disksla.limits import Caching, SharedLimits
from disksla.pipeline.assessment import TickContext, assess, assess_gap, credits_at
from disksla.pipeline.disk_state import DiskState, Sample
from disksla.pipeline.totals import DiskTotals
from disksla.verdict import (
    LIMIT_KINDS,
    OF_MACHINE,
    DetectorState,
    Interval,
    LimitKind,
    ServiceTime,
    SharedThrottle,
    SharedWindow,
    WindowVerdict,
    after_gap,
    classify,
    load_of,
    shared_throttle,
)


class GroupState(msgspec.Struct, frozen=True, gc=False):
    """Everything known of one group. What its disks do in the same time counts as one disk's."""

    shared: SharedLimits
    devices: tuple[str, ...]
    """The monitored disks in it, by kernel name."""
    counted: tuple[str, ...]
    """The disks whose I/O is added up, monitored or not; none of them is above another."""
    inflight: int = 0
    """Requests in flight at the last sample."""
    totals: DiskTotals = DiskTotals()
    detector: DetectorState = DetectorState()
    window_verdict: WindowVerdict | None = None
    decided: tuple[WindowVerdict, ...] = ()
    credits: CreditAccount | None = None
    """Burst credits of the machine; None if its limits have no burst."""
    certain_detector: DetectorState = DetectorState()
    certain_decided: tuple[WindowVerdict, ...] = ()
    """The same without requests that the cache of the host may have served."""
    throttle: SharedThrottle | None = None
    """Where it was throttled at the last sample, as far as its sum shows."""
    throttles_disks: bool = False
    """One of its disks was throttled by its limit at the last sample."""
    throttled_s: Mapping[LimitKind, float] = {}
    """Seconds in which requests waited for its limit while one of its disks was throttled by it.
    Limits of the disks may add up to that of the group."""
    is_listed: bool = True

    @property
    def window(self) -> SharedWindow:
        """The last window, for the verdicts on the disks."""
        recent, charges = self.totals.recent[-1:], self.shared.limits.promise_charges
        load = load_of(recent[0], charges) if recent else None
        return SharedWindow(load or 0.0, self.throttle)

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
    certain_detector = after_gap(group.certain_detector)
    certain_decided: tuple[WindowVerdict, ...] = ()
    certain: Interval | None = None
    if is_complete:
        whole, certain = _together(intervals), _certain(group, samples)
        service = _service_time(intervals, samples)
        detector = msgspec.structs.replace(group.detector, service=service)
        assessed = assess(
            msgspec.structs.replace(group, detector=detector),
            limits,
            whole,
            context,
            _fewest(group, samples, whole),
            throttles_disks=group.throttles_disks,
        )
        if certain is not None and certain.seconds:
            certain_detector, certain_decided = classify(
                msgspec.structs.replace(group.certain_detector, service=service),
                certain,
                limits,
                context.tolerance_ratio,
                context.tick_s,
                is_group=True,
            )
    else:
        assessed = assess_gap(group, limits, context, inflight)
    after = GroupState(
        group.shared,
        group.devices,
        group.counted,
        inflight,
        assessed.totals,
        assessed.detector,
        assessed.window_verdict,
        assessed.decided,
        assessed.credits,
        certain_detector,
        certain_decided,
        throttled_s=group.throttled_s,
    )
    throttle = _throttle(after, context.elapsed_s, has_range=certain is not None)
    return msgspec.structs.replace(after, throttle=throttle)


def with_verdicts(group: GroupState, before: GroupState, disks: Sequence[DiskState]) -> GroupState:
    """Return a group after the verdicts on those of its disks that were judged with it."""
    if group.throttle is None:
        return group
    throttle = group.throttle.throttle
    if not any(disk.decided and disk.decided[-1].throttle == throttle for disk in disks):
        return group
    totals, earlier = group.totals.verdict_totals, before.totals.verdict_totals
    index = LIMIT_KINDS.index(OF_MACHINE.get(throttle.limit, throttle.limit))
    decided_s = totals.throttled_s[index] - earlier.throttled_s[index]
    more_s = decided_s or group.throttle.throttled_s
    throttled_s = {
        **group.throttled_s,
        throttle.limit: group.throttled_s.get(throttle.limit, 0.0) + more_s,
    }
    return msgspec.structs.replace(group, throttles_disks=True, throttled_s=throttled_s)


def _throttle(group: GroupState, seconds: float, *, has_range: bool) -> SharedThrottle | None:
    """Return where a group is throttled, as far as its sum shows; None if it is not.

    Where the cache of the host may serve requests, the load of the group is a range: its ends are
    all requests, and those that certainly reach the limit. One of them may have the rate of the
    limit by chance, so that it has to be confirmed.
    """
    for detector, decided in (
        (group.detector, group.decided),
        (group.certain_detector, group.certain_decided),
    ):
        if has_range and not (decided and decided[-1].is_confirmed):
            continue
        throttle = shared_throttle(
            detector,
            decided,
            group.shared.limits,
            seconds,
            is_machine=not group.shared.of_type,
        )
        if throttle is not None:
            return throttle
    return None


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
        group = before.get(shared.name, GroupState(shared, devices, counted))
        same_burst = group.shared.limits.burst == shared.limits.burst
        if (group.shared, group.devices, group.counted) != (shared, devices, counted):
            group = msgspec.structs.replace(
                group,
                shared=shared,
                devices=devices,
                counted=counted,
                detector=after_gap(group.detector),
                certain_detector=after_gap(group.certain_detector),
                totals=group.totals.with_undecided_unproven(),
                credits=group.credits if same_burst else None,
            )
        groups[shared.name] = group
    return groups


def _service_time(intervals: Sequence[Interval], samples: Sequence[Sample]) -> ServiceTime:
    """Return what a request takes without waiting, on average; the samples have these intervals.

    A slow disk and a busy one have no common service time: what each of them needs counts, by the
    number of its requests; nothing for a disk of which it is not known.
    """
    requests, took_s = 0, 0.0
    for interval, sample in zip(intervals, samples, strict=True):
        number = interval.reads + interval.writes
        requests += number
        took_s += number * sample.disk_state.detector.service.shortest_s
    return ServiceTime(took_s / requests if requests else 0.0)


def _together(intervals: Sequence[Interval]) -> Interval:
    """Return what several disks did in the same time."""
    return reduce(Interval.beside, intervals)


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
