"""Words of the command line: quantities, and the arguments of whole commands."""

import contextlib
import io
import math

from disksla.base.units import (
    format_bandwidth,
    format_duration,
    format_size,
    parse_bandwidth_bytes_per_second,
    parse_duration_s,
    parse_size_bytes,
)
from disksla.commands.cli import main
from fuzz.target import Target

COMMANDS = ("limits", "check-config", "replay", "judge")
"""Commands that access no disk and end by themselves."""


def quantity(content: bytes) -> bool:
    """A quantity is parsed, finite and can be formatted, or ValueError is raised."""
    text = content.decode(errors="replace")
    parsed = 0
    with contextlib.suppress(ValueError):
        size_bytes = parse_size_bytes(text)
        assert parse_size_bytes(f"{size_bytes}B") == size_bytes
        assert format_size(size_bytes)
        parsed += 1
    with contextlib.suppress(ValueError):
        assert 0 <= parse_bandwidth_bytes_per_second(text) < math.inf
        assert format_bandwidth(parse_bandwidth_bytes_per_second(text))
        parsed += 1
    with contextlib.suppress(ValueError):
        assert 0 <= parse_duration_s(text) < math.inf
        assert format_duration(parse_duration_s(text))
        parsed += 1
    return bool(parsed)


def command_line(content: bytes) -> bool:
    """A command ends with exit status 0, 1 or 2, whatever its arguments are."""
    command, *arguments = content.decode(errors="surrogateescape").split("\n")
    if command not in COMMANDS or not all(_is_harmless(word) for word in arguments):
        return False
    stdout = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict", write_through=True)
    stderr = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        try:
            status = main([command, *arguments])
        except SystemExit as ended:
            status = int(ended.code or 0)
    assert status in {0, 1, 2}
    return status == 0


def _is_harmless(word: str) -> bool:
    """Return whether a word neither names a file to write nor reads standard input."""
    return not word.startswith(("--html", "-", "/")) or word in _OPTIONS


_OPTIONS = {
    *("--json", "--iops", "--bandwidth", "--request-size", "--write-share", "--terms", "--size"),
    *("--suite", "--metrics", "--config.file", "--help"),
}

TARGETS = (
    Target(
        "quantity",
        quantity,
        lambda: [b"500GiB", b"1.5TB", b"25MB/s", b"100ms", b"10m", b"1.005kB", b"0.000001s"],
        words=(b"KiB", b"us", b"/s", b".", b"1e3", b"0x1", b"1_0", b"\xd9\xa1", b"9" * 38),
    ),
    Target(
        "command-line",
        command_line,
        lambda: [
            b"limits\nvk.ceph-ssd\n100GiB",
            b"limits\nyandex.network-hdd\n1TiB\n--request-size\n1MiB\n--write-share\n0.3\n--json",
            b"catalog\n--json",
        ],
        words=tuple(option.encode() + b"\n" for option in sorted(_OPTIONS)),
        mutations=100,
    ),
)
