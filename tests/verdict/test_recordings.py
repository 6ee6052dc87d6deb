"""Recordings of disks behind limiters that are not the lab's, with their logs.

All but one are loop devices with a volatile write cache behind a token bucket of 400 IOPS (of 460:
`above-terms`) in windows of 100 ms (or those of the name), recorded by `disksla record`: fio with
one writer or four (`merged`: their flushes are merged), and PostgreSQL 15 under pgbench with 1 and
8 clients. The `free` disks were not throttled. `NAME.truth.json.gz` has, for each window of the
bucket, its end (monotonic time) and for how long at least one request waited.

`qemu-64k` is a disk in a virtual machine under QEMU's own limiter (leaky bucket, 8 MB/s), and one
writer of 64 KiB; it waited for the limiter in more than nine tenths of ten seconds.
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
IOPS_400 = "{budget: sum, iops: 400}"
FREE = sorted(path.name.removesuffix(".rec.gz") for path in HERE.glob("free-*.rec.gz"))


def records(
    name: str, directory: Path, device: str = DEVICE, terms: str | None = IOPS_400
) -> list[WindowRecord]:
    config = directory / "disks.yml"
    entry = f"disks: [{{match: {{device: {device}}}, terms: {terms}}}]\n" if terms else ""
    config.write_text(f"discovery: {{include: [^{device}$]}}\n{entry}")
    recording = directory / "recording.gz"
    recording.write_bytes((HERE / f"{name}.rec.gz").read_bytes())
    states = pairwise(replay(recording, config))
    return [row for before, after in states for row in window_records(before, after)]


def seconds(rows: list[WindowRecord], verdict: str) -> float:
    """Return the seconds of a verdict; of throttled windows, those in which requests waited."""
    return sum(
        (row.throttled_s if verdict == "throttled" else row.window_s) or 0.0
        for row in rows
        if row.verdict == verdict
    )


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
        ("fdatasync", 0.05),
        ("fdatasync-merged", 0.1),
        ("pgbench-8", 0.05),
        ("pgbench-1", 0.05),
        ("window-30ms", 0.05),
        ("window-500ms", 0.05),
        ("window-1s", 0.05),
        ("window-1s-one-writer", 0.05),
        ("above-terms", 0.05),
    ],
)
def test_throttled_seconds_agree_with_the_truth(
    name: str, tolerance: float, tmp_path: Path
) -> None:
    rows = records(name, tmp_path)
    truth_s = true_throttled_s(name, rows)
    assert seconds(rows, "throttled") == pytest.approx(truth_s, rel=tolerance)
    assert not seconds(rows, "stalled")
    limit = "unknown" if name == "above-terms" else "iops"
    assert seconds([row for row in rows if row.limit == limit], "throttled") > 0.9 * truth_s
    if name == "fdatasync-merged":  # the number of data writes is known as a range only
        assert rows[-1].ceiling_iops is None
    else:
        ceiling = 460 if name == "above-terms" else 400
        assert rows[-1].ceiling_iops == pytest.approx(ceiling, rel=0.02)


@pytest.mark.parametrize(
    "name", ["one-writer", "deep-queue", "fdatasync", "fdatasync-merged", "above-terms"]
)
def test_throttling_is_detected_without_terms(name: str, tmp_path: Path) -> None:
    rows = records(name, tmp_path, terms=None)
    truth_s = true_throttled_s(name, rows)
    assert seconds(rows, "throttled") == pytest.approx(truth_s, rel=0.05)


def test_windows_that_are_no_multiple_of_samples_are_found_without_terms(tmp_path: Path) -> None:
    """Of 30 ms, with 12 requests in each. The first second is missing: ten releases are needed."""
    rows = records("window-30ms", tmp_path, terms=None)
    assert seconds(rows, "throttled") > true_throttled_s("window-30ms", rows) - 1.5


@pytest.mark.parametrize("terms", ["{budget: sum, bandwidth: 8MB/s}", None])
def test_limiter_of_qemu_is_detected(terms: str | None, tmp_path: Path) -> None:
    rows = records("qemu-64k", tmp_path, "vdb", terms)
    writing = [row for row in rows if row.verdict == "throttled" and row.writes]
    assert sum(row.window_s or 0.0 for row in writing) > 9.0
    assert rows[-1].ceiling_bytes_per_second == pytest.approx(8e6, rel=0.01)


def test_load_that_touches_the_limit_is_throttled_for_a_part_of_its_windows(
    tmp_path: Path,
) -> None:
    rows = records("poisson-90", tmp_path)
    assert seconds(rows, "throttled") == pytest.approx(0.3, abs=0.2)
    assert sum(row.window_s or 0.0 for row in rows if row.verdict == "throttled") > 0.5


@pytest.mark.parametrize("name", FREE)
def test_free_disk_without_terms_is_not_reported(name: str, tmp_path: Path) -> None:
    assert seconds(records(name, tmp_path, terms=None), "throttled") < 0.1


@pytest.mark.parametrize("name", FREE)
def test_disk_that_is_not_throttled_is_not_reported(name: str, tmp_path: Path) -> None:
    rows = records(name, tmp_path)
    assert true_throttled_s(name, rows) < 0.1
    assert seconds(rows, "throttled") < 0.3


@pytest.mark.parametrize("name", FREE)
def test_load_below_the_limit_does_not_prove_it(name: str, tmp_path: Path) -> None:
    assert seconds(records(name, tmp_path), "met") < 0.2
