"""Field types of the configuration: names of disks, paths, expressions and schedules."""

import posixpath
import re
from typing import Annotated, Any

import msgspec
import re2

from disksla.base.schema import FieldType, pattern, rate
from disksla.base.units import MIB, is_decimal, parse_size_bytes


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
DeviceName = Annotated[
    str,
    pattern(
        "a kernel name such as vda, or a logical volume (for links in /dev/disk, use by_id)",
        r"(?!disk/)[^\s/]+(/[^\s/]+)?",
        prefix="/dev/",
    ),
]


def is_mount_name(name: str) -> bool:
    """Return whether a name is that of an NFS mount; no name of a block device has a colon."""
    return ":/" in name


DeviceOrMountName = Annotated[
    str,
    pattern(
        "a kernel name such as vda, a logical volume or an NFS mount such as fs1:/export (for"
        " links in /dev/disk, use by_id)",
        r"(?!disk/)[^\s/]+(/[^\s/]+|:/\S*)?",
        prefix="/dev/",
    ),
]


def _parse_link(text: str) -> str:
    """Return the name of a link in /dev/disk/by-id, or disk/DIRECTORY/NAME of another one."""
    name = text.strip().removeprefix("/dev/").removeprefix("disk/by-id/")
    if not re.fullmatch(r"disk(/[^\s/]+){2,}|[^\s/]+", name):
        raise ValueError(f"found '{text}'; expected {_LINK}")
    return name


def _parse_mount_point(text: str) -> str:
    """Return a path without what changes nothing, such as a slash at its end."""
    if not text.startswith("/"):
        raise ValueError(f"found '{text}'; expected {_PATH}")
    return "/" + posixpath.normpath(text).lstrip("/")


_LINK = "a link such as virtio-data in /dev/disk/by-id, or /dev/disk/azure/scsi1/lun0"
_PATH = "a path that starts with /"
IdName = Annotated[str, FieldType(_LINK, _parse_link)]
MountPoint = Annotated[str, FieldType(_PATH, _parse_mount_point)]
AbsolutePath = Annotated[str, pattern(_PATH, r"/.*")]


def parse_disk_size(text: str) -> int | str:
    """Return the bytes of the size of a disk, or the text if they depend on the provider.

    Raise ValueError for zero, and for a number below 1 MiB without unit, which was forgotten.
    """
    size_bytes = parse_size_bytes(text)
    if not size_bytes:
        raise ValueError(f"'{text}' is zero; expected {_DISK_SIZE}")
    if size_bytes < MIB and text.isdecimal():
        raise ValueError(f"'{text}' has no unit; expected {_DISK_SIZE}")
    return text if is_decimal(text) else size_bytes


_DISK_SIZE = "a size of a disk such as 500GiB or 100G"
DiskSize = Annotated[int | str, FieldType(_DISK_SIZE, parse_disk_size)]
Regex = Annotated[
    DevicePattern, FieldType("a regular expression such as '^vd[b-z]$'", DevicePattern.parse)
]
Iops = Annotated[float, rate(1, 10**9)]
WebAddress = Annotated[
    str,
    pattern("an address such as https://grafana.example.com/d/disksla-disk", r"https?://[^\s#]+"),
]
CATALOG_ID = pattern("an id of the catalogue such as vk.ceph-ssd", r"\S+")
CRONTAB = FieldType(CRONTAB_EXPECTED, _parse_crontab)
