"""The NFS mounts at one tick: from what the kernel counts of them to intervals, as of disks.

Their counters may not be read at each tick, as `MountsRead` says. The kernel counts a request when
it is done, and has no number of those in flight. While requests are done, it is how long they
took: their time in I/O-seconds per second (Little's law). While nothing is done, it is how many
were sent over the connections and not answered, less those that never will be. The latter is of
all mounts that use the connections, so it is only that of a mount which had requests in flight
before.
"""

import msgspec

from disksla.kernel.nfs import MountReading, MountState
from disksla.kernel.procfs import has_decreased
from disksla.state.pipeline.assessment import TickContext
from disksla.state.pipeline.disk_state import DiskState, Sample, missing, rebased, without_interval
from disksla.state.pipeline.odd_counters import why_impossible
from disksla.state.pipeline.state import MountsRead, State
from disksla.state.pipeline.tick import Tick
from disksla.verdict.interval import Interval, interval_of
from disksla.verdict.throttling import LONGEST_WINDOW_S, Sign

_MOUNT_SIGNS: frozenset[Sign] = frozenset({"bucket"})
"""Of NFS mounts. Pauses are not looked for: requests are done by others, too."""
_LONGEST_S = 3.0  # a longer time between two readings is a gap: they are a second apart at most


def mounts_context(state: State, context: TickContext) -> TickContext:
    """Return the context of NFS mounts, which may not have been read at the last ticks."""
    read = state.mounts_read
    context = msgspec.structs.replace(context, signs=context.signs & _MOUNT_SIGNS)
    if read is None:
        return msgspec.structs.replace(context, elapsed_s=0.0)
    seconds = context.assessed_after.seconds - read.assessed.seconds
    is_gap = read.is_gap or not context.elapsed_s or seconds > _LONGEST_S
    return msgspec.structs.replace(
        context,
        elapsed_s=0.0 if is_gap else seconds,
        last_boottime_s=read.boottime_s,
        assessed_before=read.assessed,
    )


def mount_samples(state: State, tick: Tick, context: TickContext) -> dict[str, Sample]:
    """Return the samples of the NFS mounts that did anything, or are active, if they were read."""
    if tick.mounts is None:
        return {}
    samples = {}
    for device in state.mounts:
        disk_state, reading = state.monitored[device], tick.mounts.get(device)
        is_same = disk_state.mount is not None and reading == disk_state.mount.reading
        if is_same and disk_state.is_listed and device not in state.active:
            continue
        is_malformed = f"mountstats:{device}" in tick.problems
        samples[device] = read_mount(disk_state, reading, context, is_malformed=is_malformed)
    return samples


def read_mount(
    disk_state: DiskState,
    reading: MountReading | None,
    context: TickContext,
    *,
    is_malformed: bool = False,
) -> Sample:
    """Return a sample of an NFS mount; `reading` is None if it is not mounted, or malformed."""
    if reading is None:
        return missing(disk_state, context, "malformed" if is_malformed else "vanished")
    last, counters = disk_state.mount, reading.counters
    before, origin = disk_state.reading, disk_state.origin
    if last is None or before is None or origin is None:
        mount = MountState(reading, reading.on_wire, context.now_s)
        after = without_interval(disk_state, context, counters, counters, 0)
        return Sample(msgspec.structs.replace(after, mount=mount), active=False)
    mount = last.after(reading, context.now_s, context.elapsed_s, LONGEST_WINDOW_S)
    disk_state = msgspec.structs.replace(disk_state, mount=mount)
    if has_decreased(before, counters):
        return rebased(disk_state, context, counters, 0, "reset")
    elapsed_s = context.elapsed_s if disk_state.is_listed else 0.0
    interval = interval_of(
        context.now_s,
        elapsed_s,
        before,
        counters,
        inflight=0,  # which the kernel does not count
        inflight_before=disk_state.inflight,
    )
    problem = why_impossible(interval, before, counters)
    if problem is not None:
        sample = rebased(disk_state, context, counters, 0, "malformed")
        return msgspec.structs.replace(sample, problem=problem)
    interval = _with_operations(interval, last, mount)
    active = interval.inflight > 0 or counters != before
    return Sample(disk_state, active, interval, counters, interval.inflight)


def _with_operations(interval: Interval, before: MountState, now: MountState) -> Interval:
    """Return an interval of a mount with other operations, and with the requests in flight."""
    took_s = interval.took_s
    if interval.requests:
        in_flight = round(took_s / interval.seconds) if interval.seconds else 0
    elif now.reading.replies != before.reading.replies:
        in_flight = 0  # the server answers, and what it answers is not data of this mount
    elif now.reading.shares_connections and not interval.inflight_before:
        in_flight = 0
    else:
        in_flight = now.in_flight
    busy_ms = round(1000 * min(took_s, interval.seconds))
    others = max(0, now.reading.besides_data - before.reading.besides_data)
    return msgspec.structs.replace(interval, inflight=in_flight, busy_ms=busy_ms, others=others)


def mounts_read(
    state: State, tick: Tick, context: TickContext, *, is_gap: bool
) -> MountsRead | None:
    """Return when NFS mounts were read last, after this tick."""
    if tick.mounts is not None:
        return MountsRead(context.assessed_after, context.boottime_s)
    read = state.mounts_read
    return msgspec.structs.replace(read, is_gap=True) if read is not None and is_gap else read
