"""The state: everything known after a tick, as an immutable record."""

from collections.abc import Mapping

import msgspec

from disksla.config import Settings
from disksla.disks import Disk
from disksla.limits import Catalog
from disksla.pipeline.changed_lines import DiskstatsLines
from disksla.pipeline.disk_state import DiskState
from disksla.pipeline.restore import PreviousRun, save_disk
from disksla.pipeline.sampler_stats import SamplerStats
from disksla.pipeline.saved_state import SavedState
from disksla.pipeline.totals import AssessedTime
from disksla.procfs import HostWait
from disksla.verdict import Clocks


class State(msgspec.Struct, frozen=True):
    """Everything known; published as it is, never changed."""

    settings: Settings
    catalog: Catalog
    previous_run: PreviousRun | None = None
    """What was saved by an earlier daemon."""
    inventory: tuple[Disk, ...] = ()
    """All block devices of the machine."""
    monitored: Mapping[str, DiskState] = {}
    active: frozenset[str] = frozenset()
    """Devices that did something at the last sample; their in-flight counts are wanted."""
    lines: DiskstatsLines | None = None
    """The last text of /proc/diskstats; None when lines have to be found again."""
    clocks: Clocks | None = None
    """At the last sample."""
    host: HostWait | None = None
    """What the host had waited up to the last sample; None if it was not asked."""
    last_host: HostWait = HostWait()
    """What it said when it was last asked."""
    unreadable: bool = False
    """/proc/diskstats could not be read at the last tick."""
    assessed: AssessedTime = AssessedTime()
    sampler_stats: SamplerStats = SamplerStats()


def to_saved_state(state: State, machine: str, boot: str) -> SavedState | None:
    """Give what a later daemon can use; None if there is nothing."""
    if state.clocks is None:
        return None
    left = [save_disk(watched, state.clocks) for watched in state.monitored.values()]
    disks = dict(kept for kept in left if kept is not None)
    return SavedState(machine, boot, state.clocks, disks) if disks else None


def needs_host_wait(state: State) -> bool:
    """Tell whether it matters at the next tick what the host waits: a disk is at its limit.

    Asking at every tick would cost more than all else, for nothing. It is asked once at the
    beginning, to know what it can tell.
    """
    if state.clocks is None:
        return True
    window_verdicts = [state.monitored[device].window_verdict for device in state.active]
    return any(
        window_verdict is not None and window_verdict.verdict in {"throttled", "met"}
        for window_verdict in window_verdicts
    )
