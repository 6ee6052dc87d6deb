"""One tick: everything that was read from the machine at one moment."""

import msgspec

from disksla.disks import Disk
from disksla.pipeline.probe_results import ProbeResult
from disksla.procfs import HostWait
from disksla.verdict import Clocks


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
    problems: dict[str, str] = msgspec.field(default_factory=dict, name="troubles")
    """What could not be read: `source` or `source:device` -> what was seen."""
    probes: tuple[ProbeResult, ...] = ()
    """How probes went that have ended since the tick before."""
