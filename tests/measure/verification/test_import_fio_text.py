"""Normal output of fio: jobs, groups of jobs, several runs, and what cannot be read."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import KIB
from disksla.measure.verification.import_fio_text import is_fio_text, parse_fio_text
from disksla.measure.verification.measurement import Measurement
from support.examples import damaged_text

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


@pytest.mark.parametrize(
    ("old", "new"),
    [("\n", "\r\n"), ("\n", "\n    "), ("00m:00s]\n", "00m:00s]\r")],
    ids=["line ends", "indentation", "progress"],
)
def test_what_is_around_the_lines_does_not_matter(old: str, new: str) -> None:
    assert parse_one(READS.replace(old, new)) == parse_one(READS)
    assert parse_one(READS).tool == "fio-3.1"


def test_clones_and_jobs_of_a_group_are_one_load() -> None:
    clones = parse_one(job() + "...\n" + result(jobs=4))
    assert (clones.inflight, clones.measured.requests) == (32, 1000)
    apart = parse_one(job() + "...\n" + result() + result())
    assert (apart.inflight, apart.measured.requests, apart.percentiles) == (16, 2000, ())
    differ = parse_one(job(depth="8") + job("b", depth="4", rw="randwrite") + result(jobs=2))
    assert (differ.inflight, differ.pattern) == (12, "randrw")
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
        ("--rate_iops=1k --filename='/dev/vdb:/dev/vdc'", None, 2048.0, ("/dev/vdb", "/dev/vdc")),
        ("filename=/dev/vdb\nfilename=/dev/vdc", None, None, ("/dev/vdb", "/dev/vdc")),
        ("directory=/a:/b", None, None, ("/a", "/b")),
        ('-filename="E\\:file" -direct=1', True, None, ("E:",)),
        ("the rate=limit of a disk", None, None, ()),
        ("--rate=4m", None, 2048.0, ()),
        # A command line that names its job has all options: without direct, I/O is buffered.
        ("$ fio --name=w --rw=write", False, None, ()),
        ("$ fio --name=w \\\n  --direct=1", True, None, ()),
        ("$ sudo fio \\\n  --name=w \\\n  --rw=read", False, None, ()),
        ("$ fio --direct=1 --name=v\n$ fio --name=w --rw=write", False, None, ()),
        ("$ fio --name=w job.fio", None, None, ()),
        ("$ fio --name=w --rw=read > out.txt", False, None, ()),
        ("$ fio --output=x.json job.fio\n[global]\ndirect=1", True, None, ()),
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


def test_files_of_other_runs_are_not_those_of_a_run() -> None:
    one = job() + result()
    commands = [f"fio --name=a --direct=1 --filename=/{place}/f\n" for place in "xy"]
    loads = parse_fio_text(commands[0] + one + commands[1] + one)
    assert [load.targets for load in loads] == [(), ()]
    assert parse_fio_text(f"{one}{one}see --filename=/x/f or --filename=/y/f")[0].targets == ()


def test_each_command_starts_a_run() -> None:
    one = job() + result()
    loads = parse_fio_text(f"fio --direct=1\n{one}$ fio --direct=0\n{one}")
    assert [each.is_direct for each in loads] == [True, False]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (job() + result().replace("err= 0", "err= 5"), "fio reports error 5"),
        (job(rw="trim") + result(), "trims are not judged"),
        (job(rw="copy") + result(), "its requests are unknown"),
        (job(engine="rbd") + result(), "ioengine=rbd is not known to use a disk"),
        (job(depth="0") + result(), "its requests are unknown"),
        (job(sizes="(R) big") + result(), "its requests are unknown"),
        (result(), "its requests are unknown"),
        (job() + "...\n" + job(depth="2") + result(jobs=5), "found 5 jobs of 2 kinds"),
        (job() + result().replace("issued", "done"), "found no line that begins 'issued'"),
        (job() + result().replace("10000msec", "0msec"), "a runtime of 0 ms"),
        (
            job(sizes="(R) 4096B-64.0KiB, (W) 4096B-64.0KiB")
            + result(read="  read: IOPS=100, BW=x/10000msec\n"),
            "expected an amount of data",
        ),
        (job() + result(read="  mixed: IOPS=100\n", latency=""), "it does not tell reads from"),
        # The line of the reads is missing, so their time is not known.
        (
            job(rw="randrw")
            + result(read="  write: IOPS=1, BW=1KiB/s (1kB/s)(4KiB/10000msec)\n").replace(
                "total=1000,0", "total=1000,1"
            ),
            "found 1000 reads without the line that begins 'read:'",
        ),
        ("<a> " + job() + "<b> " + job() + result() + result(), "several clients of fio"),
        (result("All clients", jobs=3), "several clients of fio"),
    ],
)
def test_load_that_cannot_be_judged_says_why(text: str, problem: str) -> None:
    assert problem in parse_one(text).problem


def test_one_load_that_cannot_be_judged_does_not_cost_the_others() -> None:
    text = job(rw="trim") + job("b", 1, rw="read") + result() + result("b", 1)
    trims, reads = parse_fio_text(text)
    assert (bool(trims.problem), reads.problem) == (True, "")
    assert (reads.name, reads.pattern) == ("b", "read")


STATS = "Disk stats (read/write):\n"


@pytest.mark.parametrize(
    ("stats", "targets"),
    [
        ("  vdb: ios=9/0, merge=0/0, ticks=1/1, in_queue=1, util=9%\n", ("vdb",)),
        ("  vdb: ios=9/0, merge=0/0\n  vdc: ios=0/8, merge=0/0\n", ("vdb", "vdc")),
        ("  vdb: ios=9/0, merge=0/0\n  vdc: ios=0/0, merge=0/0\n", ("vdb",)),
        ("    dm-0: ios=9/0, merge=0/0, aggrios=9/0, aggrmerge=0/0\n  vdb: ios=9/0, \n", ("vdb",)),
        ("    md0: ios=9/0, aggrios=3/0\n  vdb: ios=5/0, \n  vdc: ios=4/0, \n", ("vdb", "vdc")),
    ],
)
def test_disks_are_those_that_fio_found(stats: str, targets: tuple[str, ...]) -> None:
    assert parse_one(job() + result() + STATS + stats).targets == targets


def test_job_without_a_filename_uses_the_device_of_its_name() -> None:
    text = job("/dev/vdb") + job("/dev/vdc") + result("/dev/vdb") + result("/dev/vdc")
    assert parse_one(text).targets == ("/dev/vdb", "/dev/vdc")


def test_what_makes_requests_wait() -> None:
    assert parse_one(job(engine="posixaio") + result()).waits == "ioengine=posixaio"
    assert parse_one("fio --name=a --fsync=1\n" + job() + result()).waits == "fsync=1"
    synced = result().replace(f"total={1000},0,0,0", "total=0,1000,0,1000")
    synced = synced.replace("  read:", "  write:")
    assert parse_one(job(rw="randwrite") + synced).waits == "fsync=1"
    assert parse_one(job() + result()).waits == ""


def test_jobs_that_follow_each_other_are_not_added() -> None:
    text = "[one]\n[two]\nwait_for=one\n" + job("one") + job("two") + result("one")
    assert "did not run at the same time" in parse_one(text + result("two")).problem
    assert parse_one("startdelay=5\n" + job() + result()).problem == ""


def test_the_disk_says_what_was_in_flight() -> None:
    disk = "  vdb: ios={}/0, merge=0/0, ticks=80000/0, in_queue=80000, util=99.00%\n"
    text = job() + result() + STATS
    assert parse_one(text + disk.format(1000)).counted_inflight == pytest.approx(8)
    newer = disk.format(1000).replace("merge", "sectors=8000/0, merge")
    assert parse_one(text + newer).counted_inflight == pytest.approx(8)
    assert parse_one(text + disk.format(899)).counted_inflight is None
    assert parse_one(text).counted_inflight is None


def test_lines_that_a_mail_program_broke_are_read() -> None:
    whole = job() + result()
    broken = whole.replace(", (T)", ", (T)\n").replace("(4000KiB", "\n(4000KiB")
    assert broken.count("\n") == whole.count("\n") + 2
    assert parse_one(broken) == parse_one(whole)


def state(requests: int, runtime_ms: int, pid: int = 7) -> str:
    """Return what fio prints so far."""
    return (
        result(reads=requests)
        .replace("10000msec", f"{runtime_ms}msec")
        .replace("pid=1:", f"pid={pid}:")
    )


def test_only_the_last_interim_state_counts() -> None:
    """--status-interval prints the sums so far, of the same process."""
    text = job() + state(50, 20_000) + state(110, 40_000) + state(180, 60_000)
    assert parse_one(text).measured.requests == 180
    cut = text.rpartition("     issued")[0]
    assert parse_one(cut).measured.requests == 110
    clones = job() + "...\n" + state(50, 20_000) + state(50, 20_000, pid=8)
    again = clones + state(90, 40_000) + state(90, 40_000, pid=8)
    assert (parse_one(again).measured.requests, parse_one(again).inflight) == (180, 16)


def test_other_text_is_not_output_of_fio() -> None:
    assert is_fio_text(RUNS)
    assert not is_fio_text("fio-3.28\nStarting 1 process")


@given(st.text() | damaged_text([RUNS, MIX, WRITES]))
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
