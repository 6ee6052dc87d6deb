"""Field types of the configuration: names of disks, paths, expressions and schedules."""

import re
from typing import Annotated

from disksla.config.device_pattern import DevicePattern
from disksla.schema import FieldType, pattern, rate


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
Regex = Annotated[
    DevicePattern, FieldType("a regular expression such as '^vd[b-z]$'", DevicePattern.parse)
]
Iops = Annotated[float, rate(1, 10**9)]
CATALOG_ID = pattern("an id of the catalogue such as vk.ceph-ssd", r"\S+")
CRONTAB = FieldType(CRONTAB_EXPECTED, _parse_crontab)
