"""The load of a command line of DiskSpd.

Source: https://github.com/microsoft/diskspd/wiki/Command-line-and-parameters.
"""

import re
from collections.abc import Sequence

from disksla.verification.diskspd_target import Target, pattern_of, places_of, positive, rate_iops

_DEFAULT_BYTES = 64 * 1024
_DEFAULT_DEPTH = 2


def command_target(command: str) -> Target:
    """Return the load of a command line, of all its targets together."""
    words = [word.strip("\"'") for word in re.findall(r"\"[^\"]*\"|\S+", command)]
    places = [place for place, word in enumerate(words) if place and word[0:1] in {"-", "/"}]
    options = [words[place][1:] for place in places]
    targets = words[max(places, default=0) + 1 :]
    if not targets or any(option.startswith("X") for option in options):
        raise ValueError("found neither input parameters nor a command line with its targets")
    if any(option.startswith("rs") for option in options):
        raise ValueError("found random and sequential requests at the same time")
    request_bytes = positive("-b", _command_size(options))
    depth = positive("-o", _count(options, "o", _DEFAULT_DEPTH))
    fixed = _count(options, "F", 0)
    threads = fixed or positive("-t", _count(options, "t", 1))
    streams = threads * len(targets)
    of_thread = _count(options, "O", 0)
    inflight = fixed * of_thread if fixed and of_thread else streams * depth
    limit = _value(options, "g", r"(\d{1,12})(i?)")
    is_random = any(re.match(r"r\d*[KMGTb]?$", option) for option in options)
    return Target(
        pattern=pattern_of(_count(options, "w", 0), is_random=is_random),
        request_bytes=request_bytes,
        is_direct=_is_direct_command(options),
        inflight=inflight,
        rate_iops=None
        if limit is None
        else rate_iops(float(limit[1]), "IOPS" if limit[2] else None, request_bytes, streams),
        disks=places_of(targets),
        is_paced=_count(options, "j", 0) > 0,
    )


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
