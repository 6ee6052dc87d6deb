"""A recording of a disk of Yandex Cloud's limits on a machine with 2 vCPUs.

The disk is a loop device of the lab behind a token bucket of 7,000 IOPS in windows of 100 ms,
which is what 2 vCPUs allow; it is configured as a network-ssd of 300 GiB, which has 10,000. fio
reads 1,500 times per second for 2 s, and then with 64 requests in flight for 8 s.
"""

import argparse
from itertools import pairwise
from pathlib import Path

import pytest

from disksla.commands import explain
from disksla.commands.replay import replay
from disksla.pipeline.snapshot import take_snapshot
from disksla.pipeline.window_records import WindowRecord, window_records

RECORDING = Path(__file__).parent / "recordings" / "yandex-two-vcpus.jsonl.gz"


def configuration(directory: Path, machine: str = "") -> Path:
    file = directory / "disksla.yml"
    disk = "{match: {device: loop0}, terms: yandex.network-ssd, size: 300GiB}"
    file.write_text(f"discovery: {{include: [^loop0$]}}\ndisks: [{disk}]\n{machine}")
    return file


def records(config: Path) -> list[WindowRecord]:
    states = pairwise(replay(RECORDING, config))
    return [row for before, after in states for row in window_records(before, after)]


def seconds(rows: list[WindowRecord], verdict: str, limit: str | None = None) -> float:
    return sum(row.window_s or 0.0 for row in rows if (row.verdict, row.limit) == (verdict, limit))


def test_disk_is_throttled_by_its_machine(tmp_path: Path) -> None:
    rows = records(configuration(tmp_path))
    assert seconds(rows, "throttled", "machine_iops") > 7.8
    assert seconds(rows, "throttled", "iops") < 0.15
    assert seconds(rows, "below") == 0


def test_group_has_the_limits_of_the_recorded_cpus(tmp_path: Path) -> None:
    *_, last = replay(RECORDING, configuration(tmp_path))
    (group,) = take_snapshot(last).groups
    assert (group.shared.machine, group.shared.limits.rates.read_iops) == ("2 vCPUs", 7000)
    assert group.devices == ("loop0",)
    assert group.throttled_s["iops"] == pytest.approx(7.2, abs=0.8)


def test_on_a_larger_machine_the_disk_would_be_below_its_promise(tmp_path: Path) -> None:
    rows = records(configuration(tmp_path, "machine: {vcpus: 16}\n"))
    assert seconds(rows, "throttled", "machine_iops") == 0
    assert seconds(rows, "below") + seconds(rows, "throttled", "unknown") > 5


def test_explanation_names_the_machine_and_not_the_provider(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    explain.add_arguments(parser)
    config = configuration(tmp_path)
    words = ["loop0", "--recording", str(RECORDING), "--config.file", str(config)]
    assert explain.run(parser.parse_args(words)) == 0
    text = " ".join(capsys.readouterr().out.split())
    sentences = text[text.index("For ") :]
    assert "throttled at the limit of the machine" in sentences
    assert "A machine with 2 vCPUs allows all network SSDs and HDDs" in sentences
    assert "A larger or faster disk would not help; 4 vCPUs would (14000 IOPS)." in sentences
    assert "provider" not in sentences
