"""Parses and formats quantities with units: '500GiB', '25MB/s', '100ms'.

Decimal and binary prefixes differ (1 GB = 10^9 B, 1 GiB = 2^30 B; IEC 80000-13). Without the B,
prefixes are binary, as lsblk prints them and fio, LVM and QEMU read them (100G, 4k), and so are
those of Kubernetes with an i (100Gi). A number without unit is bytes.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction

KIB = 1024
MIB = 1024**2
MB = 10**6
GIB = 1024**3
TIB = 1024**4

BYTES_PER_UNIT: Mapping[str, int] = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": TIB,
    **dict.fromkeys(("Ki", "K", "k"), KIB),
    **dict.fromkeys(("Mi", "M", "m"), MIB),
    **dict.fromkeys(("Gi", "G", "g"), GIB),
    **dict.fromkeys(("Ti", "T", "t"), TIB),
}
_BINARY_GB: Mapping[str, int] = {
    **BYTES_PER_UNIT,
    "kB": KIB,
    "KB": KIB,
    "MB": MIB,
    "GB": GIB,
    "TB": TIB,
}
"""Of a provider that writes GB for GiB."""
SECONDS_PER_UNIT: Mapping[str, int | Fraction] = {
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86400,
}

_QUANTITY = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z]*)")
_BYTE_UNITS = "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, K, M, G, T, or bytes without a unit"
_BITS = re.compile(r"[kKmMgGtT]i?b(it)?(ps)?")
_SIZE = "a size such as 500GiB, 100G or 4k"
_BANDWIDTH = "a bandwidth such as 25MB/s or 240MiB/s"
_SECTOR_BYTES = 512
_LEAST_PLAIN_RATE = 100_000
_LONGEST_QUANTITY = 40
_FOUR_DIGITS = 1000


def parse_size_bytes(text: str, *, binary_gb: bool = False) -> int:
    """Return the bytes of a size such as '500GiB', '1.5TB', '100G' or '4096'.

    With `binary_gb`, GB is GiB. A part of a byte of a large size such as 4.8TiB is rounded. A
    number without unit that is no multiple of a sector has lost its unit. Raise ValueError, with
    what was expected, for anything else.
    """
    size_bytes = _parse(text, _BINARY_GB if binary_gb else BYTES_PER_UNIT, _SIZE)
    if size_bytes.denominator != 1 and size_bytes < MIB:
        raise ValueError(f"found '{text}'; expected a whole number of bytes")
    if _is_plain(text) and size_bytes % _SECTOR_BYTES:
        raise ValueError(f"'{text}' has no unit; expected {_SIZE}")
    return round(size_bytes)


def is_decimal(text: str) -> bool:
    """Return whether a size is another one of a provider that writes GB for GiB."""
    return text.endswith(("kB", "KB", "MB", "GB", "TB"))


def parse_bandwidth_bytes_per_second(text: str) -> float:
    """Return the bytes per second of a bandwidth such as '25MB', '25MB/s', '25MBps' or '25M'.

    A small number without unit has lost its unit: a disk with less than 100 kB/s is not sold.
    """
    number = text.removesuffix("ps") if text.endswith("Bps") else text.removesuffix("/s")
    bytes_per_second = _parse(number, BYTES_PER_UNIT, _BANDWIDTH, shown=text)
    if _is_plain(number) and 0 < bytes_per_second < _LEAST_PLAIN_RATE:
        raise ValueError(f"'{text}' has no unit; expected {_BANDWIDTH}")
    return float(bytes_per_second)


def parse_duration_s(text: str) -> float:
    """Return the seconds of a duration such as '100ms', '5s' or '10m'."""
    return float(_parse(text, SECONDS_PER_UNIT, "a duration such as 100ms, 5s, 10m, 1h or 1d"))


def format_size(size_bytes: float) -> str:
    """Return a size in binary units, with three digits: '500 GiB', '37.5 MiB'."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size_bytes >= BYTES_PER_UNIT[unit]:
            return f"{format_count(size_bytes / BYTES_PER_UNIT[unit])} {unit}"
    return f"{format_count(size_bytes)} B"


def format_bandwidth(bytes_per_second: float) -> str:
    """Return a bandwidth in MiB/s, to compare with others: '1200 MiB/s'.

    It has four digits, to distinguish 1172 from 1200, and a smaller unit below 1 MiB/s.
    """
    if bytes_per_second < MIB:
        return f"{format_size(bytes_per_second)}/s"
    mib_per_second = bytes_per_second / MIB
    digits = ".4g" if mib_per_second < _FOUR_DIGITS else ".0f"
    return f"{mib_per_second:{digits}} MiB/s"


def format_listed_bandwidth(bytes_per_second: float) -> str:
    """Return a bandwidth as tables of providers have it: '0.12 MiB/s', '200 MB/s'.

    That is in MiB/s or MB/s, if it has two decimals at most there.
    """
    for unit, number in (("MiB/s", bytes_per_second / MIB), ("MB/s", bytes_per_second / MB)):
        if number > 0 and math.isclose(number, round(number, 2), rel_tol=1e-12):
            return f"{round(number, 2):.15g} {unit}"
    return format_bandwidth(bytes_per_second)


def format_duration(seconds: float) -> str:
    """Return a duration with three digits: '52 us', '0.52 ms', '3 s', '31.3 min', '12 h'."""
    if 0 < seconds < 1e-4:  # noqa: PLR2004 -- a tenth of a millisecond
        return f"{format_count(seconds * 1e6)} us"
    if seconds < 1:
        return f"{format_count(seconds * 1e3)} ms"
    for divisor, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * divisor:
            return f"{format_count(seconds / divisor)} {unit}"
    return f"{format_count(seconds)} s"


def format_count(count: float) -> str:
    """Return a number with three digits, or all digits of its whole part."""
    if count >= 100:  # noqa: PLR2004 -- three digits before the decimal point
        return f"{count:.0f}"
    return f"{count:.3g}"


def format_percent(ratio: float) -> str:
    """Return a ratio in percent, with one decimal at most: '31.2 %', '98 %', 'under 0.1 %'."""
    if 0 < ratio < 0.001:  # noqa: PLR2004 -- 0.1 %
        return "under 0.1 %"
    return f"{format_count(round(100 * ratio, 1))} %"


def _parse(
    text: str, units: Mapping[str, int | Fraction], expected: str, shown: str = ""
) -> Fraction:
    """Return the exact quantity; with binary floats, '1.005kB' is not a whole number of bytes."""
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST_QUANTITY else None
    if match is None:
        raise ValueError(f"found '{shown or text}'; expected {expected}")
    unit = match["unit"]
    if unit in units:
        return Fraction(match["number"]) * units[unit]
    if not unit:
        raise ValueError(f"'{shown or text}' has no unit; expected {expected}")
    of_bytes = "B" in units
    note = "; b is for bits, B for bytes" if of_bytes and _BITS.fullmatch(unit) else ""
    valid = _BYTE_UNITS if of_bytes else ", ".join(units)
    raise ValueError(
        f"unknown unit '{unit}' in '{shown or text}'; expected {expected} (units: {valid}{note})"
    )


def _is_plain(text: str) -> bool:
    return text[-1:].isdecimal()
