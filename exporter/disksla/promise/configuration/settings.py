"""Settings: the records of the configuration file, which are its schema.

Names of fields have a unit; names of keys have none, because the values do ('100ms', '25MB').
"""

import math
import re
from typing import Annotated, Any, Literal, get_args

import msgspec
import re2

from disksla.base import schema
from disksla.base.schema import pattern
from disksla.base.units import KIB, MIB
from disksla.promise import disk_entry
from disksla.promise.configuration.custom_terms import CustomTerms

ProbeKind = Literal["read-latency", "write-latency"]
PROBE_KINDS: tuple[ProbeKind, ...] = get_args(ProbeKind)
ProbeTarget = Literal["device", "file"]
Profile = Literal["lean", "default", "full"]

PROBE_REQUEST_BYTES = 4 * KIB
DEFAULT_EVERY_S = 600.0
CRON_SPLAY_S = 300.0


class DevicePattern(msgspec.Struct, frozen=True):
    """A regular expression that is searched in kernel names.

    It is an RE2 expression, as in node_exporter and Prometheus: the time of a search is linear in
    the length of the name. Python's `re` backtracks: '(a|a)*b' could stop the sampler for minutes.
    """

    pattern: str

    @classmethod
    def parse(cls, text: str) -> "DevicePattern":
        """Return the pattern. Raise ValueError, with the reason, if RE2 does not compile it."""
        try:
            _compiled(text)
        except re2.error as error:
            reason = error.args[0].decode(errors="replace")
            raise ValueError(f"found '{text}'; expected a regular expression ({reason})") from None
        return cls(text)

    def is_in(self, name: str) -> bool:
        """Return whether the expression matches anywhere in a name."""
        return _compiled(self.pattern).search(_text(name)) is not None


