"""A scenario: a disk with QEMU's limits, its load and terms, and the verdicts expected of it."""

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
    events: tuple[Event, ...] = ()


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A disk and its load."""

    caption: str
    limits: QemuLimits
    load: tuple[Phase, ...]
    size: Size = Size(2**30)
    write_cache: bool = True
    """Whether the disk has a volatile cache (the guest sees `write back`)."""
    terms: str | dict[str, Any] | None = None
    """Terms of the disk in the configuration of disksla (default: none)."""
    expect: Expectation = Expectation()
    random: dict[str, Any] = {}
    """What its random numbers were chosen from (lab/template.py)."""


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
