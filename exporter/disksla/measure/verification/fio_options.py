"""Options of a job of fio, as its JSON lists them: what they say of the load.

Source: https://fio.readthedocs.io/en/latest/fio_doc.html.
"""

import re
from collections.abc import Sequence
from typing import Any, get_args

from disksla.base.errors import DiskslaError
from disksla.measure.fio import Pattern
from disksla.measure.verification.measurement import Measurement, is_device, places_of

Options = dict[str, str]

_PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
_SIZE = re.compile(r"(\d{1,15})(?:b|([kmg])(ib|[ib])?)?", re.IGNORECASE | re.ASCII)
_EXPONENTS = {"k": 1, "m": 2, "g": 3}
_BUFFERED = {"mmap", "splice"}
_PASS_THROUGH = {"io_uring_cmd", "sg"}
_SYNCHRONOUS = {"sync", "psync", "vsync", "pvsync", "pvsync2", "sg"} | _BUFFERED
_ENGINES = _SYNCHRONOUS | {
    *("libaio", "io_uring", "io_uring_cmd", "posixaio", "windowsaio", "solarisaio", "syslet-rw")
}
"""Engines that use a disk through the kernel of this machine."""
_DEFAULT_ENGINE = "psync"
_PAUSES = ("thinktime", "read_iolog")
"""Between requests, or as long as those of a log."""
_WAITS = (
    *("fsync", "fdatasync", "sync", "iodepth_low"),
    *("iodepth_batch_complete", "iodepth_batch_complete_min"),
)
_DEFAULTS = {"iodepth_batch_complete=1", "iodepth_batch_complete_min=1"}
_TIMES_S = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6}
OFF = {"0", "false", "none"}


def merged(everywhere: dict[str, Any], own: dict[str, Any]) -> Options:
    """Return the options of a job and its defaults as text; each `filename` adds files."""
    names = [str(each["filename"]) for each in (everywhere, own) if each.get("filename")]
    options = {name: str(value) for name, value in (everywhere | own).items()}
    return options | ({"filename": ":".join(names)} if names else {})


def with_device(options: Options, name: str) -> Options:
    """Return the options of a job, which uses the disk of its name if it has no `filename`."""
    return (
        options if "filename" in options or not is_device(name) else options | {"filename": name}
    )


def pattern_of(options: Options) -> Pattern:
    """Return the order and direction of requests. Raise DiskslaError if they are not known."""
    if not options:
        raise DiskslaError("its requests are unknown: it has no 'job options'")
    text = _first(options.get("rw", options.get("readwrite", "read"))).replace("readwrite", "rw")
    for pattern in _PATTERNS:
        if pattern == text:
            return pattern
    unknown = f"its requests are unknown: found rw='{text[:40]}'"
    raise DiskslaError("trims are not judged" if "trim" in text else unknown)


def seconds_of(text: str) -> float:
    """Parse a time as fio does, without the end of a range; 0 if it is none."""
    found = re.match(r"(\d{1,9})(d|h|ms|us|m|s)?", text, re.ASCII)
    return 0.0 if found is None else int(found[1]) * _TIMES_S[found[2] or "s"]


def load_of(
    options: Options, name: str, tool: str, pattern: Pattern, request_bytes: int, clones: int = 1
) -> Measurement:
    """Return the load that a job and its clones ask for, without what came of it.

    Raise DiskslaError if its engine is not one of a disk of this machine.
    """
    engine = _first(options.get("ioengine", _DEFAULT_ENGINE))
    if engine not in _ENGINES:
        raise DiskslaError(
            f"ioengine={engine[:40]} is not known to use a disk of this machine; expected one that"
            " does, such as libaio or io_uring"
        )
    is_synchronous = engine in _SYNCHRONOUS
    depth = 1 if is_synchronous else count(options, "iodepth", 1)
    # Some engines always bypass the cache, and some never.
    is_direct = engine in _PASS_THROUGH if engine in _PASS_THROUGH | _BUFFERED else None
    if is_direct is None and "buffered" in options:
        is_direct = options["buffered"] in OFF
    elif is_direct is None and "direct" in options:
        is_direct = options["direct"] not in OFF
    rate = _rate_iops(options, pattern, request_bytes)
    return Measurement(
        name=name,
        tool=tool,
        pattern=pattern,
        request_bytes=request_bytes,
        inflight=clones * depth,
        rate_iops=None if rate is None else rate * clones,
        is_direct=is_direct,
        waits="" if is_synchronous else _waits(options, engine),
        is_paced=any(options.get(pause, "0") not in OFF for pause in _PAUSES),
    )


