"""State and tick to the next state: the pure function that everything else feeds or reads.

`advance` is called by the sampler thread, by `disksla replay` and `disksla explain` on recorded
ticks, and by tests. It reads no clock and no file, so all of them get the same result.
"""

from collections.abc import Collection, Generator, Mapping

import msgspec

from disksla.kernel.consumers import FORGOTTEN_S, MOST_NAMES, MOST_SERIES
from disksla.kernel.disks import Disk
from disksla.kernel.procfs import HostWait
from disksla.promise import configuration
from disksla.promise.catalogue import Assignment
from disksla.state.pipeline.assessment import TickContext
from disksla.state.pipeline.changed_lines import DiskstatsLines, index_lines
from disksla.state.pipeline.disk_state import DiskState, Sample, judge_disk, read_disk
from disksla.state.pipeline.group_state import (
    GroupState,
    groups_after,
    update_group,
    with_verdicts,
)
from disksla.state.pipeline.read_mounts import mount_samples, mounts_context, mounts_read
from disksla.state.pipeline.restore import restore_disk, restore_group
from disksla.state.pipeline.sampler_stats import HOST_SOURCES
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick
from disksla.verdict.interval import Clocks, GapReason, elapsed_or_gap
from disksla.verdict.throttling import SIGNS, SharedWindow, Sign, after_gap


def configure(state: State, matched: configuration.Matched, now: Clocks | None) -> State:
    """Return the state with another configuration, or other block devices.

    A disk that is still the same keeps its state, and its credits unless the burst of its terms
    changed. A new disk, or another disk under a known name, starts from what an earlier daemon
    saved of it.
    """
    cpus = matched.cpus or state.cpus
    state = msgspec.structs.replace(state, configuration=matched.configuration, cpus=cpus)
    return _with_disks(state, matched, now)


def advance(state: State, tick: Tick, signs: frozenset[Sign] = SIGNS) -> State:
    """Return the state after one tick; `signs` of a limiter are looked for, all but in benches."""
    parts = advance_in_parts(state, tick, signs)
    try:
        while True:
            next(parts)
    except StopIteration as end:
        after: State = end.value
        return after


