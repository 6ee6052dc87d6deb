"""The front hall: everything known so far and one tick of the world make everything known now.

`advance` is called by the sampler thread, by `replay` on a recording, and by tests. It reads no
clock and no file, so that all three see the same.
"""

from collections.abc import Collection, Mapping

import msgspec

from disksla.core.disk import Disk
from disksla.core.frame import Frame, lay_out
from disksla.core.hostwait import HostWait, between, shared
from disksla.core.interval import Clocks, GapReason, measure
from disksla.core.matching import assign, is_watched
from disksla.core.memory import Memory, leave, remember
from disksla.core.probeoutcome import ProbeOutcome
from disksla.core.sampling import OF_HOST, Sampling
from disksla.core.saved import SavedState
from disksla.core.settings import Settings
from disksla.core.tally import Assessed
from disksla.core.terms import Catalog
from disksla.core.watched import Moment, Watched, see


class Tick(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that the world said at one moment."""

    clocks: Clocks
    diskstats: str | None
    """The text of /proc/diskstats; None if it could not be read."""
    lateness_s: float = 0.0
    """How long after its deadline the tick came."""
    missed_ticks: int = 0
    """Deadlines that passed meanwhile."""
    inflight: dict[str, tuple[int, int]] = {}
    """Reads and writes in flight (sysfs `inflight`) of the devices that were awake."""
    disks: tuple[Disk, ...] | None = None
    """All block devices, when they changed."""
    host: HostWait | None = None
    """What the host waited for I/O since boot; None if it was not asked."""
    troubles: dict[str, str] = {}
    """What could not be read: `source` or `source:device` -> what was seen."""
    probes: tuple[ProbeOutcome, ...] = ()
    """How probes went that have ended since the tick before."""


class State(msgspec.Struct, frozen=True):
    """Everything known; published as it is, never changed."""

    settings: Settings
    catalog: Catalog
    memory: Memory | None = None
    """What was saved by an earlier daemon."""
    inventory: tuple[Disk, ...] = ()
    """All block devices of the machine."""
    watched: Mapping[str, Watched] = {}
    awake: frozenset[str] = frozenset()
    """Devices that did something at the last sample; their in-flight counts are wanted."""
    frame: Frame | None = None
    """The last text of /proc/diskstats; None when lines have to be found again."""
    clocks: Clocks | None = None
    """At the last sample."""
    host: HostWait | None = None
    """What the host had waited up to the last sample; None if it was not asked."""
    last_host: HostWait = HostWait()
    """What it said when it was last asked."""
    blind: bool = False
    """/proc/diskstats could not be read at the last tick."""
    assessed: Assessed = Assessed()
    sampling: Sampling = Sampling()


def to_save(state: State, machine: str, boot: str) -> SavedState | None:
    """Give what a later daemon can use; None if there is nothing."""
    if state.clocks is None:
        return None
    left = [leave(watched, state.clocks) for watched in state.watched.values()]
    disks = dict(kept for kept in left if kept is not None)
    return SavedState(machine, boot, state.clocks, disks) if disks else None


def wants_host(state: State) -> bool:
    """Tell whether it matters at the next tick what the host waits: a disk is at its limit.

    Asking at every tick would cost more than all else, for nothing. It is asked once at the
    beginning, to know what it can tell.
    """
    if state.clocks is None:
        return True
    judgements = [state.watched[device].judgement for device in state.awake]
    return any(
        judgement is not None and judgement.verdict in {"throttled", "met"}
        for judgement in judgements
    )


def configure(state: State, settings: Settings) -> State:
    """Take other settings; disks that stay watched keep what was counted of them."""
    state = msgspec.structs.replace(state, settings=settings)
    return _with_inventory(state, state.inventory, state.clocks)


def advance(state: State, tick: Tick) -> State:
    """Take one tick."""
    state = _with_news(state, tick)
    sampling = state.sampling.ticked(tick.lateness_s, tick.missed_ticks)
    untried = OF_HOST if tick.host is None else ()
    if tick.diskstats is None:
        sampling = sampling.with_troubles(tick.troubles, untried)
        return msgspec.structs.replace(state, sampling=sampling, blind=True)

    frame, active = _find_lines(state, tick.diskstats)
    elapsed = _elapsed(state, tick.clocks)
    assessed = state.assessed
    if isinstance(elapsed, float):
        assessed = assessed.plus(elapsed)
    elif elapsed is not None:
        sampling = sampling.with_gap(elapsed)
    moment = Moment(
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
    awake = set()
    troubles = dict(tick.troubles)
    for device in active:
        sighting = see(watched[device], frame.lines_of(device), tick.inflight.get(device), moment)
        watched[device] = sighting.watched
        if sighting.awake:
            awake.add(device)
        if sighting.gap is not None:
            sampling = sampling.with_gap(sighting.gap)
        if sighting.trouble is not None:
            troubles[f"diskstats:{device}"] = sighting.trouble
    if isinstance(elapsed, float) and state.host is not None and tick.host is not None:
        watched |= _with_host_wait(watched, active, between(state.host, tick.host))
    return State(
        state.settings,
        state.catalog,
        state.memory,
        state.inventory,
        watched,
        frozenset(awake),
        frame,
        tick.clocks,
        host=tick.host,
        last_host=tick.host or state.last_host,
        blind=False,
        assessed=assessed,
        sampling=sampling.with_troubles(troubles, untried),
    )


def _with_host_wait(
    watched: Mapping[str, Watched], active: Collection[str], added: HostWait
) -> dict[str, Watched]:
    """Lay what the host waited in this window to the disks that were throttled in it."""
    waited_s = {
        device: judgement.wait_s
        for device in active
        if (judgement := watched[device].judgement) and judgement.verdict == "throttled"
    }
    return {
        device: watched[device].with_host_wait(part)
        for device, part in shared(added, waited_s).items()
    }


def _with_news(state: State, tick: Tick) -> State:
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


def _find_lines(state: State, text: str) -> tuple[Frame, set[str]]:
    """Give the lines of this text and the devices that have to be looked at."""
    followed = None if state.frame is None else state.frame.follow(text)
    if followed is not None:
        frame, changed = followed
        return frame, changed | state.awake
    wholes = {disk.name: disk.partition_of for disk in state.inventory if disk.partition_of}
    disks = [watched.disk for watched in state.watched.values()]
    return lay_out(text, disks, wholes), set(state.watched)


def _elapsed(state: State, clocks: Clocks) -> float | GapReason | None:
    """Give the time since the last sample, or why it cannot be judged; None at the first."""
    if state.clocks is None:
        return None
    if state.blind:
        return "unreadable"
    return measure(state.clocks, clocks, state.settings.sampling.interval_s)


def _with_inventory(state: State, inventory: tuple[Disk, ...], now: Clocks | None) -> State:
    """Take the machine's devices, and choose among them those that are watched."""
    sampling = state.sampling
    watched = {}
    for disk in inventory:
        if not is_watched(disk, state.settings):
            continue
        assignment = assign(disk, state.settings, state.catalog)
        known = state.watched.get(disk.name)
        if known is None:
            watched[disk.name] = remember(state.memory, disk, assignment, now)
        elif known.disk.is_same_as(disk):
            same_credits = known.assignment.limits.burst == assignment.limits.burst
            watched[disk.name] = msgspec.structs.replace(
                known,
                disk=disk,
                assignment=assignment,
                purse=known.purse if same_credits else None,
            )
        else:
            sampling = sampling.with_gap("replaced")
            watched[disk.name] = remember(state.memory, disk, assignment, now)
    if now is not None:
        watched = {
            device: each.with_probes_asked_for(state.settings.probes_of(device), now.realtime_s)
            for device, each in watched.items()
        }
    return msgspec.structs.replace(
        state,
        inventory=inventory,
        watched=watched,
        awake=state.awake & watched.keys(),
        frame=None,
        sampling=sampling,
    )
