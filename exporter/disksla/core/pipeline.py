"""The front hall: everything known so far and one tick of the world make everything known now.

`advance` is called by the sampler thread, by `replay` on a recording, and by tests. It reads no
clock and no file, so that all three see the same.
"""

from collections.abc import Mapping

import msgspec

from disksla.core.disk import Disk
from disksla.core.frame import Frame, lay_out
from disksla.core.interval import Clocks, GapReason, measure
from disksla.core.matching import assign, is_watched
from disksla.core.sampling import Sampling
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
    troubles: dict[str, str] = {}
    """What could not be read: `source` or `source:device` -> what was seen."""


class State(msgspec.Struct, frozen=True):
    """Everything known; published as it is, never changed."""

    settings: Settings
    catalog: Catalog
    inventory: tuple[Disk, ...] = ()
    """All block devices of the machine."""
    watched: Mapping[str, Watched] = {}
    awake: frozenset[str] = frozenset()
    """Devices that did something at the last sample; their in-flight counts are wanted."""
    frame: Frame | None = None
    """The last text of /proc/diskstats; None when lines have to be found again."""
    clocks: Clocks | None = None
    """At the last sample."""
    blind: bool = False
    """/proc/diskstats could not be read at the last tick."""
    assessed: Assessed = Assessed()
    sampling: Sampling = Sampling()


def configure(state: State, settings: Settings) -> State:
    """Take other settings; disks that stay watched keep what was counted of them."""
    return _with_inventory(msgspec.structs.replace(state, settings=settings), state.inventory)


def advance(state: State, tick: Tick) -> State:
    """Take one tick."""
    if tick.disks is not None:
        state = _with_inventory(state, tick.disks)
    sampling = state.sampling.ticked(tick.lateness_s, tick.missed_ticks)
    if tick.diskstats is None:
        sampling = sampling.with_troubles(tick.troubles)
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
        elapsed_s=elapsed if isinstance(elapsed, float) else 0.0,
        before=state.assessed,
        after=assessed,
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
    return State(
        state.settings,
        state.catalog,
        state.inventory,
        watched,
        frozenset(awake),
        frame,
        tick.clocks,
        blind=False,
        assessed=assessed,
        sampling=sampling.with_troubles(troubles),
    )


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


def _with_inventory(state: State, inventory: tuple[Disk, ...]) -> State:
    """Take the machine's devices, and choose among them those that are watched."""
    sampling = state.sampling
    watched = {}
    for disk in inventory:
        if not is_watched(disk, state.settings):
            continue
        assignment = assign(disk, state.settings, state.catalog)
        known = state.watched.get(disk.name)
        if known is None:
            watched[disk.name] = Watched(disk, assignment)
        elif known.disk.is_same_as(disk):
            watched[disk.name] = msgspec.structs.replace(known, disk=disk, assignment=assignment)
        else:
            sampling = sampling.with_gap("replaced")
            watched[disk.name] = Watched(disk, assignment)
    return msgspec.structs.replace(
        state,
        inventory=inventory,
        watched=watched,
        awake=state.awake & watched.keys(),
        frame=None,
        sampling=sampling,
    )