def advance_in_parts(
    state: State, tick: Tick, signs: frozenset[Sign] = SIGNS
) -> Generator[None, None, State]:
    """Yield when each disk is judged, and return the state after one tick.

    1. Apply the events of the tick: another list of block devices, results of probes, readings of
       statistics pages and of consumers.
    2. If /proc/diskstats could not be read, count the error and stop: all time up to the next
       readable sample will be one gap.
    3. Compare the text of /proc/diskstats with the previous one. Only disks whose lines changed,
       or that were active at the last sample, are updated; the others did nothing. Disks whose
       data writes are counted since this tick are updated, too.
    4. Measure the time since the last sample. It is either assessed, once for all disks, or a gap.
    5. Read each of those disks (`read_disk`): counters to interval. Disks that are not monitored,
       but whose I/O counts for a group, are read, too. NFS mounts are read (`read_mount`) if the
       tick has their counters; their window is the time since they were read last.
    6. Update the groups of disks that share a limit of the machine (`update_group`).
    7. Judge each of the disks (`judge_disk`): verdict, credits, totals.
    8. Attribute the iowait and PSI of this window to the disks that were throttled in it.
    """
    state = _with_events(state, tick)
    stats = state.sampler_stats.ticked(tick.lateness_s, tick.missed_ticks)
    not_read = (
        *(HOST_SOURCES if tick.host is None else ()),
        *(("mountstats",) if tick.mounts is None and state.device_at else ()),
    )
    if tick.diskstats is None:
        stats = stats.with_problems(tick.problems, not_read)
        return msgspec.structs.replace(state, sampler_stats=stats, unreadable=True)

    lines, to_update = _find_lines(state, tick.diskstats)
    to_update |= _newly_counted(state, tick)
    elapsed = _elapsed(state, tick.clocks)
    assessed = state.assessed
    if isinstance(elapsed, float):
        assessed = assessed.plus(elapsed)
    elif elapsed is not None:
        stats = stats.with_gap(elapsed)
    context = TickContext(
        now_s=tick.clocks.monotonic_s,
        boottime_s=tick.clocks.boottime_s,
        last_boottime_s=(state.clocks or tick.clocks).boottime_s,
        elapsed_s=elapsed if isinstance(elapsed, float) else 0.0,
        assessed_before=state.assessed,
        assessed_after=assessed,
        tolerance_ratio=state.settings.assessment.tolerance_ratio,
        signs=signs,
        unknown_machines=state.configuration.unknown_machines,
    )

    samples = {
        device: read_disk(
            state.monitored.get(device) or state.others[device],
            lines=lines.lines_of(device),
            inflight=tick.inflight.get(device),
            context=context,
            data_writes=tick.data_writes.get(device),
            close=tick.close.get(device, ()),
            counted=lines.counted_lines(device) if device in lines.paths else (),
        )
        for device in to_update
    }
    of_mounts = mounts_context(state, context)
    samples |= mount_samples(state, tick, of_mounts)
    groups = _with_samples(state.groups, samples, context, of_mounts)
    shared = _windows(groups, samples)
    judged: dict[str, DiskState] = {}
    others: dict[str, DiskState] = {}
    active = set()
    problems = dict(tick.problems)
    for device, sample in samples.items():
        after = judged if device in state.monitored else others
        is_mount = sample.disk_state.disk.is_mount
        of_disk = of_mounts if is_mount else context
        after[device] = judge_disk(sample, of_disk, shared.get(device))
        if sample.active or after[device].is_pending:
            active.add(device)
        if sample.gap is not None:
            stats = stats.with_gap(sample.gap)
        if sample.problem is not None:
            problems[f"diskstats:{device}"] = sample.problem
        yield
    if isinstance(elapsed, float) and state.host is not None and tick.host is not None:
        judged |= _with_host_wait(judged, tick.host.since(state.host))
    if tick.mounts is None:  # mounts stay as they were until they are read again
        active |= state.active & state.mounts
    return msgspec.structs.replace(
        state,
        monitored={**state.monitored, **judged} if judged else state.monitored,
        others={**state.others, **others} if others else state.others,
        active=frozenset(active),
        mounts_read=mounts_read(state, tick, of_mounts, is_gap=not isinstance(elapsed, float)),
        at_limit=frozenset(
            device
            for device in (active & judged.keys()) - state.mounts
            if judged[device].is_at_limit
        ),
        lines=lines,
        clocks=tick.clocks,
        host=tick.host,
        last_host=tick.host or state.last_host,
        unreadable=False,
        assessed=assessed,
        sampler_stats=stats.with_problems(problems, not_read),
        groups={
            name: with_verdicts(
                group, [judged[device] for device in group.devices if device in judged]
            )
            for name, group in groups.items()
        },
    )


def _with_samples(
    groups: Mapping[str, GroupState],
    samples: Mapping[str, Sample],
    context: TickContext,
    of_mounts: TickContext,
) -> dict[str, GroupState]:
    """Return the groups after a sample; of those of which no disk was read, nothing changes."""
    after = {}
    for name, group in groups.items():
        of_group = [samples[device] for device in group.counted if device in samples]
        of_this = context if group.shared.device is None else of_mounts
        after[name] = update_group(group, of_group, of_this) if of_group else group
    return after


def _windows(
    groups: Mapping[str, GroupState], devices: Collection[str]
) -> dict[str, SharedWindow]:
    """Return the last decided second of the groups of the devices.

    Of several groups of a disk, the first at whose limit it is counts.
    """
    windows: dict[str, SharedWindow] = {}
    for group in groups.values():
        if group.window is None:
            continue
        for device in {*group.devices, *group.counted}:
            if device in devices and (device not in windows or windows[device].throttle is None):
                windows[device] = group.window
    return windows


