"""A scenario: a disk with QEMU's limits, its load and terms, and the verdicts expected of it."""

import random
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import msgspec
import yaml

from lab.quantity import Duration, Size, decode
from lab.scenario import Expectation
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
    """Numbers of this run: `name: [LEAST, MOST]`, or `name: {of: OTHER, times: FACTOR}`. In the
    other keys, `$name` stands for the number."""


class Chosen(NamedTuple):
    """A scenario with its random numbers."""

    name: str
    numbers: dict[str, int]
    scenario: Scenario


def choose(name: str, seed: int) -> Chosen:
    """Read a scenario with random numbers, which depend on its name and the seed only."""
    numbers = random_numbers(_text(name), f"{seed} {name}")
    return Chosen(name, numbers, read_scenario(name, numbers))


def read_scenario(name: str, numbers: dict[str, int]) -> Scenario:
    """Read a scenario with these numbers; raises msgspec.ValidationError if it is invalid."""
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"{name}: found {len(name)} characters; expected {_LONGEST_NAME}")
    return parse_scenario(_text(name), numbers)


def random_numbers(text: str, seed: str) -> dict[str, int]:
    """Return numbers as the key `random` of a scenario asks for."""
    choice = random.Random(seed)
    numbers: dict[str, int] = {}
    for key, rule in (yaml.safe_load(text).get("random") or {}).items():
        if isinstance(rule, list):
            numbers[key] = choice.randint(*rule)
        else:
            numbers[key] = round(numbers[rule["of"]] * rule["times"])
    return numbers


def parse_scenario(text: str, numbers: dict[str, int]) -> Scenario:
    """Parse a scenario."""
    document = yaml.safe_load(Template(text).substitute(numbers))
    return msgspec.convert(document, Scenario, dec_hook=decode)


def _text(name: str) -> str:
    return (HERE / f"{name}.yml").read_text(encoding="utf-8")


def all_scenarios() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(path.stem for path in HERE.glob("*.yml"))
