"""A simulated NFS client: its mount table, its mountstats, and the pipeline that reads them."""

from dataclasses import dataclass, field
from pathlib import Path

from disksla.kernel.disks.disk import nfs_disks
from disksla.kernel.nfs.mountstats import parse_mountstats
from disksla.kernel.procfs.mountinfo import parse_mountinfo
from disksla.promise.configuration.settings import Settings
from disksla.state.history.history import History
from disksla.state.pipeline.tick import Tick
from support.simulated_host import Machine

OPERATIONS = ("NULL", "READ", "WRITE", "COMMIT", "GETATTR", "OPEN", "LOOKUP", "DELEGRETURN")


@dataclass
class Connections:
    """Connections to one server; mounts may share them."""

    connects: int = 2
    sends: int = 0
    replies: int = 0
    number: int = 1

    def lines(self) -> str:
        """Return the lines of mountstats; requests are spread evenly."""
        parts = [
            (self.sends + index) // self.number - (self.replies + index) // self.number
            for index in range(self.number)
        ]
        replies = [(self.replies + index) // self.number for index in range(self.number)]
        return "".join(
            f"\txprt:\ttcp 0 0 {self.connects} 0 0 {reply + part} {reply} 0 0 0 2 0 0\n"
            for part, reply in zip(parts, replies, strict=True)
        )


@dataclass
class Export:
    """One mount of an export, and its counters."""

    source: str = "fs1.example:/export"
    point: str = "/data"
    minor: int = 50
    connections: Connections = field(default_factory=Connections)
    also_at: tuple[str, ...] = ()
    """Bind mounts, and second mounts."""
    counts: dict[str, list[int]] = field(default_factory=dict)
    payload: list[int] = field(default_factory=lambda: [0, 0])
    has_sessions: bool = False

    def does(
        self,
        operation: str,
        number: int,
        request_bytes: int = 0,
        took_ms: float = 1.0,
        queue_ms: float = 0.0,
    ) -> None:
        """Count operations that are done; all of them were sent and answered."""
        counted = self.counts.setdefault(operation, [0, 0, 0, 0])
        rises = (number, queue_ms * number, (took_ms - queue_ms) * number, took_ms * number)
        self.counts[operation] = [
            before + round(rise) for before, rise in zip(counted, rises, strict=True)
        ]
        if operation in {"READ", "WRITE"}:
            self.payload[operation == "WRITE"] += number * request_bytes
        self.connections.sends += number
        self.connections.replies += number

    def remounted(self, minor: int) -> None:
        """Start again from 0, as another superblock."""
        self.minor, self.counts, self.payload = minor, {}, [0, 0]
        self.connections = Connections(number=self.connections.number)

    def block(self, point: str) -> str:
        """Return the lines of mountstats."""
        operations = "".join(
            f"\t{name:>12}: {count} {count} 0 0 0 {queue_ms} {rtt_ms} {took_ms} 0\n"
            for name in OPERATIONS
            for count, queue_ms, rtt_ms, took_ms in [self.counts.get(name, [0, 0, 0, 0])]
        )
        return (
            f"device {self.source} mounted on {point} with fstype nfs4 statvers=1.1\n"
            "\topts:\trw,vers=4.2,proto=tcp\n\tage:\t100\n"
            f"\tnfsv4:\tbm0=0xfdffbfff,acl=0x3{',sessions' * self.has_sessions},pnfs=off\n"
            f"\tbytes:\t0 0 0 0 {self.payload[0]} {self.payload[1]} 0 0\n"
            "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
            f"{self.connections.lines()}\tper-op statistics\n{operations}\n"
        )


class NfsClient:
    """A machine with NFS mounts only, as disksla samples it."""

    def __init__(self, *exports: Export, settings: Settings | None = None) -> None:
        self.exports = list(exports)
        self.machine = Machine(settings=settings)
        self.history = History()
        self.tick(disks=True)

    def mountinfo(self) -> str:
        """Return the mount table."""
        return "".join(
            f"{number} 1 0:{export.minor} / {point} rw - nfs4 {export.source} rw\n"
            for number, export in enumerate(self.exports, 30)
            for point in (export.point, *export.also_at)
        )

    def mountstats(self) -> str:
        """Return the text of mountstats."""
        return "device proc mounted on /proc with fstype proc\n" + "".join(
            export.block(point)
            for export in self.exports
            for point in (export.point, *export.also_at)
        )

    def write(self, procfs: Path) -> None:
        """Write both to a fake procfs."""
        (procfs / "1").mkdir(parents=True, exist_ok=True)
        (procfs / "1" / "mountinfo").write_text(self.mountinfo())
        (procfs / "1" / "mountstats").write_text(self.mountstats())

    def tick(self, after_s: float = 0.1, *, disks: bool = False, read: bool = True) -> None:
        """Take a tick, with the mount table if it changed."""
        machine = self.machine
        machine.now_s += after_s
        inventory = nfs_disks(parse_mountinfo(self.mountinfo()))
        device_at = {point: disk.name for disk in inventory for point in disk.mount_points}
        found = parse_mountstats(self.mountstats(), device_at)
        machine.take(
            Tick(
                machine.clocks(),
                "",
                mounts=found.readings if read else None,
                disks=inventory if disks else None,
                problems={f"mountstats:{name}": why for name, why in found.problems.items()},
            )
        )
        self.history = self.history.after(machine.state)
