"""The state: everything known after a tick, as an immutable record."""

from collections.abc import Mapping

import msgspec

from disksla.kernel.consumers import WatchedDisk, Who
from disksla.kernel.disks import Disk
from disksla.kernel.procfs import HostWait
from disksla.promise.configuration import Configuration, Settings, UnusedEntry
from disksla.state.pipeline.changed_lines import DiskstatsLines
from disksla.state.pipeline.disk_state import DiskState
from disksla.state.pipeline.group_state import GroupState
from disksla.state.pipeline.restore import PreviousRun, save_disk, save_group
from disksla.state.pipeline.sampler_stats import SamplerStats
from disksla.state.pipeline.saved_state import DiskEvent, SavedState
from disksla.state.pipeline.totals import AssessedTime
from disksla.verdict.interval import Clocks
from disksla.verdict.throttling import DetectorState

MOST_LOOKED_AT = 8  # disks that are looked at closer at once
FIRST_LOOK_S = 1.2
"""Longer than a window of any limiter, and until the first second is decided. A disk that does not
pause in it is looked at no longer."""
SHORT_LOOK_S = 2.2
LOOK_S = 4.0
"""A disk that pauses is looked at for this time, or for SHORT_LOOK_S if ENOUGH_PAUSES are seen
then: two seconds are decided by then."""
ENOUGH_PAUSES = 20
LOOK_EVERY_S = 10.0  # as long as verdicts remember (`disksla.verdict.throttling`)


class MountsRead(msgspec.Struct, frozen=True, gc=False):
    """When the counters of NFS mounts were read last: at a tick, or less often if that costs."""

    assessed: AssessedTime  # time assessed until then
    boottime_s: float
    is_gap: bool = False  # whether a gap was since


class State(msgspec.Struct, frozen=True):
    """Everything known after a tick.

    `advance` and `configure` return a new state and share what did not change with the old one,
    so a published state never changes while it is being read.
    """

    configuration: Configuration  # in force
    previous_run: PreviousRun | None = None  # state saved by an earlier daemon
    inventory: tuple[Disk, ...] = ()  # all block devices of the machine
    monitored: Mapping[str, DiskState] = {}
    """The monitored disks by kernel name: those of the inventory that the settings select."""
    others: Mapping[str, DiskState] = {}
    """Disks that are not monitored, but whose I/O counts for a group. They are not published."""
    active: frozenset[str] = frozenset()
    """Devices to update at the next tick even if their lines do not change: at the last sample
    they had I/O, requests in flight or a malformed line."""
    at_limit: frozenset[str] = frozenset()
    """Those of the monitored that were at their limit in the last window."""
    lines: DiskstatsLines | None = None
    """Lines of the last /proc/diskstats; None if they have to be indexed again."""
    clocks: Clocks | None = None  # clocks at the last sample; None before the first
    host: HostWait | None = None  # iowait and PSI at the last sample; None if they were not read
    last_host: HostWait = HostWait()  # iowait and PSI when they were last read
    unreadable: bool = False  # /proc/diskstats could not be read at the last tick
    assessed: AssessedTime = AssessedTime()
    sampler_stats: SamplerStats = SamplerStats()
    unused: tuple[UnusedEntry, ...] = ()
    """Entries of the configuration and of terms files that apply to no disk."""
    cpus: int | None = None  # CPUs of this machine; None if no tick had them
    groups: Mapping[str, GroupState] = {}
    """Groups of monitored disks that share limits of the machine, by name."""
    with_write_cache: Mapping[str, tuple[int, int]] = {}
    """Major and minor number of the monitored disks with a write-back cache: of these, empty
    flushes are among the writes of /proc/diskstats."""
    device_at: Mapping[str, str] = {}  # the monitored NFS mounts by mount point
    mounts_read: MountsRead | None = None  # None before the first time
    consumers_seen_s: Mapping[Who, float] = {}
    """Consumers that have series of their own on any disk, or had in the last hour, with the
    monotonic time when each was seen last."""
    why_no_consumers: str | None = None
    """Why consumers are not known; None while they are, or before that is known."""

    @property
    def mounts(self) -> frozenset[str]:
        """The monitored NFS mounts."""
        return frozenset(self.device_at.values())

    @property
    def now_s(self) -> float:
        """Monotonic time of the last sample; 0 before the first."""
        return 0.0 if self.clocks is None else self.clocks.monotonic_s

    def assessed_of(self, *, is_mount: bool) -> AssessedTime:
        """Return the time assessed until the counters of disks, or NFS mounts, were read last."""
        return self.mounts_read.assessed if is_mount and self.mounts_read else self.assessed

    @property
    def settings(self) -> Settings:
        """Those of the configuration."""
        return self.configuration.settings


