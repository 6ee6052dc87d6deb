"""Texts of NFS mounts and of control groups: mountstats, io.stat, io.max and paths of groups."""

import math
from pathlib import Path

import msgspec
from msgspec.structs import astuple

from disksla.base.counts import Counts
from disksla.kernel.consumers.consumption import parse_io_max, parse_io_stat
from disksla.kernel.consumers.names import consumer_of, pod_names_of
from disksla.kernel.nfs.mountstats import parse_mountstats
from fuzz.target import Target
from support.nfs_client import Export

TESTS = Path(__file__).parents[3] / "tests"
ID = "0123456789ab" + "cd" * 26


def mountstats(content: bytes) -> bool:
    """Check that each mount has counters of 64 bits, or a printable problem."""
    found = parse_mountstats(content.decode(errors="replace"), {"/data": "one", "/x": "other"})
    assert found.readings.keys() | found.problems.keys() <= {"one", "other"}
    assert all(problem.isprintable() for problem in found.problems.values())
    for reading in found.readings.values():
        msgspec.convert(msgspec.to_builtins(reading), type(reading))  # as in a recording
    return bool(found.readings)


def io_stat(content: bytes) -> bool:
    """Check that amounts are counters, or a ValueError."""
    try:
        found = parse_io_stat(content.decode(errors="replace"))
    except ValueError:
        return False
    assert all(0 <= value < 2**64 for amounts in found.values() for value in astuple(amounts))
    return _can_be_summed(found)


def io_max(content: bytes) -> bool:
    """Check that limits are numbers or infinite, or a ValueError."""
    try:
        found = parse_io_max(content.decode(errors="replace"))
    except ValueError:
        return False
    assert all(value >= 0 for amounts in found.values() for value in astuple(amounts))
    return _can_be_summed(found)


def _can_be_summed(found: dict[str, Counts]) -> bool:
    for amounts in found.values():
        total = amounts + amounts
        assert not math.isnan(total.bytes / 1.5 + total.requests / 1.5)
    return bool(found)


def group_path(content: bytes) -> bool:
    """Check that names are printable and short, and that a user's begin with what is theirs."""
    path = content.decode(errors="surrogateescape")
    pods = pod_names_of([f"{path[:60]}_ns_c-{ID}.log", f"pod_ns_c-{ID}.log"])
    for depth in (None, 1, 3):
        name = consumer_of(path, pods, depth)
        assert name.isprintable()
        assert 0 < len(name) <= 128
    below = consumer_of(f"/user.slice/user-7.slice/user@7.service/{path}", pods)
    assert f"{below}/".startswith("user@7.service/")
    return True


def _mountstats_samples() -> list[bytes]:
    files = [
        path for path in (TESTS / "kernel" / "procfs" / "mountstats").rglob("*") if path.is_file()
    ]
    export = Export(point="/data", has_sessions=True)
    export.does("READ", 7, 4096)
    found = [path.read_bytes() for path in sorted(files)]
    return [export.block("/data").encode(), *(text for text in found if mountstats(text))]


def _paths() -> list[bytes]:
    lines = [
        line.partition(" = ")[0]
        for path in sorted((TESTS / "kernel" / "consumers" / "trees").glob("*.txt"))
        for line in path.read_text("ascii").splitlines()
        if line.startswith("/")
    ]
    return [line.encode() for line in lines]


TARGETS = (
    Target("mountstats", mountstats, _mountstats_samples, words=(b"\tREAD: ", b" -1 ", b"\n")),
    Target(
        "io-stat",
        io_stat,
        lambda: [
            b"254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n",
            b"8:0 8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0 cost.usage=7\n",
        ],
        words=(b"254:0 ", b"rbytes=", b"-1", b"1_0", b"18446744073709551616", b"nan", b"\n"),
    ),
    Target(
        "io-max",
        io_max,
        lambda: [b"254:0 rbps=max wbps=1048576 riops=max wiops=120\n"],
        words=(b"254:0 ", b"wiops=", b"max", b"inf", b"nan", b"-1", b"1e999", b"\n"),
    ),
    Target("group-path", group_path, _paths, words=(b"/", b".scope", b"user@1.service", b"lxc/")),
)
