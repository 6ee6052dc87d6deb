"""Normal output of fio: jobs, groups of jobs, several runs, and what cannot be read."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.errors import DiskslaError
from disksla.units import KIB
from disksla.verification.import_fio_text import is_fio_text, parse_fio_text
from disksla.verification.measurement import Measurement

PUBLIC = Path(__file__).parent / "public"
RUNS = (PUBLIC / "fio-3.28-three-runs.md").read_text()
MIX = (PUBLIC / "fio-2.1-mix.txt").read_text()
WRITES, _, READS = (PUBLIC / "vps-comparison-aws.txt").read_text().partition("\n\n./fio")
READS = f"./fio{READS}"


def job(name: str = "a", group: int = 0, **options: str) -> str:
    found = {"rw": "randread", "sizes": "(R) 4096B-4096B, (W) 4096B-4096B", "depth": "8"} | options
    return (
        f"{name}: (g={group}): rw={found['rw']}, bs={found['sizes']}, (T) 4096B-4096B,"
        f" ioengine={found.get('engine', 'libaio')}, iodepth={found['depth']}\n"
    )


def result(name: str = "a", group: int = 0, jobs: int = 1, reads: int = 1000, **lines: str) -> str:
    return (
        f"{name}: (groupid={group}, jobs={jobs}): err= 0: pid=1: Mon Nov 23 2026\n"
        + lines.get("read", "  read: IOPS=100, BW=400KiB/s (410kB/s)(4000KiB/10000msec)\n")
        + lines.get("latency", "    clat (msec): min=1, max=9, avg=80.00, stdev=1.00\n")
        + f"     issued rwts: total={reads},0,0,0 short=0,0,0,0 dropped=0,0,0,0\n"
    )


def parse_one(text: str) -> Measurement:
    [measurement] = parse_fio_text(text)
    return measurement


def test_versions_2_and_3_are_read_alike() -> None:
    mix = parse_one(MIX)
    assert mix.tool == "fio-2.1.11"
    assert (mix.read.requests, mix.write.requests) == (786347, 262229)
    assert mix.measured.mean_latency_s is None
    assert parse_one(READS).tool == "fio-3.1"


@pytest.mark.parametrize("text", [READS.replace("\n", "\r\n"), READS.replace("\n", "\n    ")])
def test_line_ends_and_indentation_do_not_matter(text: str) -> None:
    assert parse_one(text) == parse_one(READS)


def test_progress_before_a_result_on_its_line_is_skipped() -> None:
    assert parse_one(READS.replace("00m:00s]\n", "00m:00s]\r")) == parse_one(READS)


def test_groups_are_loads_of_their_own() -> None:
    text = job("a") + job("b", 1, rw="read") + result("a") + result("b", 1)
    first, second = parse_fio_text(text)
    assert (first.name, first.pattern, second.name, second.pattern) == (
        "a",
        "randread",
        "b",
        "read",
    )


def test_clones_and_jobs_of_a_group_are_one_load() -> None:
    clones = parse_one(job() + "...\n" + result(jobs=4))
    assert (clones.inflight, clones.measured.requests) == (32, 1000)
    apart = parse_one(job() + "...\n" + result() + result())
    assert (apart.inflight, apart.measured.requests, apart.percentiles) == (16, 2000, ())
    differ = parse_one(job(depth="8") + job("b", depth="4", rw="randwrite") + result(jobs=2))
    assert (differ.inflight, differ.pattern) == (12, "randrw")


def test_synchronous_engine_has_one_in_flight() -> None:
    assert parse_one(job(engine="psync") + "...\n" + result(jobs=4)).inflight == 4


def test_sizes_are_exact_or_the_mean() -> None:
    exact = parse_one(job() + result())
    assert (exact.request_bytes, exact.measured.bytes) == (4 * KIB, 4096 * 1000)
    several = parse_one(job(sizes="(R) 4096B-64.0KiB, (W) 4096B-64.0KiB") + result())
    assert (several.request_bytes, several.measured.bytes) == (4 * KIB, 4000 * KIB)


@pytest.mark.parametrize(
    ("options", "is_direct", "rate_iops", "targets"),
    [
        ("", None, None, ()),
        ("fio --direct=1 --filename=/dev/vdb", True, None, ("/dev/vdb",)),
        ("fio -direct 1 -rate_iops=100", True, 200.0, ()),
        ("[global]\ndirect=0", False, None, ()),
        ("buffered=0", True, None, ()),
        ("fio --direct=1\nfio --direct=0", None, None, ()),
        ("--rate_iops=1k --filename='/dev/vdb:/dev/vdc'", None, None, ("/dev/vdb", "/dev/vdc")),
    ],
)
def test_options_are_those_of_the_command_line_or_job_file(
    options: str, is_direct: bool | None, rate_iops: float | None, targets: tuple[str, ...]
) -> None:
    measurement = parse_one(f"{options}\n{job()}...\n{result(jobs=2)}")
    assert (measurement.is_direct, measurement.rate_iops, measurement.targets) == (
        is_direct,
        rate_iops,
        targets,
    )


def test_options_above_all_runs_hold_for_each() -> None:
    one = job() + result()
    assert [each.is_direct for each in parse_fio_text(f"fio --direct=1\n{one}{one}")] == [True] * 2


def test_each_command_starts_a_run() -> None:
    one = job() + result()
    loads = parse_fio_text(f"fio --direct=1\n{one}$ fio --direct=0\n{one}")
    assert [each.is_direct for each in loads] == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (job() + result().replace("err= 0", "err= 5"), "fio reports error 5"),
        (job(rw="trim") + result(), "its requests are unknown"),
        (job(depth="0") + result(), "its requests are unknown"),
        (job(sizes="(R) big") + result(), "its requests are unknown"),
        (result(), "its requests are unknown"),
        (job() + "...\n" + job(depth="2") + result(jobs=5), "found 5 jobs of 2 kinds"),
        (job() + result().replace("issued", "done"), "found no number of requests"),
        (job() + result().replace("10000msec", "0msec"), "a runtime of 0 ms"),
        (
            job(sizes="(R) 4096B-64.0KiB, (W) 4096B-64.0KiB")
            + result(read="  read: IOPS=100, BW=x/10000msec\n"),
            "expected an amount of data",
        ),
        (job() + result(read="  mixed: IOPS=100\n", latency=""), "reported together"),
    ],
)
def test_incomplete_output_is_rejected(text: str, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        parse_fio_text(text)


def test_other_text_is_not_output_of_fio() -> None:
    assert is_fio_text(RUNS)
    assert not is_fio_text("fio-3.28\nStarting 1 process")


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Return a result of which a part is removed or replaced."""
    text = draw(st.sampled_from([RUNS, MIX, WRITES]))
    begin = draw(st.integers(0, len(text)))
    end = draw(st.integers(begin, min(len(text), begin + 200)))
    return text[:begin] + draw(st.text(max_size=20)) + text[end:]


@given(st.text() | damaged())
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    with contextlib.suppress(DiskslaError):
        for measurement in parse_fio_text(text):
            assert measurement.inflight > 0
            assert measurement.request_bytes > 0


@pytest.mark.parametrize("piece", ["x: ", " ", "a: (g=0): rw=", "direct=", "\r", "total=r=1/w="])
def test_parse_time_is_linear_in_length(piece: str) -> None:
    """With quadratic regular expressions this would take minutes."""
    with contextlib.suppress(DiskslaError):
        parse_fio_text(READS + piece * 30_000)
