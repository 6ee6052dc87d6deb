"""A scenario: disks that are held, what loads them, what they were sold as, what must be seen."""

from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from lab.model import DiskModel
from lab.quantity import Duration, decode

HERE = Path(__file__).parent / "scenarios"


class Phase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing after the other that is done to a disk."""

    seconds: Duration = msgspec.field(name="for")
    fio: str | None = None
    """Options of fio; direct I/O on the whole device, for as long as the phase."""
    dsync: str | None = None
    """Options of dd, which writes a file on ext4, each block with oflag=dsync."""


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must be seen of one disk; what is not given is not judged."""

    throttled: Literal["never", "seconds", "share", "most"] | None = None
    """`seconds`: within 2 % of the truth and two windows at each edge; `share`: within 0.1;
    `most`: three quarters of the truth at least, where a signature has to be seen first."""
    limit: Literal["iops", "bandwidth", "unknown"] | None = None
    """What the counter must name while the disk is throttled."""
    ceiling: bool = False
    """The observed ceiling is within 1 % of the rate at which the disk was held."""
    wait: bool = False
    """The waiting that throttling added is within 5 %."""
    prompt: bool = False
    """Onset and end are seen within 300 ms."""
    below_since: Duration | None = None
    """From when on the disk gives less than promised; seen within 2 s, and never before."""
    stalled: bool = False
    """For as long as nothing completed, within two windows at each edge."""
    never: tuple[str, ...] = ()
    """Verdicts that must not be given."""
    mostly: str | None = None
    """Verdict of most of the time under load."""
    credits: bool = False
    """The bounds contain the truth at every tick."""
    credits_close: bool = False
    """In the end bounds are within 5 % of capacity and the estimate within 2 %."""
    empty_since: Duration | None = None
    """From when on a steady load drains credits of which enough is known: from then until the
    last second, the time to their end is within 10 %."""
    iowait: Literal["most", "little"] | None = None
    """The part of the machine's iowait that is laid to the disk: more than half of it, or less
    than a twentieth of the time for which it was throttled."""


class LabDisk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One disk of a scenario."""

    load: tuple[Phase, ...]
    disk: DiskModel = DiskModel()
    kind: Literal["served", "stacked", "cgroup"] = "served"
    """`served` by the lab; two loops with the kernel's limit on the lower one (`stacked`); or a
    disk that is free below a control group that is not (`cgroup`)."""
    iops: int | None = None
    """The kernel's limit, for `stacked` and `cgroup`."""
    terms: str | dict[str, Any] | None = None
    """What disksla is told, as in the configuration; nothing unless given."""
    sold_size: str | None = None
    """And the size that it is told, where terms depend on it."""
    expect: Expectation = Expectation()


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Disks that are loaded at the same time."""

    caption: str
    disks: tuple[LabDisk, ...]
    short: bool = False
    """Part of `make check`."""


def read_scenario(path: Path) -> Scenario:
    """Read one scenario; raises msgspec.ValidationError for what is none."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return msgspec.convert(document, Scenario, dec_hook=decode)


def all_scenarios() -> dict[str, Path]:
    """Give all scenarios by name."""
    return {path.stem: path for path in sorted(HERE.glob("*.yml"))}
