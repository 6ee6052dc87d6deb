"""A scenario: disks with their limits, loads and terms, and the verdicts expected of them."""

from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from lab.model import DiskModel
from lab.quantity import Duration, decode

HERE = Path(__file__).parent / "scenarios"


class Phase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One phase of a load; phases follow one after the other."""

    seconds: Duration = msgspec.field(name="for")
    fio: str | None = None
    """Options of fio; direct I/O on the whole device, for as long as the phase."""
    dsync: str | None = None
    """Options of dd, which writes a file on ext4, each block with oflag=dsync."""


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is required of the verdicts on one disk; absent keys are not judged."""

    throttled: Literal["never", "seconds", "share", "most"] | None = None
    """`seconds`: within 2 % of the truth and two windows at each edge; `share`: within 0.05;
    `most`: at least nine tenths of the truth, because a constant rate is detected late."""
    limit: Literal["iops", "bandwidth", "unknown"] | None = None
    """Limit that is reported while the disk is throttled."""
    ceiling: bool = False
    """The observed ceiling is within 1 % of the rate at which the disk was throttled."""
    wait: bool = False
    """The throttle wait is within 7 %."""
    prompt: bool = False
    """Onset and end are detected within 300 ms."""
    below_since: Duration | None = None
    """Time from which the disk gives less than promised; detected within 2 s, never before."""
    stalled: bool = False
    """`stalled` is reported while nothing completes, within two windows at each edge."""
    never: tuple[str, ...] = ()
    """Verdicts that must not occur."""
    mostly: str | None = None
    """Verdict of at least nine tenths of the time under load."""
    credits: bool = False
    """The bounds contain the truth at every tick."""
    credits_close: bool = False
    """At the end the bounds are within 5 % of the capacity, and the estimate within 2 %."""
    empty_since: Duration | None = None
    """Time from which a steady load drains credits with close bounds: from then until the last
    second, the time to exhaustion is within 10 %."""
    iowait: Literal["most", "little"] | None = None
    """The iowait of the machine that is attributed to the disk: more than half of it, or less than
    a twentieth of the time in which the disk was throttled."""


class LabDisk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One disk of a scenario."""

    load: tuple[Phase, ...]
    disk: DiskModel = DiskModel()
    kind: Literal["served", "stacked", "cgroup"] = "served"
    """`served` by the lab; two stacked loop devices with a limit of the kernel on the lower one
    (`stacked`); or an unlimited disk below a limited control group (`cgroup`)."""
    iops: int | None = None
    """Limit of the kernel, for `stacked` and `cgroup`."""
    terms: str | dict[str, Any] | None = None
    """Terms of the disk in the configuration of disksla (default: none)."""
    sold_size: str | None = None
    """Size of the disk in the configuration, if the terms depend on it."""
    expect: Expectation = Expectation()


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Disks that are loaded at the same time."""

    caption: str
    disks: tuple[LabDisk, ...]


def read_scenario(path: Path) -> Scenario:
    """Read a scenario; raises msgspec.ValidationError if it is invalid."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return msgspec.convert(document, Scenario, dec_hook=decode)


def all_scenarios() -> dict[str, Path]:
    """Return the files of all scenarios, by name."""
    return {path.stem: path for path in sorted(HERE.glob("*.yml"))}
