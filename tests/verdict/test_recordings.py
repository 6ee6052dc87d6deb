"""Recordings of disks behind a token bucket that is not the lab's, with its log.

The limit is 400 IOPS in windows of 100 ms; the `free` disks were not throttled. All are loop
devices with a volatile write cache, recorded by `disksla record`: fio with one writer or four
(`merged`: their flushes are merged), and PostgreSQL 15 under pgbench with 1 and 8 clients.
`NAME.truth.json.gz` has, for each window of the bucket, its end (monotonic time) and for how long
at least one request waited.
"""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest

from disksla.commands.replay import replay
from disksla.pipeline.window_records import WindowRecord, window_records

HERE = Path(__file__).parent / "recordings"
DEVICE = "loop0"
FREE = sorted(path.name.removesuffix(".rec.gz") for path in HERE.glob("free-*.rec.gz"))


def records(name: str, directory: Path) -> list[WindowRecord]:
    config = directory / "disks.yml"
    config.write_text(
        f"discovery: {{include: [^{DEVICE}$]}}\n"
        f"disks: [{{match: {{device: {DEVICE}}}, terms: {{budget: sum, iops: 400}}}}]\n"
    )
    recording = directory / "recording.gz"
    recording.write_bytes((HERE / f"{name}.rec.gz").read_bytes())
    states = pairwise(replay(recording, config))
    return [row for before, after in states for row in window_records(before, after)]


def seconds(rows: list[WindowRecord], verdict: str) -> float:
    return sum(row.window_s or 0.0 for row in rows if row.verdict == verdict)


def true_throttled_s(name: str, rows: list[WindowRecord]) -> float:
    windows = json.loads(gzip.decompress((HERE / f"{name}.truth.json.gz").read_bytes()))
    begun_s, ended_s = rows[0].monotonic_s, rows[-1].monotonic_s
    throttled_s: list[float] = [
        window["throttled_s"] for window in windows if begun_s <= window["end_s"] <= ended_s
    ]
    return sum(throttled_s)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        ("one-writer", 0.05),
        ("deep-queue", 0.05),
        ("fdatasync", 0.1),
        ("fdatasync-merged", 0.1),
        ("pgbench-8", 0.1),
        ("pgbench-1", 0.1),
    ],
)
def test_throttled_seconds_agree_with_the_truth(
    name: str, tolerance: float, tmp_path: Path
) -> None:
    rows = records(name, tmp_path)
    truth_s = true_throttled_s(name, rows)
    assert seconds(rows, "throttled") == pytest.approx(truth_s, rel=tolerance)


@pytest.mark.parametrize("name", FREE)
def test_disk_that_is_not_throttled_is_not_reported(name: str, tmp_path: Path) -> None:
    rows = records(name, tmp_path)
    assert true_throttled_s(name, rows) < 0.1
    assert seconds(rows, "throttled") < 0.3


@pytest.mark.parametrize("name", FREE)
def test_load_below_the_limit_does_not_prove_it(name: str, tmp_path: Path) -> None:
    assert seconds(records(name, tmp_path), "met") < 0.2