def to_saved_state(
    state: State, machine: str, boot: str, events: dict[str, tuple[DiskEvent, ...]] | None = None
) -> SavedState | None:
    """Return what a later daemon can resume from; None if there is nothing to save.

    `events` are those of the disks, by `disk_key`.
    """
    if state.clocks is None:
        return None
    saved = [save_disk(disk_state, state.clocks) for disk_state in state.monitored.values()]
    disks = dict(key_and_disk for key_and_disk in saved if key_and_disk is not None)
    of_groups = {name: save_group(group, state.clocks) for name, group in state.groups.items()}
    groups = {name: saved_credits for name, saved_credits in of_groups.items() if saved_credits}
    if not (disks or groups or events):
        return None
    return SavedState(machine, boot, state.clocks, disks, groups=groups, events=events or {})


def to_read_often(state: State) -> frozenset[str]:
    """Return the disks whose statistics page is to be read at every tick: those at a limit.

    They are at one by our own verdict on the last window, or by the last two readings.
    """
    return frozenset(
        device
        for device, disk_state in state.monitored.items()
        if disk_state.provider is not None
        and (disk_state.provider.is_throttled or device in state.at_limit)
    )


def needs_inflight(state: State) -> frozenset[str]:
    """Return the devices whose sysfs `inflight` has to be read at the next tick.

    That is of the active ones those with partitions, because there /proc/diskstats may be wrong.
    """
    return frozenset() if state.lines is None else state.active & state.lines.partitioned


def to_look_at(state: State, now_s: float) -> list[str]:
    """Return the disks that are looked at closer now: those that have been busy longest, first.

    That is at the start of each LOOK_EVERY_S of monotonic time, at the same time by all detectors,
    and after a disk became busy or its load changed. Those where a look would show nothing more
    are left out.
    """
    busy_since = {
        device: since_s
        for device in (state.active & state.monitored.keys()) - state.mounts
        if (since_s := state.monitored[device].detector.busy_since_s) is not None
        and not state.monitored[device].detector.is_explained
        and _is_seen_too_little(
            state.monitored[device].detector, now_s, min(now_s % LOOK_EVERY_S, now_s - since_s)
        )
    }
    return sorted(busy_since, key=lambda device: (busy_since[device], device))[:MOST_LOOKED_AT]


def _is_seen_too_little(detector: DetectorState, now_s: float, looked_s: float) -> bool:
    """Return whether a disk is looked at further, when it has been for this time."""
    if not FIRST_LOOK_S <= looked_s < LOOK_S:
        return looked_s < FIRST_LOOK_S
    pauses = detector.pauses_since(now_s - looked_s)
    return pauses > 0 and (pauses < ENOUGH_PAUSES or looked_s < SHORT_LOOK_S)


def to_watch(state: State) -> list[WatchedDisk]:
    """Return the monitored disks that have I/O, of which consumers are to be known.

    None where the configuration says so.
    """
    if not state.settings.consumers:
        return []
    devices = sorted((state.active & state.monitored.keys()) - state.mounts)
    disks = [state.monitored[device] for device in devices]
    return [_watched(disk_state) for disk_state in disks]


def _watched(disk_state: DiskState) -> WatchedDisk:
    disk, counters = disk_state.disk, disk_state.counters
    counted = (0, 0, 0, 0) if counters is None else (
        counters.reads, counters.writes, counters.reads_merged, counters.writes_merged
    )  # fmt: skip
    reads, writes, reads_merged, writes_merged = (each or 0 for each in counted)
    return WatchedDisk(
        device=disk.name,
        number=f"{disk.major}:{disk.minor}",
        is_busy=disk_state.is_at_limit or disk_state.detector.busy_since_s is not None,
        requests=reads + writes,
        merges=reads_merged + writes_merged,
        largest_request_bytes=disk.largest_request_bytes,
    )


def is_idle(state: State, diskstats: str | None) -> bool:
    """Return whether no disk did anything since `state`, by the text of /proc/diskstats."""
    is_active = not state.active <= state.mounts
    return not is_active and state.lines is not None and diskstats == state.lines.text


def needs_host_wait(state: State) -> bool:
    """Return whether iowait and PSI have to be read at the next tick.

    They are needed while a disk is at its limit, to attribute them to throttled disks. Reading
    them at every tick would cost more than everything else in it. They are read once at the
    first tick too, to find out which of them the kernel provides.
    """
    return state.clocks is None or bool(state.at_limit)