def _waits(options: Options, engine: str) -> str:
    """Return the option by which the disk may have fewer requests in flight than fio; or "".

    fio waits for a sync, or for several requests before it sends the next. The C library handles
    requests of posixaio to the same file one after another.
    """
    found = [f"{name}={options[name]}" for name in _WAITS if options.get(name, "0") not in OFF]
    waits = ["ioengine=posixaio"] if engine == "posixaio" else found
    return next((each for each in waits if each not in _DEFAULTS), "")


def _rate_iops(options: Options, pattern: Pattern, request_bytes: int) -> float | None:
    """Return the requested rate of one job, of both directions of a mix; None for no limit."""
    direction = pattern.removeprefix("rand")
    for name, unit in (("rate_iops", 1), ("rate", request_bytes)):
        read, _, write = options.get(name, "").partition(",")
        rates = {"read": (read,), "write": (write or read,)}.get(direction, (read, write or read))
        if all(text not in {"", "0"} for text in rates):
            return sum(_size(options, text) for text in rates) / unit
    return None


def places(options: Options) -> frozenset[str]:
    """Return the disks and directories in which a job has its files."""
    return places_of(options.get("filename", ""), options.get("directory", ""))


def count(options: Options, name: str, default: int) -> int:
    """Return a number above zero; the default if fio takes 0 for one."""
    text = options.get(name, str(default))
    if re.fullmatch(r"\d{1,6}", text, re.ASCII) is None:
        raise DiskslaError(f"found {name}='{text[:40]}'; expected a number")
    return int(text) or default


def _size(options: Options, text: str) -> int:
    """Parse a size or a number as fio does.

    With its default, `kb_base=1024`, 4k, 4kb and 4Ki are 4096 and 4KiB is 4000: for compatibility
    with old scripts. With `kb_base=1000` it is the other way round.
    """
    found = _SIZE.fullmatch(_first(text))
    if found is None or not int(found[1]):
        raise DiskslaError(f"found '{text[:40]}'; expected a size such as 4k")
    prefix, suffix = (found[2] or "").lower(), (found[3] or "").lower()
    is_decimal = (suffix == "ib") != (options.get("kb_base") == "1000")
    factor: int = (1000 if is_decimal else 1024) ** _EXPONENTS.get(prefix, 0)
    return int(found[1]) * factor


def _first(text: str) -> str:
    """Return the text before a comma or colon, as in bs=4k,4k and rw=randread:8."""
    return re.split("[,:]", text.strip())[0]


_SPACED = r"(direct|buffered|rate_iops|filename)[= ]"
_OTHER = "(" + "|".join(("rate", "directory", *_PAUSES, *_WAITS, "wait_for", "startdelay")) + ")="
_OPTION = re.compile(
    rf"(?:^|[\s'\"])-{{0,2}}(?:{_SPACED}|{_OTHER})['\"]?([^\s'\"]{{1,200}})", re.ASCII
)
_COMMAND = re.compile(r"(?:^|[\s$#>/])fio\s+(?:-|\\$)", re.ASCII)
_NAMED = re.compile(r"\s--?name[= ]", re.ASCII)
_JOB_FILE = re.compile(
    r"(?<!>)\s[^\s=>-][^\s=]{0,200}\.(?:fio|job|ini|conf|cfg|txt)(?:\s|$)", re.ASCII
)


def is_command(line: str) -> bool:
    """Return whether a line has a command line of fio."""
    return _COMMAND.search(line) is not None


def options_in(lines: Sequence[str]) -> Options:
    """Return the options of command lines or job files that have one value only."""
    return {name: next(iter(each)) for name, each in _values(lines).items() if len(each) == 1}


def _values(lines: Sequence[str]) -> dict[str, dict[str, None]]:
    """Return the values of each option, in their order."""
    values: dict[str, dict[str, None]] = {}
    for line in lines:
        for either, other, value in _OPTION.findall(line):
            name = either or other
            if not name.startswith("rate") or value[0].isdecimal():  # the word of another program
                values.setdefault(name, {})[value] = None
    return values


def _of_one_run(lines: Sequence[str]) -> Options:
    """Return the options of a command line or job file, in which each `filename` adds files."""
    names = _values(lines).get("filename", {})
    return options_in(lines) | ({"filename": ":".join(names)} if names else {})


def options_of_run(before: Sequence[str], everywhere: Options) -> Options:
    """Return the options of a run: those above it, and what the text says once for all runs.

    A command line that names its job has all options; without direct=1, I/O is buffered.
    """
    place = max((place for place, line in enumerate(before) if is_command(line)), default=None)
    lines = [] if place is None else before[place:]
    command = " ".join(lines)
    if not _NAMED.search(command) or _JOB_FILE.search(command):
        return everywhere | _of_one_run(before)
    return {"direct": "0"} | _of_one_run(lines)
