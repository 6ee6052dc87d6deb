"""Field types of the configuration: names of disks, paths, expressions and schedules."""

import re
from typing import Annotated

from disksla.config.device_pattern import DevicePattern
from disksla.schema import FieldType, pattern, rate
from disksla.units import MIB, is_decimal, parse_size_bytes


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
        "a kernel name such as vda (for links under /dev/disk and /dev/mapper, use by_id)",
        r"(?!disk/|mapper/)[^\s/]+(/[^\s/]+)?",
        prefix="/dev/",
    ),
]
IdName = Annotated[
    str,
    pattern("a name under /dev/disk/by-id, such as virtio-data", r"[^\s/]+", "/dev/disk/by-id/"),
]
AbsolutePath = Annotated[str, pattern("a path that starts with /", r"/.*")]


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
CATALOG_ID = pattern("an id of the catalogue such as vk.ceph-ssd", r"\S+")
CRONTAB = FieldType(CRONTAB_EXPECTED, _parse_crontab)
