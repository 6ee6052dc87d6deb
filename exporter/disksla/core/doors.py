"""Where texts of the configuration become values: one door for each kind of value."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from disksla.core import units
from disksla.core.form import Door, close_match
from disksla.core.limits import LatencyKind
from disksla.core.namepattern import NamePattern

_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")


def _quantity(parse: Callable[[str], float], expected: str) -> Callable[[str], Any]:
    """Give a parser of positive quantities that says what a bare number lacks."""

    def parse_positive(text: str) -> float:
        if _NUMBER.fullmatch(text):
            raise ValueError(f"'{text}' has no unit; expected {expected}")
        value = parse(text)
        if value <= 0:
            raise ValueError(f"'{text}' is nothing; expected {expected}")
        return value

    return parse_positive


def duration(least: str, most: str, example: str) -> Door:
    """Give the door of durations from `least` to `most`."""
    expected = f"a duration from {least} to {most}, such as {example}"
    parse_positive = _quantity(units.parse_duration_s, expected)

    def parse(text: str) -> float:
        seconds: float = parse_positive(text)
        if not units.parse_duration_s(least) <= seconds <= units.parse_duration_s(most):
            raise ValueError(f"'{text}' is out of bounds; expected {expected}")
        return seconds

    return Door(expected, parse)


def size(least: str, most: str, example: str) -> Door:
    """Give the door of sizes from `least` to `most`."""
    expected = f"a size from {least} to {most}, such as {example}"
    parse_positive = _quantity(units.parse_size_bytes, expected)

    def parse(text: str) -> int:
        size_bytes: int = parse_positive(text)
        if not units.parse_size_bytes(least) <= size_bytes <= units.parse_size_bytes(most):
            raise ValueError(f"'{text}' is out of bounds; expected {expected}")
        return size_bytes

    return Door(expected, parse)


def rate(least: int, most: int) -> Door:
    """Give the door of requests per second."""
    expected = f"a plain number of requests from {least} to {most}, such as 300"

    def parse(text: str) -> float:
        if not _NUMBER.fullmatch(text) or not least <= float(text) <= most:
            raise ValueError(f"found '{text}'; expected {expected}")
        return float(text)

    return Door(expected, parse)


def percentage(least: float, most: float) -> Door:
    """Give the door of shares, which are written in percent."""
    expected = f"a percentage from {least:g}% to {most:g}%, such as 3%"

    def parse(text: str) -> float:
        number = text.removesuffix("%").strip()
        if number == text or not _NUMBER.fullmatch(number) or not least <= float(number) <= most:
            raise ValueError(f"found '{text}'; expected {expected}")
        return float(number) / 100

    return Door(expected, parse)


def word(*words: str, expected: str = "") -> Door:
    """Give the door of one of a few words."""
    expected = expected or f"one of: {', '.join(words)}"

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"found '{text}'{close_match(text, words)}; expected {expected}")
        return text

    return Door(expected, parse)


def text_like(expected: str, pattern: str = r"\S(.*\S)?", prefix: str = "") -> Door:
    """Give the door of texts that match `pattern` once `prefix`, if there, is taken off."""

    def parse(text: str) -> str:
        short = text.strip().removeprefix(prefix)
        if not re.fullmatch(pattern, short):
            raise ValueError(f"found '{text}'; expected {expected}")
        return short

    return Door(expected, parse)


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
_LATENCY = Door(
    "a duration such as 1ms", _quantity(units.parse_duration_s, "a duration such as 1ms")
)
_DEVICE = text_like(
    "a kernel name such as vda (what links to it under /dev/disk and /dev/mapper is for by_id)",
    r"(?!disk/|mapper/)[^\s/]+(/[^\s/]+)?",
    prefix="/dev/",
)

Text = Annotated[str, text_like("a text")]
DeviceName = Annotated[str, _DEVICE]
IdName = Annotated[
    str,
    text_like("a name under /dev/disk/by-id, such as virtio-data", r"[^\s/]+", "/dev/disk/by-id/"),
]
AbsolutePath = Annotated[str, text_like("a path that starts with /", r"/.*")]
Regex = Annotated[NamePattern, Door("a regular expression such as '^vd[b-z]$'", NamePattern.parse)]
Iops = Annotated[float, rate(1, 10**9)]
Bytes = Annotated[int, Door(_SIZE, _quantity(units.parse_size_bytes, _SIZE))]
BytesPerSecond = Annotated[
    float, Door(_BANDWIDTH, _quantity(units.parse_bandwidth_bytes_per_second, _BANDWIDTH))
]
Latency = Annotated[float, _LATENCY]
CATALOGUE_ID = text_like("an id of the catalogue such as vk.ceph-ssd", r"\S+")
CRONTAB = Door(CRONTAB_EXPECTED, _parse_crontab)
Kind = Annotated[LatencyKind, word("guaranteed", "indicative")]
