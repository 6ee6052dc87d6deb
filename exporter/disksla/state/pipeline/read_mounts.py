"""The NFS mounts at one tick. Their counters may not be read at each, as `MountsRead` says."""

import msgspec

from disksla.state.pipeline.assessment import TickContext
from disksla.state.pipeline.disk_state import Sample, read_mount
from disksla.state.pipeline.state import MountsRead, State
from disksla.state.pipeline.tick import Tick
from disksla.verdict.throttling import Sign

_MOUNT_SIGNS: frozenset[Sign] = frozenset({"bucket"})
"""Of NFS mounts. Pauses are not looked for: requests are done by others, too."""
_LONGEST_S = 3.0
"""A longer time between two readings is a gap: they are a second apart at most."""


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


def mounts_read(
    state: State, tick: Tick, context: TickContext, *, is_gap: bool
) -> MountsRead | None:
    """Return when NFS mounts were read last, after this tick."""
    if tick.mounts is not None:
        return MountsRead(context.assessed_after, context.boottime_s)
    read = state.mounts_read
    return msgspec.structs.replace(read, is_gap=True) if read is not None and is_gap else read


def active_mounts(state: State) -> frozenset[str]:
    """Return the NFS mounts that were active when they were read last."""
    return state.active & state.mounts
