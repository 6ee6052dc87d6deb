"""What a person writes on the command line: quantities, and words of a whole command."""

import contextlib
import io
import math

from disksla.cli import main
from disksla.units import (
    format_bandwidth,
    format_duration,
    format_size,
    parse_bandwidth_bytes_per_second,
    parse_duration_s,
    parse_size_bytes,
)
from fuzz.target import Target

COMMANDS = ("limits", "catalog", "check-config", "replay", "judge")
"""Those that touch no disk and end by themselves."""


def quantity(content: bytes) -> bool:
    """It is a size, a bandwidth or a duration that can be said again, or ValueError."""
    text = content.decode(errors="replace")
    read = 0
    with contextlib.suppress(ValueError):
        size_bytes = parse_size_bytes(text)
        assert parse_size_bytes(f"{size_bytes}B") == size_bytes
        assert format_size(size_bytes)
        read += 1
    with contextlib.suppress(ValueError):
        assert 0 <= parse_bandwidth_bytes_per_second(text) < math.inf
        assert format_bandwidth(parse_bandwidth_bytes_per_second(text))
        read += 1
    with contextlib.suppress(ValueError):
        assert 0 <= parse_duration_s(text) < math.inf
        assert format_duration(parse_duration_s(text))
        read += 1
    return bool(read)


def command_line(content: bytes) -> bool:
    """It ends with one of the three statuses, whatever the words are."""
    command, *words = content.decode(errors="surrogateescape").split("\n")
    if command not in COMMANDS or not all(_is_harmless(word) for word in words):
        return False
    said = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict", write_through=True)
    wrong = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
        try:
            status = main([command, *words])
        except SystemExit as ended:
            status = int(ended.code or 0)
    assert status in {0, 1, 2}
    return status == 0


def _is_harmless(word: str) -> bool:
    """Tell a word that can neither be a file to be written nor wait for standard input."""
    return not word.startswith(("--html", "--junit", "-", "/")) or word in _OPTIONS


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
