"""What a person may say about disks and how to watch them: the records of the configuration.

The records are the schema that `form` reads by. Names of fields carry units; names of keys
do not, because the values do ('100ms', '25MB').
"""

import math
from typing import Annotated, Literal, get_args

import msgspec

from disksla.config.custom_terms import SeparateTerms, SumTerms, TimeSharedTerms
from disksla.config.fields import (
    CATALOG_ID,
    CRONTAB,
    AbsolutePath,
    Bytes,
    BytesPerSecond,
    DeviceName,
    IdName,
    Iops,
    Regex,
)
from disksla.disks import PROBE_MAX_LOAD
from disksla.schema import Text, choice, duration, percentage, rate, size
from disksla.units import KIB, MIB

ProbeKind = Literal["read-latency", "write-latency"]
PROBE_KINDS: tuple[ProbeKind, ...] = get_args(ProbeKind)
ProbeTarget = Literal["device", "file"]

PROBE_REQUEST_BYTES = 4 * KIB
DEFAULT_EVERY_S = 600.0
CRON_SPLAY_S = 300.0


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all sections."""


class SamplingSettings(_Strict, frozen=True):
    """How often the disks are looked at."""

    interval_s: Annotated[float, duration("10ms", "10s", "100ms")] = msgspec.field(
        default=0.1, name="interval"
    )


class AssessmentSettings(_Strict, frozen=True):
    """How what was seen is held against what was promised."""

    tolerance_ratio: Annotated[float, percentage(0.1, 50)] = msgspec.field(
        default=0.03, name="tolerance"
    )
    """Share by which a rate may miss a limit and still be at it."""


class DiscoverySettings(_Strict, frozen=True):
    """Which disks are watched beyond those named under `disks`; searched in kernel names."""

    include: tuple[Regex, ...] = ()
    exclude: tuple[Regex, ...] = ()


class DiskMatch(_Strict, frozen=True):
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

    match: DiskMatch
    terms: Annotated[str, CATALOG_ID] | SumTerms | SeparateTerms | TimeSharedTerms
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

    kind: Annotated[ProbeKind, choice("read-latency", "write-latency")]
    disks: (
        Annotated[Literal["all"], choice("all", expected="all (or a list of kernel names)")]
        | tuple[DeviceName, ...]
    ) = "all"
    every_s: Annotated[float, duration("10s", "30d", "10m")] | None = msgspec.field(
        default=None, name="every"
    )
    """None for 10 minutes, unless there is `cron`."""
    cron: Annotated[str, CRONTAB] | None = None
    """When, in UTC, as crontab(5) has it; instead of `every`."""
    splay_s: Annotated[float, duration("1s", "1d", "5m")] | None = msgspec.field(
        default=None, name="splay"
    )
    """Time over which machines are spread; None for all of `every`, or 5 minutes after `cron`."""
    rate_iops: Annotated[float, rate(1, 1000)] = 20.0
    runtime_s: Annotated[float, duration("1s", "1m", "5s")] = msgspec.field(
        default=5.0, name="runtime"
    )
    target: Annotated[ProbeTarget, choice("device", "file")] | None = None
    """None for the device of reads, and a file of writes."""
    file_size_bytes: Annotated[int, size("64KiB", "64MiB", "1MiB")] = msgspec.field(
        default=MIB, name="file_size"
    )
    busy_share: Annotated[float, percentage(1, 100)] = msgspec.field(
        default=PROBE_MAX_LOAD, name="busy"
    )
    """Share of the promise in use above which a disk is left alone."""
    credits_share: Annotated[float, percentage(0, 100)] = msgspec.field(
        default=0.05, name="credits"
    )
    """Share of a full bucket below which a disk is left alone."""
    daily_bytes: Bytes = msgspec.field(default=256 * MIB, name="daily")
    """The most that probes of this kind transfer of one disk in a day of UTC."""

    def __post_init__(self) -> None:
        """Refuse two schedules, writes to a device, and a probe that would never end."""
        if self.every_s is not None and self.cron is not None:
            raise ValueError("both `every` and `cron` are given; expected one of them")
        if self.cron is None and self.runtime_s >= self.period_s:
            raise ValueError(
                "runs longer than the time between two runs; expected runtime < every"
            )
        if self.cron is None and self.splay_s is not None and self.splay_s > self.period_s:
            raise ValueError("splay is longer than the time between two runs; expected less")
        if self.kind == "write-latency" and self.target == "device":
            raise ValueError("write-latency never writes to a device; expected target: file")
        if self.most_bytes > self.daily_bytes:
            raise ValueError("one run transfers more than `daily`; expected less than that")

    @property
    def period_s(self) -> float:
        """Time between two runs, where there is no `cron`."""
        return self.every_s or DEFAULT_EVERY_S

    @property
    def spread_s(self) -> float:
        """Time over which machines and disks are spread, so that they do not probe in step."""
        return self.splay_s or (self.period_s if self.cron is None else CRON_SPLAY_S)

    @property
    def most_bytes(self) -> int:
        """What one run transfers at most, its file included."""
        requests = math.floor(self.rate_iops * self.runtime_s) + 1
        file_bytes = self.file_size_bytes if self.uses_file else 0
        return requests * PROBE_REQUEST_BYTES + file_bytes

    @property
    def uses_file(self) -> bool:
        """Whether a file of our own is probed, and not the device."""
        return self.kind == "write-latency" or self.target == "file"

    def covers(self, device: str) -> bool:
        """Tell whether a watched disk is one of those to be probed."""
        return self.disks == "all" or device in self.disks


class StateSettings(_Strict, frozen=True):
    """What outlives the process."""

    directory: AbsolutePath = "/var/lib/disksla"


class Settings(_Strict, frozen=True):
    """A whole configuration; the default is that of no configuration."""

    sampling: SamplingSettings = SamplingSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    assessment: AssessmentSettings = AssessmentSettings()
    disks: tuple[DiskEntry, ...] = ()
    probes: tuple[ProbeEntry, ...] = ()
    state: StateSettings = StateSettings()

    def probes_of(self, device: str) -> dict[ProbeKind, float | None]:
        """Give the kinds of probes that are asked for of a disk, with the time between two turns.

        In seconds; where several entries ask for one kind, the shortest, and None if all of them
        are due by a crontab line.
        """
        asked: dict[ProbeKind, float | None] = {}
        for entry in self.probes:
            if entry.covers(device):
                known = [asked.get(entry.kind), None if entry.cron else entry.period_s]
                asked[entry.kind] = min((each for each in known if each is not None), default=None)
        return asked
