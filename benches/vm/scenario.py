"""A scenario: disks with QEMU's limits, loads and terms, and the verdicts expected of them."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from lab.quantity import Duration, Size, decode
from lab.scenario import SEED, Expectation, drawn_text
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


class Phase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One phase of a load; phases follow one after the other."""

    seconds: Duration = msgspec.field(name="for")
    fio: str | None = None
    """Options of fio; direct I/O on the whole device."""
    pgbench: int | None = None
    """Clients of a PostgreSQL on ext4 on the device."""
    rate: int | None = None
    """Their transactions per second (default: as many as possible)."""
    events: tuple[Event, ...] = ()


class Disk(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A disk and its load."""

    limits: QemuLimits = QemuLimits()
    load: tuple[Phase, ...]
    size: Size = Size(2**30)
    write_cache: bool = True
    """Whether the disk has a volatile cache (the guest sees `write back`)."""
    terms: str | dict[str, Any] | None = None
    """Terms of the disk in the configuration of disksla (default: none)."""
    expect: Expectation = Expectation()


class SharedLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the machine over all disks of a scenario."""

    limits: dict[str, Any]
    """In the configuration of disksla."""
    throttle: QemuLimits | None = None
    """Of QEMU's throttle group that all disks are in (default: each disk has its own limits)."""
    expect: Expectation = Expectation()
    """Of all disks together."""


class Scenario(Disk, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A disk and its load, and others that are loaded at the same time.

    Phases of different disks that have the same number start together.
    """

    caption: str
    beside: tuple[Disk, ...] = ()
    machine: SharedLimits | None = None
    random: dict[str, Any] = {}
    """What its random numbers were chosen from (lab/template.py)."""

    @property
    def disks(self) -> tuple[Disk, ...]:
        """All disks, the first being that of the scenario itself."""
        return self, *self.beside

    def serials(self, name: str) -> list[str]:
        """Return the serial numbers of the disks, by the name of the scenario."""
        return [name, *(f"{name}-{number}" for number, _ in enumerate(self.beside, start=2))]

    def with_expectations_of(self, other: "Scenario") -> "Scenario":
        """Return the scenario with the expectations of another version of it."""
        machine = self.machine
        if machine is not None and other.machine is not None:
            machine = msgspec.structs.replace(machine, expect=other.machine.expect)
        beside = [
            msgspec.structs.replace(disk, expect=new.expect)
            for disk, new in zip(self.beside, other.beside, strict=True)
        ]
        return msgspec.structs.replace(
            self, expect=other.expect, beside=tuple(beside), machine=machine
        )

    def __post_init__(self) -> None:
        """Raise ValueError if a disk would be unplugged beside others."""
        phases = [phase for disk in self.disks for phase in disk.load]
        if self.beside and any(event.replug for phase in phases for event in phase.events):
            raise ValueError("replug: found several disks; expected one")
        if any(phase.events for disk in self.beside for phase in disk.load):
            raise ValueError("events: found them in `beside`; expected them of the first disk")


def read_scenario(path: Path, seed: int = SEED) -> Scenario:
    """Read a scenario; raises ValueError if it is invalid."""
    if len(path.stem) > _LONGEST_NAME:
        raise ValueError(
            f"{path.stem}: found {len(path.stem)} characters; expected {_LONGEST_NAME}"
        )
    return msgspec.convert(yaml.safe_load(drawn_text(path, seed)), Scenario, dec_hook=decode)


def all_scenarios() -> dict[str, Path]:
    """Return the files of all scenarios, by name."""
    return {path.stem: path for path in sorted(HERE.glob("*.yml"))}
