"""Recordings in which a name is given to another disk, or a disk gets other terms."""

import json
from pathlib import Path
from typing import Any

import pytest

from disksla.commands.cli import main
from support.simulated_host import FIELDS

GIB = 2**30
TERMS = """
disks:
  - match: {serial: former}
    terms: {budget: sum, iops: 300}
  - match: {serial: present}
    terms: aws.gp3
"""

Captured = pytest.CaptureFixture[str]


class Recording:
    """A recording of one name, to which ticks are added."""

    def __init__(self, path: Path, configuration: str = TERMS) -> None:
        header = {"recording": 1, "interval_s": 0.1, "kernel": "6.1.0", "disksla": "0"}
        self.path = path
        self.lines: list[dict[str, Any]] = [
            {**header, "configuration": {"settings": configuration}}
        ]
        self.now_s = 1000.0
        self.numbers = dict.fromkeys(FIELDS, 0)

    def ticks(self, seconds: float, iops: int, inflight: int = 0, **disk: Any) -> None:
        """Add ticks of a load; `disk` is what the first of them has of the disk, if anything."""
        for number in range(round(seconds * 10)):
            self.now_s = round(self.now_s + 0.1, 3)
            reads = iops // 10
            rises = {"reads": reads, "read_sectors": 8 * reads, "read_ms": reads * 6 * inflight}
            for name, rise in rises.items():
                self.numbers[name] += rise
            self.numbers["inflight"] = inflight
            counters = " ".join(str(self.numbers[name]) for name in FIELDS)
            text = f" 259 0 nvme1n1 {counters}\n"
            known = {"name": "nvme1n1", "major": 259, "minor": 0, "size_bytes": 500 * GIB}
            self._add(text, disks=[known | disk] if disk and not number else None)

    def is_detached(self) -> None:
        removed: list[list[dict[str, Any]] | None] = [[], None, None]
        for disks in removed:
            self.now_s = round(self.now_s + 0.1, 3)
            self._add("", disks=disks)
        self.numbers = dict.fromkeys(FIELDS, 0)

    def _add(self, text: str, disks: list[dict[str, Any]] | None) -> None:
        clocks = {"monotonic_s": self.now_s, "boottime_s": self.now_s, "realtime_s": 1.7e9}
        clocks["realtime_s"] += self.now_s
        tick: dict[str, Any] = {"clocks": clocks, "diskstats": text}
        self.lines.append(tick if disks is None else {**tick, "disks": disks})

    def written(self) -> str:
        self.path.write_text("".join(f"{json.dumps(line)}\n" for line in self.lines))
        return str(self.path)


@pytest.fixture
def reused(tmp_path: Path) -> str:
    """Return a recording: a disk at its limit, then another of the same name with little load."""
    recording = Recording(tmp_path / "reused.jsonl")
    recording.ticks(9, 300, 32, serial="former")
    recording.is_detached()
    recording.ticks(6, 100, 1, serial="present")
    return recording.written()


def text_of(capsys: Captured, *arguments: str) -> str:
    main([*arguments])
    return " ".join(capsys.readouterr().out.split())


def test_explain_is_about_the_present_disk(reused: str, capsys: Captured) -> None:
    for device in ((), ("nvme1n1",)):
        text = text_of(capsys, "explain", *device, "--recording", reused)
        assert "the load asked for less than is promised: 100 IOPS" in text
        assert "the disk was throttled at" not in text
        assert "For 5 of the last 5 s" in text


def test_advise_is_about_the_present_disk(reused: str, capsys: Captured) -> None:
    main(["advise", "--recording", reused, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["throttled_share"], found["present"]["terms"]) == (0.0, "aws.gp3")
    assert found["seconds"] == pytest.approx(5.5)


def test_replay_is_about_the_present_disk(reused: str, capsys: Captured) -> None:
    assert main(["replay", reused]) == 0
    out = capsys.readouterr().out
    assert "gaps: 1 vanished" in out
    [row] = [line.split() for line in out.splitlines() if line.startswith("nvme1n1")]
    assert "590" in row


@pytest.fixture
def grown(tmp_path: Path) -> str:
    """Return a recording of a volume whose size, and with it its limit, grows threefold."""
    volume = "disks: [{match: {serial: v}, terms: aws.gp2}]"
    recording = Recording(tmp_path / "grown.jsonl", volume)
    recording.ticks(12, 300, 32, serial="v", size_bytes=100 * GIB)
    recording.ticks(6, 300, 1, serial="v", size_bytes=2000 * GIB)
    return recording.written()


def test_volume_that_grows_is_explained_since_then(grown: str, capsys: Captured) -> None:
    text = text_of(capsys, "explain", "--recording", grown)
    assert "For 5 of the last 5 s the load asked for less than is promised: 300 IOPS" in text
    assert "The limits of the disk changed 5 s ago." in text


def test_requests_that_are_never_done_are_no_stall(tmp_path: Path, capsys: Captured) -> None:
    """In a recording, the silence before the first that shows it is none either."""
    recording = Recording(tmp_path / "stuck.jsonl")
    for silent_s in (40, 4, 4):
        recording.ticks(silent_s, 0, 1, serial="present")
        recording.numbers["reads"] += 6
        recording.numbers["read_ms"] += 6
        recording.ticks(0.1, 0, 1)
    text = text_of(capsys, "explain", "--recording", recording.written())
    assert "hung" not in text
    assert "the disk was idle" in text


def test_label_and_sentence_of_a_recording_have_the_same_load(
    tmp_path: Path, capsys: Captured
) -> None:
    recording = Recording(tmp_path / "one.jsonl")
    recording.ticks(20, 1500, 1, serial="present")
    recording.ticks(3, 10, 1)
    text = text_of(capsys, "explain", "--recording", recording.written())
    assert " OK, 43 % of the limit No limit held this disk back: 43 % of its limit, " in text


def test_requests_that_are_never_done_ask_for_no_other_disk(
    tmp_path: Path, capsys: Captured
) -> None:
    recording = Recording(tmp_path / "stuck.jsonl")
    recording.ticks(6, 100, 1, serial="present")
    recording.ticks(40, 0, 1)
    recording.ticks(6, 100, 1)
    main(["advise", "--recording", recording.written(), "--json"])
    assert json.loads(capsys.readouterr().out)["limited_share"] == 0.0


def test_a_silence_that_ends_is_limited_time(tmp_path: Path, capsys: Captured) -> None:
    recording = Recording(tmp_path / "hung.jsonl")
    recording.ticks(6, 100, 1, serial="present")
    recording.ticks(40, 0, 1)
    recording.numbers["read_ms"] += 40_000
    recording.ticks(6, 100, 1)
    main(["advise", "--recording", recording.written(), "--json"])
    assert json.loads(capsys.readouterr().out)["limited_share"] == pytest.approx(0.77, abs=0.02)
