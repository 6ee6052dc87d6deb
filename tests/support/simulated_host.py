"""A simulated machine: its disks, its clocks, and the state of the pipeline after its ticks."""

from disksla.base.units import GIB
from disksla.kernel.disks.disk import Disk
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.machine import MachineChoice
from disksla.promise.configuration.configuration import Configuration
from disksla.promise.configuration.matched import match_disks
from disksla.promise.configuration.settings import Settings
from disksla.state.pipeline.advance import advance, configure
from disksla.state.pipeline.state import State, needs_inflight
from disksla.state.pipeline.tick import Tick
from disksla.verdict.interval.interval import Clocks

CATALOG = load_catalog()

FIELDS = (
    "reads",
    "reads_merged",
    "read_sectors",
    "read_ms",
    "writes",
    "writes_merged",
    "written_sectors",
    "write_ms",
    "inflight",
    "busy_ms",
    "queue_ms",
    "discards",
    "discards_merged",
    "discarded_sectors",
    "discard_ms",
    "flushes",
    "flush_ms",
)


def a_disk(name: str = "vda", minor: int = 0, **attributes: object) -> Disk:
    """Return a disk of 100 GiB with these attributes."""
    return Disk(name, 254, minor, size_bytes=100 * GIB, **attributes)  # type: ignore[arg-type]


def reconfigured(
    state: State, settings: Settings, machines: tuple[MachineChoice, ...] = ()
) -> State:
    """Return a state with other settings, and the same catalogue."""
    configuration = Configuration(settings, state.configuration.catalog, machines)
    return configure(state, match_disks(configuration, state.inventory), state.clocks)


class Machine:
    """Disks whose counters tests set, and the state of the pipeline that samples them."""

    def __init__(
        self,
        *disks: Disk,
        settings: Settings | None = None,
        fields: int = 20,
        already: dict[str, dict[str, int]] | None = None,
        unreadable: bool = False,
    ) -> None:
        self.disks = disks
        self.fields = fields
        self.now_s = 1000.0
        self.asleep_s = 0.0
        self.set_by_s = 0.0
        self.numbers = {
            disk.name: dict.fromkeys(FIELDS, 0) | (already or {}).get(disk.name, {})
            for disk in disks
        }
        self.sysfs_inflight: dict[str, tuple[int, int]] = {}
        self.data_writes: dict[str, tuple[int, int]] = {}
        self.state = State(Configuration(settings or Settings(), CATALOG))
        self.tick(disks=disks, text=None if unreadable else "as it is")

    def does(self, device: str, **rises: int) -> None:
        """Increase counters of a disk; `inflight` is set."""
        for name, rise in rises.items():
            before = 0 if name == "inflight" else self.numbers[device][name]
            self.numbers[device][name] = before + rise

    def text(self) -> str:
        """Return the text of /proc/diskstats."""
        return "".join(
            f"{disk.major:4d} {disk.minor:7d} {disk.name} "
            + " ".join(str(self.numbers[disk.name][field]) for field in FIELDS[: self.fields - 3])
            + "\n"
            for disk in self.disks
        )

    def clocks(self) -> Clocks:
        """Return the clocks."""
        boottime_s = self.now_s + self.asleep_s
        return Clocks(self.now_s, boottime_s, 1.7e9 + boottime_s + self.set_by_s)

    def tick(
        self,
        after_s: float = 0.1,
        *,
        text: str | None = "as it is",
        disks: tuple[Disk, ...] | None = None,
        cpus: int | None = None,
        problems: dict[str, str] | None = None,
    ) -> State:
        """Advance the clocks, and take a tick of the present counters."""
        self.now_s += after_s
        inflight = {
            device: counts
            for device, counts in self.sysfs_inflight.items()
            if device in needs_inflight(self.state)
        }
        self.take(
            Tick(
                self.clocks(),
                self.text() if text == "as it is" else text,
                inflight=inflight,
                data_writes=dict(self.data_writes),
                disks=disks,
                cpus=cpus,
                problems=problems or {},
            )
        )
        return self.state

    def take(self, tick: Tick) -> None:
        """Advance the state by a tick."""
        self.state = advance(self.state, tick)
