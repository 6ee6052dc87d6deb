"""Recordings without close samples, as of a daemon that cannot read sysfs, with the truth.

What is in `recordings` and `staggered` was taken of loop devices with a volatile write cache
behind a token bucket of 400 IOPS (of 460: `above-terms`; `staggered`: of 250) in windows of 100 ms
(or those of the name), by `disksla record`: fio with one writer or a deep queue, with and without
fdatasync, and PostgreSQL 15 under pgbench with 8 clients. `staggered` has three recordings of each
of two loads, which start some tenths of a second apart. `free` disks were not throttled. The truth
has, for each window of the bucket, its end (monotonic time) and for how long a request waited.

`qemu-64k` is a disk in a virtual machine under QEMU's own limiter (leaky bucket, 8 MB/s), and one
writer of 64 KiB; it waited for the limiter in more than nine tenths of ten seconds. Of
`qemu-waves-late`, the machine had too little CPU: many samples are late. `qemu-postgresql` are
loop devices over the same limiter (qemu-storage-daemon, exported by FUSE), with pgbench on
PostgreSQL. For how long a request waited there, QEMU's trace says.

`truth_cases` are disks without a limiter that were accused by earlier versions, and two with
bursts, where the truth has the time, the level of the credits, and for how long a request waited;
the IOPS of `exact` ones are counted without flushes. `timer` ones are simulated: a program makes
six or seven reads at each tick of a timer, and the disk serves some of them fifteen times slower.
"""

import gzip
import json
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from disksla.commands.replay import replay
from disksla.state.pipeline.state import State
from disksla.state.pipeline.window_records import WindowRecord, window_records
from disksla.verdict.credits import CreditLevel

HERE = Path(__file__).parent
DEVICE = "loop0"
IOPS_400 = "{budget: sum, iops: 400}"


def names(pattern: str) -> list[str]:
    """Return the recordings whose path matches, without the end of their names."""
    paths = HERE.glob(f"{pattern}.rec.gz")
    return sorted(str(path.relative_to(HERE)).removesuffix(".rec.gz") for path in paths)


FREE = names("recordings/free-*")
WITH_TRUTH = [*names("recordings/[!q]*"), *names("staggered/*")]
STAGGERED_TERMS = "{budget: sum, iops: 250}"


def states(name: str, directory: Path, device: str, terms: str | None) -> Iterator[State]:
    config = directory / "disks.yml"
    entry = f"disks: [{{match: {{device: {device}}}, terms: {terms}}}]\n" if terms else ""
    config.write_text(f"discovery: {{include: [^{device}$]}}\n{entry}")
    recording = directory / "recording.gz"
    recording.write_bytes((HERE / f"{name}.rec.gz").read_bytes())
    return replay(recording, config)


def records(
    name: str, directory: Path, device: str = DEVICE, terms: str | None = IOPS_400
) -> list[WindowRecord]:
    replayed = pairwise(states(name, directory, device, terms))
    return [row for before, after in replayed for row in window_records(before, after)]


def seconds(rows: list[WindowRecord], verdict: str) -> float:
    """Return the seconds of a verdict; of throttled windows, those in which requests waited."""
    return sum(
        (row.throttled_s if verdict == "throttled" else row.window_s) or 0.0
        for row in rows
        if row.verdict == verdict
    )


def assessed_s(rows: list[WindowRecord]) -> float:
    return sum(row.window_s or 0.0 for row in rows)


@cache
def truth(name: str) -> list[tuple[float, float]]:
    """Return the end of each window of the limiter, and for how long a request waited in it."""
    stored = json.loads(gzip.decompress((HERE / f"{name}.truth.json.gz").read_bytes()))
    if isinstance(stored, dict):
        return [(row[0], row[1]) for row in stored["rows"]]
    return [(window["end_s"], window["throttled_s"]) for window in stored]


def true_throttled_s(name: str, rows: list[WindowRecord]) -> float:
    begun_s, ended_s = rows[0].monotonic_s, rows[-1].monotonic_s
    return sum(waited_s for end_s, waited_s in truth(name) if begun_s <= end_s <= ended_s)


@pytest.mark.parametrize("has_terms", [True, False], ids=["terms", "no-terms"])
@pytest.mark.parametrize("name", WITH_TRUTH)
def test_no_more_is_throttled_than_in_truth(name: str, has_terms: bool, tmp_path: Path) -> None:
    terms = STAGGERED_TERMS if name.startswith("staggered") else IOPS_400
    rows = records(name, tmp_path, terms=terms if has_terms else None)
    found_s = seconds(rows, "throttled")
    assert found_s <= true_throttled_s(name, rows) + 0.16 * assessed_s(rows)
    assert not seconds(rows, "stalled")
    named = {row.limit for row in rows if row.limit is not None}
    assert named <= ({"iops"} if has_terms and name != "recordings/above-terms" else {"unknown"})


@pytest.mark.parametrize("name", ["deep-queue", "one-writer", "fdatasync"])
def test_known_limit_is_seen_at_once(name: str, tmp_path: Path) -> None:
    name = f"recordings/{name}"
    rows = records(name, tmp_path)
    assert seconds(rows, "throttled") > true_throttled_s(name, rows) - 0.5
    assert {row.limit for row in rows if row.limit is not None} == {"iops"}


def test_limiter_of_qemu_is_detected(tmp_path: Path) -> None:
    rows = records("recordings/qemu-64k", tmp_path, "vdb", "{budget: sum, bandwidth: 8MB/s}")
    busy = [row for row in rows if row.verdict != "idle"]
    throttled = [row for row in busy if row.verdict == "throttled"]
    assert assessed_s(throttled) > 0.4 * assessed_s(busy)
    assert seconds(busy, "throttled") > 0.8 * assessed_s(throttled)
    assert {row.limit for row in rows if row.limit is not None} == {"bandwidth"}
    assert rows[-1].ceiling_bytes_per_second == pytest.approx(8e6, rel=0.02)