def _with_host_wait(judged: Mapping[str, DiskState], window: HostWait) -> dict[str, DiskState]:
    """Return the disks that are or may be throttled in this window, with their share of its wait.

    The shares are by the I/O-seconds that requests waited at each disk.
    """
    waited_s = {
        device: wait_s
        for device, disk_state in judged.items()
        if not disk_state.disk.is_mount and (wait_s := disk_state.throttle_wait_s) is not None
    }
    return {
        device: judged[device].with_host_wait(share)
        for device, share in window.shared(waited_s).items()
    }


def _with_events(state: State, tick: Tick) -> State:
    """Return the state with what not every tick has.

    That is other block devices, results of probes, readings of statistics pages, and what
    consumers used. Those of a disk that is not monitored are dropped.
    """
    if tick.disks is not None:
        matched = configuration.match_disks(state.configuration, tick.disks, tick.cpus)
        state = configure(state, matched, tick.clocks)
    if tick.watched_s or tick.own_limits or tick.why_no_consumers is not None:
        state = _with_consumers(state, tick)
    if not tick.probes and not tick.provider:
        return state
    monitored = dict(state.monitored)
    for result in tick.probes:
        if result.device in monitored:
            monitored[result.device] = monitored[result.device].with_probe(result)
    for device in monitored.keys() & {message.device for message in tick.provider}:
        messages = [each for each in tick.provider if each.device == device]
        monitored[device] = monitored[device].with_provider(messages, tick.clocks.monotonic_s)
    return msgspec.structs.replace(state, monitored=monitored)


def _with_consumers(state: State, tick: Tick) -> State:
    """Return the state with what consumers used of disks, unless the settings leave it out."""
    why_not = state.why_no_consumers if tick.why_no_consumers is None else tick.why_no_consumers
    if not state.settings.consumers:
        return state
    monitored, names = dict(state.monitored), dict(state.consumers_seen_s)
    # A disk has two series at most for each of its consumers: requests and bytes.
    most_names = MOST_NAMES - 2 * MOST_SERIES
    since_s = tick.clocks.monotonic_s - FORGOTTEN_S
    if len(names) > most_names and min(names.values()) < since_s:
        monitored = {device: each.without_silent(since_s) for device, each in monitored.items()}
        names = {who: at_s for who, at_s in names.items() if at_s >= since_s}
    for device in tick.watched_s.keys() & monitored.keys():
        found = [each for each in tick.consumers if each.device == device]
        monitored[device] = monitored[device].with_consumers(
            tick.watched_s[device], found, None if len(names) <= most_names else frozenset(names)
        )
        for who, at_s in monitored[device].consumers.used_s.items():
            names[who] = max(at_s, names.get(who, at_s))
    for own in tick.own_limits:
        if own.device in monitored:
            now_s = tick.clocks.monotonic_s
            monitored[own.device] = monitored[own.device].with_own_limit(own, now_s)
    return msgspec.structs.replace(
        state, monitored=monitored, consumers_seen_s=names, why_no_consumers=why_not or None
    )


def _find_lines(state: State, text: str) -> tuple[DiskstatsLines, set[str]]:
    """Return the lines of a text of /proc/diskstats, and the devices to update."""
    compared = None if state.lines is None else state.lines.compare(text)
    if compared is not None:
        lines, changed = compared
        return lines, changed | (state.active - state.mounts)
    whole_disk_of = {disk.name: disk.partition_of for disk in state.inventory if disk.partition_of}
    head_of = {disk.name: disk.path_of for disk in state.inventory if disk.path_of}
    disk_states = {**state.monitored, **state.others}
    disks = [each.disk for each in disk_states.values() if not each.disk.is_mount]
    return index_lines(text, disks, whole_disk_of, head_of), {disk.name for disk in disks}


def _newly_counted(state: State, tick: Tick) -> set[str]:
    """Return the devices whose data writes are counted since this tick, even if they are idle."""
    return {
        device
        for device, (opening, _) in tick.data_writes.items()
        if device in state.monitored and state.monitored[device].data_writes.opening != opening
    }


