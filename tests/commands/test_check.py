"""`disksla check`: the line and the exit status, by the guidelines of monitoring plugins."""

import re
import shlex
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commands.test_explain import idle, throttled
from disksla.base.errors import DiskslaError
from disksla.commands._daemon import chosen_disks
from disksla.commands.check import STATUSES, check, document, parse_thresholds
from disksla.commands.cli import main
from disksla.tell.api import DiskDocument

Captured = pytest.CaptureFixture[str]

PERFORMANCE = re.compile(r"'[^'=]+'=-?[0-9.]+(s|%)?(;[0-9.]*){0,4}")
"""Monitoring Plugins Development Guidelines, section 2.6."""


def disk(name: str, seconds: dict[str, float], **changes: Any) -> DiskDocument:
    """Return a disk that had these verdicts, and was idle else."""
    verdicts = {str(verdict): 0.0 for verdict in idle(name).verdict_seconds}
    verdicts |= {"idle": 300.0 - sum(seconds.values()), **seconds}
    return idle(name, verdict_seconds=verdicts, latency_s=0.0008, **changes)


def said(*disks: DiskDocument, warning: str = "throttled=10%", critical: str = "stalled") -> str:
    """Return the line; its status is that which it says."""
    status, line = check(disks, parse_thresholds(warning), parse_thresholds(critical))
    assert line.startswith(f"DISKSLA {STATUSES[status]} - ")
    text, bar, data = line.partition(" | ")
    assert bar
    assert "|" not in text
    assert "\n" not in line
    words = re.findall(r"'[^']*'=\S*", data)
    assert " ".join(words) == data
    assert all(PERFORMANCE.fullmatch(each) for each in words), words
    return line


def lines() -> Iterator[str]:
    """Yield a heading and a line for each case."""
    few = msgspec.structs.replace(disk("vda", {"throttled": 0.00003}), latency_s=5.2e-05)
    never = dict.fromkeys(idle("vda").verdict_seconds, 0.0)
    started = idle("vda", verdict_seconds={**never, "unproven": 1.0}, slow_s=3.0)
    hostile = disk("nas:/a|b='c'\n", {"throttled": 60.0})
    slow, below = disk("vda", {"unproven": 90.0}, slow_s=90.0), disk("vda", {"below": 150.0})
    worst = (disk("vda", {"throttled": 60.0}), disk("vdb", {"stalled": 1.2}))
    for name, line in {
        "fine": said(disk("vda", {}), disk("vdb", {"throttled": 29.0})),
        "the worst disk decides and is named first": said(*worst),
        "latency": said(disk("vda", {}), warning="latency=500us", critical="latency=20ms"),
        "small numbers": said(few, warning="latency=50us"),
        "slow": said(slow, warning="slow=25%"),
        "critical hides the warning of its name": said(
            below, warning="below=10%", critical="below=40%"
        ),
        "verdicts may be two seconds late": said(started, warning="slow"),
        "a name with a bar, quotes and a line end": said(hostile),
    }.items():
        yield f"# {name}\n{line}\n"


def test_line(golden: Callable[[Path, str], None]) -> None:
    golden(Path(__file__).parent / "explain" / "check.txt", "".join(lines()))
    assert said(throttled()).startswith("DISKSLA WARNING - ")


def test_disk_that_was_never_assessed_has_no_values() -> None:
    nothing = dict.fromkeys(idle("vda").verdict_seconds, 0.0)
    new = msgspec.structs.replace(idle("vda"), verdict_seconds=nothing, latency_s=None)
    assert check([new], parse_thresholds("throttled"), []) == (0, "DISKSLA OK - 1 disk")


@pytest.mark.parametrize("seconds", [{}, {"throttled": 60.0}], ids=["fine", "throttled"])
def test_line_of_many_disks_fits_what_nagios_reads(seconds: dict[str, float]) -> None:
    line = said(*(disk(f"nvme{number}n1", seconds) for number in range(500)))
    assert 3500 < len(line.encode()) < 4096
    assert re.search(r"\(performance data of \d+ of 500 disks\) \| 'nvme0n1 throttled'=", line)


@pytest.mark.parametrize(
    "text", ["quick", "throttled=10", "throttled=x%", "throttled=101%", "latency", "latency=5"]
)
def test_invalid_threshold_is_refused(text: str) -> None:
    with pytest.raises(DiskslaError, match="expected throttled=10%"):
        parse_thresholds(text)


def test_document_has_the_values_that_the_thresholds_are_about() -> None:
    found = document([disk("vda", {"throttled": 150.0})], 1, "DISKSLA WARNING - x | 'vda'=1")
    assert (found["status"], found["text"]) == ("WARNING", "DISKSLA WARNING - x")
    assert found["disks"]["vda"]["throttled"] == 0.5


def test_disks_are_found_by_name_and_mount_point() -> None:
    data = "/var/lib/postgresql"
    disks = [
        disk("vda", {}, mount_points=(), claim="db/data-0"),
        disk("vdb", {}, mount_points=(data,)),
    ]
    assert chosen_disks(disks, []) == disks
    assert chosen_disks(disks, [data, "vdb"]) == disks[1:]
    assert chosen_disks(disks, ["/dev/vda"]) == chosen_disks(disks, ["db/data-0"]) == disks[:1]
    with pytest.raises(DiskslaError, match="does not monitor vdx; it monitors vda, vdb"):
        chosen_disks(disks, ["vdx"])
    with pytest.raises(DiskslaError, match="monitors no disk"):
        chosen_disks([], [])


@pytest.mark.parametrize(
    "command",
    [
        "check --url http://127.0.0.1:1",
        "check --warning nothing",
        "check --nonsense",
        "--nonsense check",
        "check --warning",
        "check --url ftp://db-1",
        "check --timeout soon",
        "check --timeout 99999999999",
    ],
)
def test_what_cannot_be_checked_is_unknown(capsys: Captured, command: str) -> None:
    with pytest.raises(SystemExit) as exited:
        main(shlex.split(command))
    assert exited.value.code == STATUSES.index("UNKNOWN")
    line = capsys.readouterr().out
    assert line.startswith("DISKSLA UNKNOWN - ")
    assert line.count("\n") == 1


@pytest.mark.parametrize("option", ["-h", "--help", "-V", "--version"])
def test_help_and_version_are_of_unknown_status(capsys: Captured, option: str) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["check", option])
    assert exited.value.code == STATUSES.index("UNKNOWN")
    assert "disksla" in capsys.readouterr().out


def test_daemon_that_does_not_answer_in_time_is_unknown(capsys: Captured) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(SystemExit) as exited:
        main(["check", "-t", "1", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}"])
    assert exited.value.code == STATUSES.index("UNKNOWN")
    assert capsys.readouterr().out == "DISKSLA UNKNOWN - no answer within 1 s\n"
