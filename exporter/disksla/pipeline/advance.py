"""State and tick to state: the pure step that everything else feeds or reads.

`advance` is called by the sampler thread, by `replay` on a recording, and by tests. It reads no
clock and no file, so all three get the same result.
"""

from collections.abc import Collection, Mapping

import msgspec

from disksla.config import Settings, assign, is_watched
from disksla.disks import Disk
from disksla.limits import Catalog
from disksla.pipeline.changed_lines import DiskstatsLines, index_lines
from disksla.pipeline.disk_state import DiskState, TickContext, update_disk
from disksla.pipeline.restore import restore_disk
from disksla.pipeline.sampler_stats import HOST_SOURCES
from disksla.pipeline.state import State
from disksla.pipeline.tick import Tick
from disksla.procfs import HostWait
from disksla.verdict import Clocks, GapReason, elapsed_or_gap


def configure(state: State, settings: Settings, catalog: Catalog | None = None) -> State:
    """Return the state with new settings, and a new catalogue if given; totals of disks stay."""
    catalog = state.catalog if catalog is None else catalog
    state = msgspec.structs.replace(state, settings=settings, catalog=catalog)
    return _with_inventory(state, state.inventory, state.clocks)


def advance(state: State, tick: Tick) -> State:
    """Take one tick."""
    state = _with_events(state, tick)
    sampling = state.sampler_stats.ticked(tick.lateness_s, tick.missed_ticks)
    untried = HOST_SOURCES if tick.host is None else ()
    if tick.diskstats is None:
        sampling = sampling.with_problems(tick.problems, untried)
        return msgspec.structs.replace(state, sampler_stats=sampling, unreadable=True)

    lines, to_update = _find_lines(state, tick.diskstats)
    elapsed = _elapsed(state, tick.clocks)
    assessed = state.assessed
    if isinstance(elapsed, float):
        assessed = assessed.plus(elapsed)
    elif elapsed is not None:
        sampling = sampling.with_gap(elapsed)
    context = TickContext(
        now_s=tick.clocks.monotonic_s,
        boottime_s=tick.clocks.boottime_s,
        last_boottime_s=(state.clocks or tick.clocks).boottime_s,
        elapsed_s=elapsed if isinstance(elapsed, float) else 0.0,
        before=state.assessed,
        after=assessed,
        tick_s=state.settings.sampling.interval_s,
        tolerance_ratio=state.settings.assessment.tolerance_ratio,
    )

    watched = dict(state.watched)
    active = set()
    problems = dict(tick.problems)
    for device in to_update:
        update = update_disk(
            watched[device], lines.lines_of(device), tick.inflight.get(device), context
        )
        watched[device] = update.watched
        if update.active:
            active.add(device)
        if update.gap is not None:
            sampling = sampling.with_gap(update.gap)
        if update.problem is not None:
            problems[f"diskstats:{device}"] = update.problem
    if isinstance(elapsed, float) and state.host is not None and tick.host is not None:
        watched |= _with_host_wait(watched, to_update, tick.host.since(state.host))
    return State(
        state.settings,
        state.catalog,
        state.previous_run,
        state.inventory,
        watched,
        frozenset(active),
        lines,
        tick.clocks,
        host=tick.host,
        last_host=tick.host or state.last_host,
        unreadable=False,
        assessed=assessed,
        sampler_stats=sampling.with_problems(problems, untried),
    )


def _with_host_wait(
    watched: Mapping[str, DiskState], to_update: Collection[str], added: HostWait
) -> dict[str, DiskState]:
    """Lay what the host waited in this window to the disks that were throttled in it."""
    waited_s = {
        device: window_verdict.wait_s
        for device in to_update
        if (window_verdict := watched[device].window_verdict)
        and window_verdict.verdict == "throttled"
    }
    return {
        device: watched[device].with_host_wait(part)
        for device, part in added.shared(waited_s).items()
    }


def _with_events(state: State, tick: Tick) -> State:
    """Take what does not come with every tick: other disks, and how probes went.

    Of a probe whose disk is gone, there is nothing to be kept.
    """
    if tick.disks is not None:
        state = _with_inventory(state, tick.disks, tick.clocks)
    if not tick.probes:
        return state
    watched = dict(state.watched)
    for outcome in tick.probes:
        if outcome.device in watched:
            watched[outcome.device] = watched[outcome.device].with_probe(outcome)
    return msgspec.structs.replace(state, watched=watched)


def _find_lines(state: State, text: str) -> tuple[DiskstatsLines, set[str]]:
    """Give the lines of this text and the devices that have to be looked at."""
    followed = None if state.lines is None else state.lines.follow(text)
    if followed is not None:
        lines, changed = followed
        return lines, changed | state.active
    wholes = {disk.name: disk.partition_of for disk in state.inventory if disk.partition_of}
    disks = [watched.disk for watched in state.watched.values()]
    return index_lines(text, disks, wholes), set(state.watched)


def _elapsed(state: State, clocks: Clocks) -> float | GapReason | None:
    """Give the time since the last sample, or why it cannot be judged; None at the first."""
    if state.clocks is None:
        return None
    if state.unreadable:
        return "unreadable"
    return elapsed_or_gap(state.clocks, clocks, state.settings.sampling.interval_s)


def _with_inventory(state: State, inventory: tuple[Disk, ...], now: Clocks | None) -> State:
    """Take the machine's devices, and choose among them those that are watched."""
    sampling = state.sampler_stats
    watched = {}
    for disk in inventory:
        if not is_watched(disk, state.settings):
            continue
        assignment = assign(disk, state.settings, state.catalog)
        known = state.watched.get(disk.name)
        if known is None:
            watched[disk.name] = restore_disk(state.previous_run, disk, assignment, now)
        elif known.disk.is_same_as(disk):
            same_credits = known.assignment.limits.burst == assignment.limits.burst
            watched[disk.name] = msgspec.structs.replace(
                known,
                disk=disk,
                assignment=assignment,
                credits=known.credits if same_credits else None,
            )
        else:
            sampling = sampling.with_gap("replaced")
            watched[disk.name] = restore_disk(state.previous_run, disk, assignment, now)
    if now is not None:
        watched = {
            device: each.with_configured_probes(state.settings.probes_of(device), now.realtime_s)
            for device, each in watched.items()
        }
    return msgspec.structs.replace(
        state,
        inventory=inventory,
        watched=watched,
        active=state.active & watched.keys(),
        lines=None,
        sampler_stats=sampling,
    )