def _elapsed(state: State, clocks: Clocks) -> float | GapReason | None:
    """Return the seconds since the last sample, or why they are a gap; None at the first."""
    if state.clocks is None:
        return None
    if state.unreadable:
        return "unreadable"
    return elapsed_or_gap(state.clocks, clocks, state.settings.sampling.interval_s)


def _with_disks(state: State, matched: configuration.Matched, now: Clocks | None) -> State:
    """Return the state with these block devices, of which the settings select the monitored."""
    stats = state.sampler_stats
    monitored = {}
    disks, (assignments, of_others) = matched.disks, matched.assignments
    heads = {disk.path_of for disk in disks}
    for disk in disks:
        if disk.name not in assignments:
            continue
        assignment = assignments[disk.name]
        before = state.monitored.get(disk.name)
        if before is None:
            monitored[disk.name] = restore_disk(state.previous_run, disk, assignment, now)
        elif before.disk.is_same_as(disk):
            monitored[disk.name] = _with_limits(before, disk, assignment)
        else:
            stats = stats.with_gap("replaced")
            monitored[disk.name] = restore_disk(state.previous_run, disk, assignment, now)
    present = {disk.name for disk in disks}
    for device, gone in state.monitored.items():
        if device not in present and gone.is_listed:
            stats = stats.with_gap("vanished")
    if now is not None:
        monitored = {
            device: disk_state.with_configured_probes(
                state.settings.probes_of(device), now.realtime_s
            )
            for device, disk_state in monitored.items()
        }
    limits = configuration.machine_limits(state.settings, state.configuration.machines, state.cpus)
    limits += configuration.type_limits(assignments.values())
    limits += configuration.client_limits(
        {device: assignments[device] for device in monitored if monitored[device].disk.is_mount}
    )
    others = {
        disk.name: _not_monitored(state.others.get(disk.name), disk, of_others[disk.name])
        for disk in disks
        if disk.name in of_others
    }
    after = groups_after(
        state.groups,
        limits=limits,
        monitored=monitored,
        others=others,
        inventory=matched.inventory,
        settings=state.settings,
    )
    groups = {
        name: group if name in state.groups else restore_group(state.previous_run, group, now)
        for name, group in after.items()
    }
    counted = {device for group in groups.values() for device in group.counted}
    others = {device: others[device] for device in others.keys() & counted}
    return msgspec.structs.replace(
        state,
        inventory=matched.inventory,
        unused=matched.unused,
        monitored=monitored,
        others=others,
        groups=groups,
        active=state.active & (monitored.keys() | others.keys()),
        at_limit=state.at_limit & monitored.keys(),
        lines=None,
        device_at={
            point: device
            for device, disk_state in monitored.items()
            if disk_state.disk.is_mount
            for point in disk_state.disk.mount_points
        },
        sampler_stats=stats,
        with_write_cache={
            device: (disk_state.disk.major, disk_state.disk.minor)
            for device, disk_state in monitored.items()
            if disk_state.disk.write_back and device not in heads
        },
    )


def _with_limits(before: DiskState, disk: Disk, assignment: Assignment) -> DiskState:
    """Return the state of the same disk with other terms.

    No limit holds for all of the undecided windows if they differ.
    """
    limits = before.assignment.limits
    same_burst = limits.burst == assignment.limits.burst
    after = msgspec.structs.replace(
        before, disk=disk, assignment=assignment, credits=before.credits if same_burst else None
    )
    if limits == assignment.limits:
        return after
    return msgspec.structs.replace(
        after,
        totals=before.totals.with_undecided_unproven(limits),
        detector=after_gap(before.detector),
    )


def _not_monitored(before: DiskState | None, disk: Disk, assignment: Assignment) -> DiskState:
    """Return the state of a disk that is not monitored; its reading stays if the disk does."""
    if before is None or not before.disk.is_same_as(disk):
        return DiskState(disk=disk, assignment=assignment)
    return msgspec.structs.replace(before, disk=disk, assignment=assignment)
