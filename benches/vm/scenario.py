"""A scenario is one of the lab, with QEMU's limits, and with what happens to the machine."""

from pathlib import Path

import msgspec

from lab import scenario as lab
from lab.model import Duration
from lab.scenario import SEED
from vm.limits import QemuLimits

HERE = Path(__file__).parent / "scenarios"
_LONGEST_NAME = 20
"""Of a serial number of virtio-blk."""


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to the virtual machine during a load."""

    at: Duration
    """Since the start of the load."""
    limits: QemuLimits | None = None
    """New limits of the disk."""
    pause: Duration | None = None
    """Time for which the virtual machine is stopped."""
    replug: bool = False
    """The disk is unplugged, and plugged in again."""


class Phase(lab.Phase, frozen=True, forbid_unknown_fields=True):
    """One phase of a load: fio on the device, or pgbench on a PostgreSQL on ext4 on it."""

    events: tuple[Event, ...] = ()


class Disk(lab.LabDisk, frozen=True, forbid_unknown_fields=True):
    """A disk and its load."""

    load: tuple[Phase, ...] = ()
    limits: QemuLimits = QemuLimits()


class SharedLimits(lab.Machine, frozen=True, forbid_unknown_fields=True):
    """Limits of the machine over all disks of a scenario."""

    throttle: QemuLimits | None = None
    """Of QEMU's throttle group that all disks are in (default: each disk has its own limits)."""


class Scenario(lab.Scenario, frozen=True, forbid_unknown_fields=True):
    """Disks that are loaded at the same time; phases of the same number start together."""

    disks: tuple[Disk, ...] = ()
    machine: SharedLimits | None = None

    def serials(self, name: str) -> list[str]:
        """Return the serial numbers of the disks, by the name of the scenario."""
        return [name, *(f"{name}-{number}" for number in range(2, len(self.disks) + 1))]

    def __post_init__(self) -> None:
        """Raise ValueError if a disk would be unplugged beside others."""
        of_first, *of_others = [[each.events for each in disk.load] for disk in self.disks]
        if of_others and any(event.replug for events in of_first for event in events):
            raise ValueError("replug: found several disks; expected one")
        if any(map(any, of_others)):
            raise ValueError("events: found them of another disk; expected them of the first")


def read_scenario(path: Path, seed: int = SEED) -> Scenario:
    """Read a scenario; raises ValueError if it is invalid."""
    if len(path.stem) > _LONGEST_NAME:
        raise ValueError(
            f"{path.stem}: found {len(path.stem)} characters; expected {_LONGEST_NAME}"
        )
    return lab.read(path, Scenario, seed)


def all_scenarios() -> dict[str, Path]:
    """Return the files of all scenarios, by name."""
    return lab.all_scenarios(HERE)
