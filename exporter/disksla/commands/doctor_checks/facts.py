"""Facts of a machine, as `gather` reads them; what could not be read is a problem in words."""

import re
from collections.abc import Iterable, Mapping

import msgspec
from prometheus_client.core import Sample

from disksla.kernel.disks import Disk
from disksla.promise.configuration import Configuration

_CONTINUED = re.compile(r"\\\n")
"""A line of a unit of systemd that goes on in the next one."""


class KernelFacts(msgspec.Struct, frozen=True):
    """What the kernel and udev provide."""

    release: str
    diskstats: str | None = None
    """Content of /proc/diskstats."""
    diskstats_problem: str | None = None
    has_pressure: bool = True
    wait_problems: Mapping[str, str] = {}
    """Problems of `iowait` and `pressure`."""
    disks_problem: str | None = None
    """Why block devices cannot be listed."""
    device_problems: tuple[str, ...] = ()
    uses_udev: bool = True
    """Whether the paths are the default ones, so that uevents are of this machine."""
    has_udev_entries: bool = True
    uevents_problem: str | None = None
    why_no_consumers: str | None = None
    """Why the units, containers and pods that use a disk are not known; None if they are."""


class WebFacts(msgspec.Struct, frozen=True):
    """The web configuration file."""

    path: str
    problem: str | None = None
    description: str = ""


class ConfigurationFacts(msgspec.Struct, frozen=True):
    """The files of the operator."""

    path: str | None
    """The configuration file; None without one."""
    configuration: Configuration | None
    """None if it is invalid, or cannot be read."""
    problem: str | None = None
    """All problems of the configuration and the catalogue, a line each."""
    notes: tuple[str, ...] = ()
    own_rows: int = 0
    """Disk types that catalog.d adds."""
    terms_problems: tuple[str, ...] = ()
    modified_timestamp_s: float | None = None
    """When the file was changed, in seconds since 1970."""
    web: WebFacts | None = None


class UnitFacts(msgspec.Struct, frozen=True):
    """The unit of systemd with its drop-ins."""

    path: str
    values: Mapping[str, tuple[str, ...]] = {}
    """Values of each key of [Service] that are in force."""

    def last(self, key: str) -> str | None:
        """Return the value of a key that has one; None without it."""
        values = self.values.get(key, ())
        return values[-1] if values else None


class AccessFacts(msgspec.Struct, frozen=True):
    """What the user of the daemon may read and write."""

    user: str
    """The user of the unit; without a unit, the one that runs this command."""
    problem: str | None = None
    """Why it is not known."""
    unreadable: tuple[str, ...] = ()
    """Files of the configuration that the user may not read."""
    may_write_state: bool = True
    has_user: bool = True
    """Whether there is such a user."""


class StateFacts(msgspec.Struct, frozen=True):
    """The state directory."""

    directory: str
    problem: str | None = None
    """Why it cannot be used."""
    free_bytes: int = 0
    is_read_only: bool = False


class FioFacts(msgspec.Struct, frozen=True):
    """The program fio."""

    path: str | None = None
    version: tuple[int, int] | None = None
    problem: str | None = None


class ClockFacts(msgspec.Struct, frozen=True):
    """What the kernel knows of the wall clock."""

    is_synchronised: bool | None
    """None if it is not known."""
    problem: str | None = None
    error_s: float | None = None
    """Largest error, as the kernel estimates it."""


class DaemonFacts(msgspec.Struct, frozen=True):
    """What the daemon answers."""

    url: str
    problem: str | None = None
    """Why it does not answer."""
    unseen: str | None = None
    """Why its answer cannot be read."""
    ready_status: int = 0
    ready_text: str = ""
    metrics_status: int = 0
    samples: tuple[Sample, ...] = ()

    def values(self, name: str, **labels: str) -> list[Sample]:
        """Return the samples of a metric with these labels."""
        return [
            sample
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is examined."""

    version: str
    """Of this command."""
    now_s: float
    """Wall clock, in seconds since 1970."""
    cpus: int | None
    is_root: bool
    kernel: KernelFacts
    provider: str | None
    """Provider of the machine by its DMI."""
    disks: tuple[Disk, ...]
    machine_providers: tuple[str, ...]
    """Providers that limit what the disks of a machine do together, as far as known."""
    iostats: Mapping[str, str]
    """sysfs `queue/iostats` of the disks that have it."""
    why_not_exact: str | None
    """Why this command cannot count data writes exactly; None if it can."""
    configuration: ConfigurationFacts
    state: StateFacts
    access: AccessFacts
    unit: UnitFacts | None
    """The unit of the daemon; None if it is not installed."""
    detect_unit: UnitFacts | None
    """The unit of `disksla detect`; None if it is not installed."""
    has_detect_timer: bool
    """Whether the timer of that unit is enabled."""
    fio: FioFacts
    clock: ClockFacts
    daemon: DaemonFacts
    has_credentials_file: bool
    """Whether clouds.yaml is beside the configuration file."""


def parse_unit(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of each key of [Service], in order; an empty value removes those before.

    Source: systemd.syntax(7).
    """
    values: dict[str, tuple[str, ...]] = {}
    for text in texts:
        section = ""
        for each in _CONTINUED.sub(" ", text).splitlines():
            line = each.strip()
            if line.startswith("["):
                section = line
            elif section == "[Service]" and not line.startswith(("#", ";")):
                key, assigned, value = (part.strip() for part in line.partition("="))
                if assigned:
                    values[key] = (*values.get(key, ()), value) if value else ()
    return values
