"""What a person may say about disks and how to watch them: the records of the configuration.

The records are the schema that `form` reads by. Names of fields carry units; names of keys
do not, because the values do ('100ms', '25MB').
"""

from typing import Annotated, Literal

import msgspec

from disksla.core.contract import SeparateContract, SumContract, TimeSharedContract
from disksla.core.doors import (
    CATALOGUE_ID,
    AbsolutePath,
    Bytes,
    BytesPerSecond,
    DeviceName,
    IdName,
    Iops,
    Regex,
    Text,
    duration,
    percentage,
    rate,
    word,
)


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all sections."""


class Sampling(_Strict, frozen=True):
    """How often the disks are looked at."""

    interval_s: Annotated[float, duration("10ms", "10s", "100ms")] = msgspec.field(
        default=0.1, name="interval"
    )


class Assessment(_Strict, frozen=True):
    """How what was seen is held against what was promised."""

    tolerance_ratio: Annotated[float, percentage(0.1, 50)] = msgspec.field(
        default=0.03, name="tolerance"
    )
    """Share by which a rate may miss a limit and still be at it."""


class Discovery(_Strict, frozen=True):
    """Which disks are watched beyond those named under `disks`; searched in kernel names."""

    include: tuple[Regex, ...] = ()
    exclude: tuple[Regex, ...] = ()


class Match(_Strict, frozen=True):
    """Which disk an entry is about; all that is given must hold."""

    device: DeviceName | None = None
    serial: Text | None = None
    wwn: Text | None = None
    model: Text | None = None
    mountpoint: AbsolutePath | None = None
    by_id: IdName | None = None

    def __post_init__(self) -> None:
        """Refuse an entry that would match every disk."""
        if not self.given():
            keys = ", ".join(self.__struct_fields__)
            raise ValueError(f"matches nothing in particular; expected at least one of: {keys}")

    def given(self) -> dict[str, str]:
        """Give the keys that must hold, with their values."""
        values = msgspec.structs.asdict(self)
        return {key: value for key, value in values.items() if value is not None}


class DiskEntry(_Strict, frozen=True):
    """The terms of the disks that match."""

    match: Match
    terms: Annotated[str, CATALOGUE_ID] | SumContract | SeparateContract | TimeSharedContract
    size_bytes: Bytes | None = msgspec.field(default=None, name="size")
    """Where the size that was sold differs from what the kernel says."""
    iops: Iops | None = None
    """What was provisioned, for types that are sold so."""
    bytes_per_second: BytesPerSecond | None = msgspec.field(default=None, name="bandwidth")

    def __post_init__(self) -> None:
        """Refuse provisioned rates beside written-out terms."""
        if not isinstance(self.terms, str) and (self.iops or self.bytes_per_second):
            raise ValueError("written-out terms carry their own rates; expected none beside them")


class ProbeEntry(_Strict, frozen=True):
    """One measurement of latency that is repeated."""

    kind: Annotated[
        Literal["read-latency", "write-latency"], word("read-latency", "write-latency")
    ]
    disks: (
        Annotated[Literal["all"], word("all", expected="all (or a list of kernel names)")]
        | tuple[DeviceName, ...]
    ) = "all"
    every_s: Annotated[float, duration("10s", "30d", "10m")] = msgspec.field(
        default=600.0, name="every"
    )
    rate_iops: Annotated[float, rate(1, 1000)] = 20.0
    runtime_s: Annotated[float, duration("1s", "1m", "5s")] = msgspec.field(
        default=5.0, name="runtime"
    )

    def __post_init__(self) -> None:
        """Refuse a probe that would never end before it is due again."""
        if self.runtime_s >= self.every_s:
            raise ValueError(
                "runs longer than the time between two runs; expected runtime < every"
            )


class State(_Strict, frozen=True):
    """What outlives the process."""

    directory: AbsolutePath = "/var/lib/disksla"


class Settings(_Strict, frozen=True):
    """A whole configuration; the default is that of no configuration."""

    sampling: Sampling = Sampling()
    discovery: Discovery = Discovery()
    assessment: Assessment = Assessment()
    disks: tuple[DiskEntry, ...] = ()
    probes: tuple[ProbeEntry, ...] = ()
    state: State = State()