def _compiled(pattern: str) -> Any:
    """Return the compiled expression; RE2 caches the last 128."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(_text(pattern), options)


def _text(text: str) -> str:
    """Return text that can be encoded as UTF-8; file names may contain surrogates."""
    return text.encode(errors="replace").decode()


def _parse_crontab(text: str) -> str:
    """Weekdays must be names, because 0 is Sunday to cron and Monday to APScheduler."""
    fields = text.split()
    if (
        len(fields) != _CRONTAB_FIELDS
        or not re.fullmatch(r"[0-9a-zA-Z*/, -]+", text)
        or re.search(r"[0-9]", fields[-1])
    ):
        raise ValueError(f"found '{text}'; expected {CRONTAB_EXPECTED}")
    return " ".join(fields)


_CRONTAB_FIELDS = 5
CRONTAB_EXPECTED = (
    "minute, hour, day, month and weekday (by name), in UTC, such as '30 4 * * mon-fri'"
)
AbsolutePath = Annotated[str, pattern(disk_entry.PATH, r"/.*")]
Regex = Annotated[
    DevicePattern,
    schema.FieldType("a regular expression such as '^vd[b-z]$'", DevicePattern.parse),
]
WebAddress = Annotated[
    str,
    pattern("an address such as https://grafana.example.com/d/disksla-disk", r"https?://[^\s#]+"),
]
CRONTAB = schema.FieldType(CRONTAB_EXPECTED, _parse_crontab)


class SamplingSettings(disk_entry.Strict, frozen=True):
    """How often the disks are sampled."""

    interval_s: Annotated[float, schema.duration("10ms", "10s", "100ms")] = msgspec.field(
        default=0.1, name="interval"
    )


class AssessmentSettings(disk_entry.Strict, frozen=True):
    """How rates are compared with limits."""

    tolerance_ratio: Annotated[float, schema.percentage(0.1, 50)] = msgspec.field(
        default=0.03, name="tolerance"
    )
    """Share by which a rate may be below a limit and count as at the limit."""


class DiscoverySettings(disk_entry.Strict, frozen=True):
    """Which disks are monitored besides those under `disks`; patterns of kernel names."""

    include: tuple[Regex, ...] = ()
    exclude: tuple[Regex, ...] = ()


class DiskEntry(disk_entry.DiskValues, frozen=True, kw_only=True):
    """The terms of the matching disks."""

    terms: Annotated[str, disk_entry.CATALOG_ID] | CustomTerms

    def __post_init__(self) -> None:
        """Raise ValueError for provisioned rates or options together with custom terms."""
        super().__post_init__()
        if isinstance(self.terms, str):
            return
        if self.iops or self.bytes_per_second or self.options:
            raise ValueError(
                "found iops, bandwidth or options next to custom terms; expected rates in `terms`"
            )


class MachineSettings(disk_entry.Strict, frozen=True):
    """The machine that disksla runs on, of which the limits over several disks follow."""

    type: schema.Text | None = None  # machine type of the provider of the disks
    vcpus: Annotated[int, schema.whole_number(1, 10_000)] | None = None
    """Where limits follow from them; None for the CPUs that the kernel has."""
    limits: CustomTerms | None = None  # the limits of all volumes together, written out
    exclude: tuple[Regex, ...] = ()
    """Kernel names of disks that no limit of the machine is over, such as local ones."""


class ProbeEntry(disk_entry.Strict, frozen=True):
    """A repeated measurement of latency."""

    kind: ProbeKind
    disks: (
        Annotated[Literal["all"], schema.choice("all", expected="all (or a list of kernel names)")]
        | tuple[disk_entry.DeviceName, ...]
    ) = "all"
    every_s: Annotated[float, schema.duration("10s", "30d", "10m")] | None = msgspec.field(
        default=None, name="every"
    )
    """None for 10 minutes, or where `cron` is set."""
    cron: Annotated[str, CRONTAB] | None = None
    """Schedule in UTC, in the format of crontab(5); instead of `every`."""
    splay_s: Annotated[float, schema.duration("1s", "1d", "5m")] | None = msgspec.field(
        default=None, name="splay"
    )
    """Time over which starts are spread; None for all of `every`, or 5 minutes after `cron`."""
    rate_iops: Annotated[float, schema.rate(1, 1000)] = 20.0
    runtime_s: Annotated[float, schema.duration("1s", "1m", "5s")] = msgspec.field(
        default=5.0, name="runtime"
    )
    target: ProbeTarget | None = None  # None for the device with reads, and a file with writes
    file_size_bytes: Annotated[int, schema.size("64KiB", "64MiB", "1MiB")] = msgspec.field(
        default=MIB, name="file_size"
    )
    busy_share: Annotated[float, schema.percentage(1, 100)] = msgspec.field(
        default=0.8, name="busy"
    )
    """Load above which a disk is not probed. Programs at this load do not notice a probe, which
    adds at most 1 % (docs/measure.md)."""
    credits_share: Annotated[float, schema.percentage(0, 100)] = msgspec.field(
        default=0.05, name="credits"
    )
    """Share of the credit capacity below which a disk is not probed."""
    daily_bytes: schema.Bytes = msgspec.field(default=256 * MIB, name="daily")
    """Most bytes that probes of this kind transfer on one disk in a UTC day."""

    def __post_init__(self) -> None:
        """Raise ValueError for two schedules, overlapping runs and writes to a device."""
        if self.every_s is not None and self.cron is not None:
            raise ValueError("found both `every` and `cron`; expected one of them")
        if self.cron is None and self.runtime_s >= self.period_s:
            raise ValueError("found a runtime of `every` or longer; expected a shorter one")
        if self.cron is None and self.splay_s is not None and self.splay_s > self.period_s:
            raise ValueError("found a splay above `every`; expected at most that")
        if self.kind == "write-latency" and self.target == "device":
            raise ValueError("found write-latency with target: device; expected target: file")
        if self.most_bytes > self.daily_bytes:
            raise ValueError("found a run that transfers more than `daily`; expected less")

    @property
    def period_s(self) -> float:
        """Time between two runs, without `cron`."""
        return self.every_s or DEFAULT_EVERY_S

    @property
    def spread_s(self) -> float:
        """Time over which the runs of machines and disks are spread."""
        return self.splay_s or (self.period_s if self.cron is None else CRON_SPLAY_S)

    @property
    def most_bytes(self) -> int:
        """Most bytes that one run transfers, including its scratch file."""
        requests = math.floor(self.rate_iops * self.runtime_s) + 1
        file_bytes = self.file_size_bytes if self.uses_file else 0
        return requests * PROBE_REQUEST_BYTES + file_bytes

    @property
    def uses_file(self) -> bool:
        """Whether a scratch file is probed instead of the device."""
        return self.kind == "write-latency" or self.target == "file"

    def covers(self, device: str) -> bool:
        """Return whether a monitored disk is to be probed; a mount never is."""
        if disk_entry.is_mount_name(device):  # a probe would use what others pay for
            return False
        return self.disks == "all" or device in self.disks


class MetricsSettings(disk_entry.Strict, frozen=True):
    """Which metrics are published; what is recorded, saved and shown does not depend on it."""

    profile: Profile = "default"


class StateSettings(disk_entry.Strict, frozen=True):
    """Where state is saved."""

    directory: AbsolutePath = "/var/lib/disksla"


def detected_directory(state_directory: str) -> str:
    """Return the directory of what `disksla detect` writes, beside the state directory."""
    return f"{state_directory.rstrip('/')}-detect"


class EbsSettings(disk_entry.Strict, frozen=True):
    """What AWS counts of its disks, by `disksla ebs-statistics`."""

    socket: AbsolutePath = "/run/disksla-ebs/ebs.sock"
    """Unix socket of the helper; without it, there are no such statistics."""


class PagesSettings(disk_entry.Strict, frozen=True):
    """What the pages of the daemon show besides the disks."""

    dashboard: WebAddress | None = None  # the dashboard *Disk* in Grafana, to which they link


class Settings(disk_entry.Strict, frozen=True):
    """The whole configuration; the default applies without a file."""

    sampling: SamplingSettings = SamplingSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    assessment: AssessmentSettings = AssessmentSettings()
    disks: tuple[DiskEntry, ...] = ()
    machine: MachineSettings = MachineSettings()
    probes: tuple[ProbeEntry, ...] = ()
    metrics: MetricsSettings = MetricsSettings()
    ebs: EbsSettings = EbsSettings()
    state: StateSettings = StateSettings()
    pages: PagesSettings = PagesSettings()
    consumers: schema.Flag = True
    """Whether the units, containers and pods that use a disk are named."""
    common: Any = None
    """Anchors, for aliases and merge keys elsewhere in the file; always None here."""

    def probes_of(self, device: str) -> dict[ProbeKind, float | None]:
        """Return the kinds of probes that are configured for a disk, and the seconds between runs.

        The shortest time of several entries counts; None if all of them are scheduled by `cron`.
        """
        periods_s: dict[ProbeKind, float | None] = {}
        for entry in self.probes:
            if entry.covers(device):
                both_s = [periods_s.get(entry.kind), None if entry.cron else entry.period_s]
                periods_s[entry.kind] = min(
                    (period_s for period_s in both_s if period_s is not None), default=None
                )
        return periods_s
