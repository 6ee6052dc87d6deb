"""`disksla check`: the line and the exit status, by the guidelines of monitoring plugins."""

import re
import shlex
import socket
from typing import Any

import msgspec
import pytest

from commands.test_explain import idle, throttled
from disksla.base.errors import DiskslaError
from disksla.commands._daemon import chosen_disks
from disksla.commands.check import STATUSES, check, document, parse_thresholds
from disksla.commands.cli import main
from disksla.tell.api import DiskDocument

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


def test_disks_without_a_problem_are_ok() -> None:
    line = said(disk("vda", {}), disk("vdb", {"throttled": 29.0}))
    assert line.startswith("DISKSLA OK - 2 disks | 'vda throttled'=0%;10;;0;100 ")
    assert "'vdb throttled'=9.666667%;10;;0;100" in line
    assert "'vdb latency'=0.0008s;;;0" in line


def test_worst_disk_decides_and_is_named_first() -> None:
    line = said(disk("vda", {"throttled": 60.0}), disk("vdb", {"stalled": 1.2}))
    assert line.startswith(
        "DISKSLA CRITICAL - vdb hung for 0.4 % of the last five minutes;"
        " vda was throttled for 20 % of the last five minutes | "
    )


def test_latency_has_a_threshold() -> None:
    line = said(disk("vda", {}), warning="latency=500us", critical="latency=20ms")
    assert line.startswith("DISKSLA WARNING - vda takes 0.8 ms for a request | ")
    assert "'vda latency'=0.0008s;0.0005;0.02;0" in line
    fast = msgspec.structs.replace(disk("vda", {"throttled": 0.00003}), latency_s=5.2e-05)
    line = said(fast, warning="latency=50us")
    assert "'vda latency'=0.000052s;0.00005;;0" in line
    assert "'vda throttled'=0.00001%;;;0;100" in line


def test_slow_disk_has_a_threshold() -> None:
    line = said(disk("vda", {"unproven": 90.0}, slow_s=90.0), warning="slow=25%")
    assert line.startswith("DISKSLA WARNING - vda was slow for 30 % of the last five minutes | ")
    assert "'vda slow'=30%;25;;0;100" in line


def test_critical_hides_the_warning_of_the_same_name() -> None:
    line = said(disk("vda", {"below": 150.0}), warning="below=10%", critical="below=40%")
    assert line.startswith(
        "DISKSLA CRITICAL - vda gave less than promised for 50 % of the last five minutes | "
    )


def test_disk_that_was_never_assessed_has_no_values() -> None:
    nothing = dict.fromkeys(idle("vda").verdict_seconds, 0.0)
    new = msgspec.structs.replace(idle("vda"), verdict_seconds=nothing, latency_s=None)
    assert check([new], parse_thresholds("throttled"), []) == (0, "DISKSLA OK - 1 disk")


def test_share_of_a_short_time_is_no_more_than_all_of_it() -> None:
    """Verdicts may be decided two seconds late, so that a disk was slow for longer."""
    seconds = dict.fromkeys(idle("vda").verdict_seconds, 0.0)
    started = idle("vda", verdict_seconds={**seconds, "unproven": 1.0}, slow_s=3.0)
    assert said(started, warning="slow").startswith(
        "DISKSLA WARNING - vda was slow for 100 % of the last 1 s | "
    )


def test_name_with_a_bar_or_quotes_leaves_text_and_data_apart() -> None:
    line = said(disk("nas:/a|b='c'\n", {"throttled": 60.0}))
    assert line.startswith("DISKSLA WARNING - nas:/a/b='c' was throttled for 20 % of")
    assert "'nas:/abc throttled'=20%;10;;0;100 " in line


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


def test_throttled_disk_of_a_daemon_is_a_warning() -> None:
    assert said(throttled()).startswith("DISKSLA WARNING - ")


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
def test_what_cannot_be_checked_is_unknown(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with pytest.raises(SystemExit) as exited:
        main(shlex.split(command))
    assert exited.value.code == STATUSES.index("UNKNOWN")
    line = capsys.readouterr().out
    assert line.startswith("DISKSLA UNKNOWN - ")
    assert line.count("\n") == 1


@pytest.mark.parametrize("option", ["-h", "--help", "-V", "--version"])
def test_help_and_version_are_of_unknown_status(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["check", option])
    assert exited.value.code == STATUSES.index("UNKNOWN")
    assert "disksla" in capsys.readouterr().out


def test_daemon_that_does_not_answer_in_time_is_unknown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(SystemExit) as exited:
        main(["check", "-t", "1", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}"])
    assert exited.value.code == STATUSES.index("UNKNOWN")
    assert capsys.readouterr().out == "DISKSLA UNKNOWN - no answer within 1 s\n"
