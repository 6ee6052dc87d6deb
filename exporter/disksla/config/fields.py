"""Where texts of the configuration become values: one door for each kind of value."""

import re
from typing import Annotated

from disksla import units
from disksla.config.device_pattern import DevicePattern
from disksla.limits import LatencyKind
from disksla.schema import FieldType, choice, pattern, quantity, rate


def _parse_crontab(text: str) -> str:
    """Days of the week have to be names: 0 is Sunday to cron and Monday to APScheduler."""
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
    "minute, hour, day, month and day of the week (by name) as in '30 4 * * mon-fri', in UTC"
)
_SIZE = "a size such as 500GiB or 1.5TB"
_BANDWIDTH = "a bandwidth such as 25MB/s or 240MiB/s"
_LATENCY = FieldType(
    "a duration such as 1ms", quantity(units.parse_duration_s, "a duration such as 1ms")
)
_DEVICE = pattern(
    "a kernel name such as vda (what links to it under /dev/disk and /dev/mapper is for by_id)",
    r"(?!disk/|mapper/)[^\s/]+(/[^\s/]+)?",
    prefix="/dev/",
)
DeviceName = Annotated[str, _DEVICE]
IdName = Annotated[
    str,
    pattern("a name under /dev/disk/by-id, such as virtio-data", r"[^\s/]+", "/dev/disk/by-id/"),
]
AbsolutePath = Annotated[str, pattern("a path that starts with /", r"/.*")]
Regex = Annotated[
    DevicePattern, FieldType("a regular expression such as '^vd[b-z]$'", DevicePattern.parse)
]
Iops = Annotated[float, rate(1, 10**9)]
Bytes = Annotated[int, FieldType(_SIZE, quantity(units.parse_size_bytes, _SIZE))]
BytesPerSecond = Annotated[
    float, FieldType(_BANDWIDTH, quantity(units.parse_bandwidth_bytes_per_second, _BANDWIDTH))
]
Latency = Annotated[float, _LATENCY]
CATALOG_ID = pattern("an id of the catalogue such as vk.ceph-ssd", r"\S+")
CRONTAB = FieldType(CRONTAB_EXPECTED, _parse_crontab)
LatencyKindField = Annotated[LatencyKind, choice("guaranteed", "indicative")]