@pytest.mark.parametrize(
    ("name", "device", "iops", "loaded_s", "waited_s", "points"),
    [
        ("waves-late", "vda", 255, 30.0, 15.8, 0.08),
        ("postgresql-8", "loop0", 150, 30.3, 30.0, 0.08),
        ("postgresql-1", "loop0", 200, 30.1, 24.8, 0.15),
    ],
)
def test_limiter_of_qemu_is_detected_for_as_long_as_requests_waited(
    name: str,
    device: str,
    iops: int,
    loaded_s: float,
    waited_s: float,
    points: float,
    tmp_path: Path,
) -> None:
    rows = records(f"recordings/qemu-{name}", tmp_path, device, f"{{budget: sum, iops: {iops}}}")
    assert seconds(rows, "throttled") == pytest.approx(waited_s, abs=points * loaded_s)
    assert {row.limit for row in rows if row.limit is not None} == {"iops"}
    assert not {"below", "stalled"} & {row.verdict for row in rows}


@pytest.mark.parametrize("terms", [IOPS_400, None], ids=["terms", "no-terms"])
@pytest.mark.parametrize("name", FREE)
def test_disk_that_is_not_throttled_is_not_reported(
    name: str, terms: str | None, tmp_path: Path
) -> None:
    rows = records(name, tmp_path, terms=terms)
    assert true_throttled_s(name, rows) < 0.1
    assert seconds(rows, "throttled") < 0.1
    assert seconds(rows, "met") < 0.2, "a load below the limit does not prove it"


@pytest.mark.parametrize("load", ["fdatasync", "pg8"])
def test_recordings_of_one_load_agree(load: str, tmp_path: Path) -> None:
    """Without terms: at the known limit it matters when in a window of 100 ms the samples are."""
    shares = []
    for name in names(f"staggered/{load}-*"):
        rows = records(name, tmp_path, terms=None)
        shares.append(seconds(rows, "throttled") / assessed_s(rows))
    assert len(shares) == 3
    assert max(shares) - min(shares) <= 0.05


PROMISES = {
    "mariadb-read-only": ("loop0", (3523, 5871)),
    "postgresql-16-clients": ("loop6", (621, 776, 1791, 2090)),
    "reader-with-2-writes-a-second": ("loop0", (2665, 3660)),
    "rocksdb-readrandom": ("loop3", (2444, 3055, 3339, 7050)),
    "rocksdb-readrandom-exact": ("loop3", (2444, 3055, 3339, 7050)),
    "timer-of-78-ms": ("vdx", (84, 92, 99, 228)),
    "timer-of-100-ms": ("vdx", (70, 77, 91, 209)),
}
"""The device, and promises: just above the mean, above the peak, 1.3 and 3 times the mean."""


@pytest.mark.parametrize(
    ("name", "device", "iops"),
    [
        (name, device, iops)
        for name, (device, promises) in PROMISES.items()
        for iops in (None, *promises)
    ],
)
def test_disk_of_programs_is_not_accused(
    name: str, device: str, iops: int | None, tmp_path: Path
) -> None:
    terms = None if iops is None else f"{{budget: sum, iops: {iops}}}"
    rows = records(f"truth_cases/free-{name}", tmp_path, device, terms)
    # At its own mean rate, a disk may be as even as a limiter for some seconds.
    most = 0.02 if iops in {promises[0] for _, promises in PROMISES.values()} else 0.005
    assert seconds(rows, "throttled") <= most * assessed_s(rows)
    assert assessed_s(rows) > 30


def bounds(
    name: str, directory: Path, device: str, terms: str
) -> Iterator[tuple[float, CreditLevel]]:
    """Yield the bounds of credits at each sample, with its time."""
    for state in states(name, directory, device, terms):
        for disk_state in state.monitored.values():
            assert state.clocks is not None
            account = disk_state.credits_at(state.clocks.boottime_s)
            recent = disk_state.totals.recent
            if account is not None and recent:
                limits = disk_state.assignment.limits
                for level in account.levels(limits, recent[-1]):
                    yield state.clocks.monotonic_s, level


@pytest.mark.parametrize("is_exact", [False, True], ids=["as-the-kernel", "exact"])
@pytest.mark.parametrize(
    ("name", "device", "iops", "burst_iops", "capacity"),
    [("etcd", "loop0", 252, 1008, 7560), ("poisson-reads", "loop1", 316, 1264, 16116)],
)
def test_bounds_of_credits_contain_the_truth(
    name: str,
    device: str,
    iops: int,
    burst_iops: int,
    capacity: int,
    is_exact: bool,
    tmp_path: Path,
) -> None:
    """But for the tokens of a window, which the limiter of the lab adds to the credits."""
    terms = (
        f"{{budget: sum, iops: {iops}, burst: {{iops: {burst_iops}, iops_credits: {capacity}}}}}"
    )
    name = f"truth_cases/credits-{name}"
    stored = json.loads(gzip.decompress((HERE / f"{name}.truth.json.gz").read_bytes()))
    recording = f"{name}-exact" if is_exact else name
    compared, narrowest = 0, float(capacity)
    for at_s, level in bounds(recording, tmp_path, device, terms):
        near = [tokens for end_s, tokens, _ in stored if abs(end_s - at_s) <= 0.15]
        if not near:
            continue
        assert level.lower_credits <= max(near) + 1
        assert level.upper_credits >= min(near) - 0.1 * iops - 1
        narrowest = min(narrowest, level.upper_credits - level.lower_credits)
        compared += 1
    assert compared > 280
    assert narrowest < 0.99 * capacity
