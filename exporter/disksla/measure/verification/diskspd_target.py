"""The load of a target of DiskSpd, and of the targets of a timespan together.

It is a measurement without results.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from disksla.base.units import parse_size_bytes
from disksla.measure.fio import Pattern
from disksla.measure.verification.measurement import Measurement
from disksla.measure.verification.places import windows_place

_PATTERNS: dict[tuple[bool, int], Pattern] = {
    (False, 0): "read",
    (False, 100): "write",
    (True, 0): "randread",
    (True, 100): "randwrite",
}
_MS_PER_S = 1000
_LARGEST = 2**63


class Pool(NamedTuple):
    """Threads that all targets of a timespan share (-F), and their requests in flight (-O)."""

    threads: int = 0
    """0: each target has threads of its own."""
    depth: int = 0
    """Requests in flight of a thread; 0: those of each target."""


def directions(load: Measurement) -> tuple[str, ...]:
    """Return the parts of a result that have requests of a load."""
    if load.pattern in {"rw", "randrw"}:
        return ("Read", "Write")
    return ("Write",) if load.pattern in {"write", "randwrite"} else ("Read",)


def load_of(  # noqa: PLR0913 -- what a target says, most of it by name
    threads: float,
    depth: float,
    request_bytes: float,
    limit: tuple[float, str | None] | None,
    paths: Iterable[str],
    *,
    write_percent: int,
    is_random: bool,
    is_direct: bool,
    is_paced: bool,
) -> Measurement:
    """Return a load without results. Raise ValueError if it has no requests.

    `limit` is that of each thread, in IOPS or in bytes per ms.
    """
    numbers = {"threads": threads, "requests in flight": depth, "bytes in a block": request_bytes}
    if zero := [name for name, number in numbers.items() if not round(number)]:
        raise ValueError(f"found 0 {zero[0]}; expected 1 or more")
    rate = 0.0
    if limit is not None:
        factor = 1 if limit[1] == "IOPS" else _MS_PER_S / request_bytes
        rate = limit[0] * factor * round(threads)
    return Measurement(
        name="",
        tool="DiskSpd",
        pattern=_PATTERNS.get((is_random, write_percent), "randrw" if is_random else "rw"),
        request_bytes=round(request_bytes),
        inflight=round(threads) * round(depth),
        rate_iops=rate or None,
        is_direct=is_direct,
        targets=_places_of(paths),
        is_paced=is_paced,
    )


def total_of_targets(number: int, targets: list[Measurement], pool: Pool) -> Measurement:
    """Add up the requests in flight and the rates of targets with the same kind of request."""
    kinds = {(each.pattern, each.request_bytes, each.is_direct) for each in targets}
    if len(kinds) != 1:
        raise ValueError(f"found {len(kinds)} kinds of requests in timespan {number}; expected 1")
    rates = [target.rate_iops for target in targets if target.rate_iops is not None]
    return msgspec.structs.replace(
        targets[0],
        inflight=pool.threads * pool.depth or sum(target.inflight for target in targets),
        rate_iops=sum(rates) if rates else None,
        targets=tuple(sorted({disk for target in targets for disk in target.targets})),
        is_paced=any(target.is_paced for target in targets),
    )


def _places_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the drives, volumes and shares of paths, as far as they say them."""
    found = {windows_place(path.removeprefix("'")) for path in paths}
    return tuple(sorted(place for place in found if place is not None))


def quantity(text: str) -> float:
    """Parse a number as printf writes it; `float` would accept 1e9, nan and 1_0 too."""
    if re.fullmatch(r"\s*\d{1,20}(?:\.\d{1,20})?\s*", text, re.ASCII) is None:
        raise ValueError(f"found '{text[:40]}'; expected a number")
    number = float(text)
    if number >= _LARGEST:
        raise ValueError(f"found {text[:40]}; expected a number below 2^63")
    return number


def size_of(text: str) -> int:
    """Return a size in bytes, as 4096 or 4KiB."""
    return int(text) if text.isdecimal() else parse_size_bytes(text)


def field(pattern: str, text: str) -> str:
    """Return the group of a pattern. Raise ValueError if no line matches."""
    found = re.search(pattern, text, re.MULTILINE | re.ASCII)
    if found is None:
        raise ValueError(f"found no text that matches /{pattern}/")
    return found[1]


_DEFAULT_BYTES = 64 * 1024
_DEFAULT_DEPTH = 2


def command_target(command: str) -> Measurement:
    """Return the load of a command line, of all its targets together."""
    words = [word.strip("\"'") for word in re.findall(r"\"[^\"]*\"|\S+", command)]
    places = [place for place, word in enumerate(words) if place and word[0:1] in {"-", "/"}]
    options = [words[place][1:] for place in places]
    targets = words[max(places, default=0) + 1 :]
    if not targets or any(option.startswith("X") for option in options):
        raise ValueError("found neither input parameters nor a command line with its targets")
    if any(option.startswith("rs") for option in options):
        raise ValueError("found random and sequential requests at the same time")
    limit = _value(options, "g", r"(\d{1,12})(i?)")
    fixed = _count(options, "F", 0)
    streams = (fixed or _count(options, "t", 1)) * len(targets)
    load = load_of(
        streams,
        _count(options, "o", _DEFAULT_DEPTH),
        _command_size(options),
        None if limit is None else (float(limit[1]), "IOPS" if limit[2] else None),
        targets,
        write_percent=_count(options, "w", 0),
        is_random=any(re.match(r"r\d*[KMGTb]?$", option) for option in options),
        is_direct=_is_direct_command(options),
        is_paced=_count(options, "j", 0) > 0,
    )
    pooled = fixed * _count(options, "O", 0)
    return msgspec.structs.replace(load, inflight=pooled or load.inflight)


def _command_size(options: Sequence[str]) -> int:
    found = _value(options, "b", r"(\d{1,12})([KMGTkmgt]?)")
    if found is None:
        return _DEFAULT_BYTES
    exponent = " KMGT".index(found[2].upper() or " ")
    size: int = int(found[1]) * 1024**exponent
    return size


def _count(options: Sequence[str], name: str, default: int) -> int:
    found = _value(options, name, r"(\d{1,9})")
    return default if found is None else int(found[1])


def _value(options: Sequence[str], name: str, pattern: str) -> re.Match[str] | None:
    """Return the value of the last option of a name, whose value follows it without a blank."""
    found = (re.fullmatch(name + pattern, option, re.ASCII) for option in reversed(options))
    return next((each for each in found if each is not None), None)


def _is_direct_command(options: Sequence[str]) -> bool:
    """Return whether the software cache is disabled: -S, -Su, -Sh, -Sr, -h, also with w."""
    modes = [option[1:] for option in options if re.fullmatch("S[bhmruw]*", option)]
    is_disabled = any(mode == "" or set(mode) & set("hru") for mode in modes)
    return (is_disabled or "h" in options) and not any("m" in mode for mode in modes)
