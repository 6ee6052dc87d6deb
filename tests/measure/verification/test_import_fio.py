"""Results of fio that were made elsewhere, with the options of their jobs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import KIB, MIB
from disksla.measure.verification.import_fio import parse_fio_jobs
from disksla.measure.verification.measurement import Measurement
from support.examples import damaged_json

RESULTS = Path(__file__).parent / "results"
TWO_JOBS = (RESULTS / "fio-3.33-two-jobs.json").read_text()
CLONES = (RESULTS / "fio-3.33-eight-clones.json").read_text()
BUFFERED_AT_RATE = (RESULTS / "fio-3.33-buffered-at-a-rate.json").read_text()

Options = dict[str, str | None]


ALL_OPTIONS = list(json.loads(BUFFERED_AT_RATE)["jobs"][0]["job options"])


def edited(text: str, edit: Callable[[dict[str, Any]], object], **fields: Any) -> str:
    """Return a result of which each job was changed; `fields` are those of the document."""
    document = json.loads(text)
    for job in document["jobs"]:
        edit(job)
    return json.dumps(document | fields)


def with_options(options: Options, text: str = BUFFERED_AT_RATE, **fields: Any) -> str:
    """Return a result whose jobs have other options; None removes one."""

    def edit(job: dict[str, Any]) -> None:
        known = job["job options"] | options
        job["job options"] = {name: each for name, each in known.items() if each is not None}
        job.update(fields)

    return edited(text, edit)


def of_size(text: str, request_bytes: int) -> str:
    """Return a result whose requests have a size."""

    def edit(job: dict[str, Any]) -> None:
        for direction in (job["read"], job["write"]):
            direction["io_bytes"] = direction["total_ios"] * request_bytes

    return edited(text, edit)


def of_writes(text: str, **fields: Any) -> str:
    """Return a result in which what was read is written."""
    return edited(text, lambda job: job.update(read=job["write"], write=job["read"]), **fields)


def parse_one(text: str) -> Measurement:
    [measurement] = parse_fio_jobs(text)
    return measurement


def test_each_job_gives_one_measurement() -> None:
    four, eight = parse_fio_jobs(TWO_JOBS)
    assert (four.name, four.pattern, four.request_bytes) == ("randread", "randread", 4 * KIB)
    assert (eight.name, eight.request_bytes, eight.inflight) == ("randread8", 8 * KIB, 32)
    assert four.is_direct
    assert four.rate_iops is None
    assert four.measured.runtime_s == pytest.approx(10, abs=0.1)
    assert [each.share for each in four.percentiles] == [0.5, 0.9, 0.99, 0.999]


def test_clones_without_group_reporting_are_added_up() -> None:
    measurement = parse_one(CLONES)
    assert measurement.inflight == 128
    each = [job["read"]["total_ios"] for job in json.loads(CLONES)["jobs"]]
    assert len(each) == 8
    assert measurement.measured.requests == sum(each)
    assert measurement.percentiles == ()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"bs": "1m"}, {"request_bytes": MIB}),
        ({"bs": "16KiB"}, {"request_bytes": 16000}),
        ({"rate_iops": None, "rate": "16Ki"}, {"rate_iops": 4.0}),
        ({"rate_iops": None, "rate": "4096B"}, {"rate_iops": 1.0}),
        ({"rate_iops": None, "rate": "8192KiB"}, {"rate_iops": 2000.0}),
        ({"rate_iops": None, "rate": "8KiB", "kb_base": "1000"}, {"rate_iops": 2.0}),
        ({"rate_iops": None, "rate": "512k", "kb_base": "1000"}, {"rate_iops": 125.0}),
        ({"rw": None, "readwrite": "randread:4"}, {"pattern": "randread"}),
        ({"rw": "randrw"}, {"pattern": "randrw"}),
        ({"rw": "randrw", "rate_iops": "100,50"}, {"rate_iops": 150.0}),
        ({"ioengine": "psync"}, {"inflight": 1}),
        ({"ioengine": None}, {"inflight": 1}),
        ({"ioengine": "io_uring"}, {"inflight": 32}),
        ({"filename": "/dev/sdb:/dev/sdc"}, {"targets": ("/dev/sdb", "/dev/sdc")}),
        ({"filename": "/data/file"}, {"targets": ()}),
        ({"rw": "readwrite"}, {"pattern": "rw"}),
        ({"iodepth": None}, {"inflight": 1}),
        ({"numjobs": "4"}, {"inflight": 128, "rate_iops": 4 * 2910.0}),
        ({"rate_iops": "1k"}, {"rate_iops": 1024.0}),
        ({"rate_iops": "100,50"}, {"rate_iops": 100.0}),
        ({"rate_iops": "100,50", "rw": "randwrite"}, {"rate_iops": 50.0}),
        ({"rate_iops": "100", "rw": "randwrite"}, {"rate_iops": 100.0}),
        ({"direct": "1"}, {"is_direct": True}),
        ({"direct": "0"}, {"is_direct": False}),
        ({"buffered": "0"}, {"is_direct": True}),
        ({"buffered": "1", "direct": "1"}, {"is_direct": False}),
        # Some engines always or never use the cache.
        ({"ioengine": "mmap", "direct": "1"}, {"is_direct": False}),
        ({"ioengine": "splice", "direct": "1"}, {"is_direct": False}),
        ({"ioengine": "io_uring_cmd", "direct": "0"}, {"is_direct": True}),
        ({"direct": None}, {"is_direct": False}),
        ({"rate_iops": None, "rate": "10m"}, {"rate_iops": 2560.0, "is_paced": False}),
        ({"rate_iops": None, "rate": ",1m"}, {"rate_iops": None}),
        ({"rate_iops": "0"}, {"rate_iops": None}),
        ({"rate_iops": ",500"}, {"rate_iops": None}),
        ({"rate_iops": None, "thinktime": "100"}, {"rate_iops": None, "is_paced": True}),
        ({"thinktime": "0"}, {"is_paced": False}),
        ({"read_iolog": "trace"}, {"is_paced": True}),
        # Options that make requests wait for each other.
        ({"ioengine": "posixaio"}, {"inflight": 32, "waits": "ioengine=posixaio"}),
        ({"ioengine": "sg", "filename": "/dev/sdb"}, {"inflight": 1, "waits": ""}),
        ({"ioengine": "pvsync2", "fsync": "1"}, {"inflight": 1, "waits": ""}),
        ({"ioengine": "windowsaio"}, {"inflight": 32, "waits": ""}),
        ({"ioengine": "libaio,userspace_reap"}, {"inflight": 32, "waits": ""}),
        ({"fsync": "1"}, {"inflight": 32, "waits": "fsync=1"}),
        ({"fdatasync": "8"}, {"waits": "fdatasync=8"}),
        ({"fsync": "0", "sync": "none"}, {"waits": ""}),
        ({"sync": "dsync"}, {"waits": "sync=dsync"}),
        ({"iodepth_low": "8"}, {"waits": "iodepth_low=8"}),
        ({"iodepth_batch_complete_min": "9"}, {"waits": "iodepth_batch_complete_min=9"}),
        ({"iodepth_batch_complete": "1"}, {"waits": ""}),
        # These do not let the queue drain.
        ({"iodepth_batch_submit": "32", "iodepth_batch_complete_max": "32"}, {"waits": ""}),
    ],
)
def test_options_are_parsed_as_fio_does(options: Options, expected: dict[str, Any]) -> None:
    text = of_size(with_options(options), expected.get("request_bytes", 4 * KIB))
    measurement = parse_one(of_writes(text) if options.get("rw") == "randwrite" else text)
    assert not measurement.problem
    assert {name: getattr(measurement, name) for name in expected} == expected


def test_jobs_that_ran_at_the_same_time_are_one_load() -> None:
    four, eight = parse_fio_jobs(TWO_JOBS)
    together = parse_one(TWO_JOBS.replace('"groupid" : 1', '"groupid" : 0'))
    assert (together.pattern, together.inflight) == ("randread", 64)
    assert together.measured.requests == four.measured.requests + eight.measured.requests
    assert 4 * KIB < together.request_bytes < 8 * KIB
    assert together.percentiles == ()


def test_new_group_is_not_a_new_load() -> None:
    document = json.loads(TWO_JOBS)
    document["jobs"][1]["job options"]["new_group"] = "1"
    assert parse_one(json.dumps(document)).inflight == 64
    document["jobs"][1]["job options"]["stonewall"] = "1"
    assert len(parse_fio_jobs(json.dumps(document))) == 2


def test_mix_has_reads_and_writes() -> None:
    def edit(job: dict[str, Any]) -> None:
        job["write"] = job["read"] | {"total_ios": 1000, "io_bytes": 4096 * 1000}
        job["read"] |= {"total_ios": 3000, "io_bytes": 8192 * 3000}

    text = with_options({"rw": "randrw", "rwmixread": "70", "bs": "8k,4k"})
    measurement = parse_one(edited(text, edit))
    assert (measurement.pattern, measurement.write_share) == ("randrw", 0.25)
    assert (measurement.request_bytes, measurement.measured.requests) == (7168, 4000)


def test_latency_that_was_not_measured_is_unknown() -> None:
    text = with_options({"gtod_reduce": "1"})
    measurement = parse_one(edited(text, lambda job: job["read"].update(clat_ns={"mean": 0.0})))
    assert measurement.measured.mean_latency_s is None
    assert measurement.mean_inflight == measurement.inflight


def test_global_options_apply_to_every_job() -> None:
    text = of_size(with_options({"rw": None, "bs": None}), MIB)
    everywhere = {"rw": "write", "bs": "1M", "direct": "1"}
    found = parse_one(of_writes(text, **{"global options": everywhere}))
    assert (found.pattern, found.request_bytes, found.is_direct) == ("write", MIB, True)


def test_text_around_the_json_is_ignored() -> None:
    noisy = "fio: a note\n" + TWO_JOBS + "\n[W] another\n"
    assert len(parse_fio_jobs(noisy.replace('"stddev" : 0.000000', '"stddev" : -nan'))) == 2


@pytest.mark.parametrize(
    "percentile", [{"50.000000": -1, "90.000000": "x", "99.000000": 10**400}, None]
)
def test_percentiles_may_be_missing(percentile: dict[str, object] | None) -> None:
    text = edited(
        BUFFERED_AT_RATE, lambda job: job["read"]["clat_ns"].update(percentile=percentile)
    )
    assert parse_one(text).percentiles == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "missing required field `fio version`"),
        ('{"fio version": "fio-3.33", "jobs": []}', "length >= 1"),
        ('{"fio version": "fio-3.33", "jobs": [{}]}', "missing required field `jobname`"),
        ("{" * 100_000, "invalid JSON of fio"),
        ('{"fio version": "fio-3.33"}', "found no job"),
        ('{"\ud800": 1}', "invalid JSON of fio"),
    ],
)
def test_incomplete_result_is_rejected(text: str, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        parse_fio_jobs(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BUFFERED_AT_RATE.replace("fio-3.33", "fio-2.2"), "expected fio 3.1 or newer"),
        (with_options({"rw": "randtrim"}), "trims are not judged"),
        (with_options({"rw": "trimwrite"}), "trims are not judged"),
        (with_options({"rw": "copy"}), "its requests are unknown: found rw='copy'"),
        (with_options(dict.fromkeys(ALL_OPTIONS)), "its requests are unknown"),
        (with_options({"rate_iops": None, "rate": "big"}), "found 'big'; expected a size"),
        (with_options({"rate_iops": None, "rate": ",0,"}), ""),
        (with_options({"iodepth": "deep"}), "found iodepth='deep'; expected a number"),
        (with_options({"numjobs": "3"}, CLONES), "found 8 results of 3 clones"),
        (with_options({}, error=5), "EIO"),
        (
            BUFFERED_AT_RATE.replace('"groupid"', '"note" : "\udcff", "groupid"', 1),
            "not valid fio JSON",
        ),
        (with_options({"ioengine": "rbd"}), "ioengine=rbd is not known to use a disk"),
        (with_options({"ioengine": "null"}), "ioengine=null is not known to use a disk"),
        (with_options({"ioengine": "external:/spdk"}), "ioengine=external is not known"),
        (
            BUFFERED_AT_RATE.replace('"read"', '"mixed"').replace('"write"', '"-"'),
            "run fio without unified_rw_reporting=1",
        ),
    ],
)
def test_job_that_cannot_be_judged_says_why(text: str, problem: str) -> None:
    assert problem in parse_one(text).problem


def test_one_job_that_cannot_be_judged_does_not_cost_the_others() -> None:
    document = json.loads(TWO_JOBS)
    document["jobs"][0]["job options"]["rw"] = "randtrim"
    trims, reads = parse_fio_jobs(json.dumps(document))
    assert trims.problem
    assert not reads.problem
    document["jobs"][1]["groupid"] = document["jobs"][0]["groupid"]
    assert parse_one(json.dumps(document)).problem  # at the same time, so reads had to wait


def counted(**counts: float) -> float | None:
    """Return what was in flight of 2911 reads in 1.001 s, as a disk counted."""
    requests = json.loads(BUFFERED_AT_RATE)["jobs"][0]["read"]["total_ios"]
    text = with_disks(BUFFERED_AT_RATE, "vdb", **{"read_ios": requests} | counts)
    return parse_one(text).counted_inflight


def test_the_disk_says_what_was_in_flight() -> None:
    assert counted(read_ticks=16_016) == pytest.approx(16)
    # Twice as many: a ramp, or parts of large requests. The load has its share.
    assert counted(read_ticks=32_032, read_merges=2911) == pytest.approx(16, rel=0.01)
    assert counted(read_ios=2000, read_merges=911, read_ticks=8008) == pytest.approx(8)
    assert counted(read_ios=2000, read_ticks=8008) is None  # others counted the rest
    assert counted() is None
    both = with_disks(BUFFERED_AT_RATE, "vdb", "vdc", read_ios=9000, read_ticks=9)
    assert parse_one(both).counted_inflight is None
    loads = parse_fio_jobs(with_disks(TWO_JOBS, "vdb", read_ios=10**6, read_ticks=10**6))
    assert [load.counted_inflight for load in loads] == [None, None]


def with_disks(text: str, *names: str, **fields: Any) -> str:
    """Return a result in which fio lists disks."""
    disks = [{"name": name, "read_ios": 9, **fields} for name in names]
    return edited(text, lambda _: None, disk_util=disks)


FOUR_LINES = with_options({"filename": None}).replace(
    '"job options": {',
    '"job options" : {' + "".join(f'"filename" : "/dev/nvme{n}n1",' for n in range(4)),
    1,
)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        (FOUR_LINES, {f"/dev/nvme{n}n1" for n in range(4)}),
        (with_options({"filename": "/dev/sdb:/dev/sdc"}), {"/dev/sdb", "/dev/sdc"}),
        (with_options({"filename": "/a/f:/b/f"}), {"/a", "/b"}),
        (with_options({"filename": "/a/f:/a/g"}), set()),
        (with_options({"filename": None, "directory": "/a:/b"}), {"/a", "/b"}),
        (with_options({"filename": "f", "directory": "/a"}), set()),
        (with_options({"filename": r"C\:\f:D\:\f"}), {"C:", "D:"}),
        (
            with_options({"filename": r"\\.\PhysicalDrive1:\\.\PhysicalDrive2"}),
            {"PHYSICALDRIVE1", "PHYSICALDRIVE2"},
        ),
        (with_options({"filename": r"C\:\f:C\:\g"}), {"C:"}),
        # What fio found behind the files counts: disks, partitions, and what is built from disks.
        (with_disks(with_options({"filename": "/a/f:/b/f"}), "vdb"), {"vdb"}),
        (with_disks(with_options({"filename": "/dev/vdb1:/dev/vdb2"}), "vdb"), {"vdb"}),
        (with_disks(with_options({"filename": "/dev/vdb:/dev/vdc"}), "vdb"), {"vdb", "/dev/vdc"}),
        (with_disks(BUFFERED_AT_RATE, "vdb", "vdc"), {"vdb", "vdc"}),
        (with_disks(BUFFERED_AT_RATE, "vdb", "vdc", read_ios=0), set()),
        (with_disks(with_options({"filename": "/dev/md0"}), "md0", aggr_read_ios=9), {"/dev/md0"}),
    ],
)
def test_disks_of_a_load(text: str, targets: set[str]) -> None:
    assert set(parse_one(text).targets) == targets


def test_filename_of_the_defaults_and_of_the_job_are_both_used() -> None:
    """fio adds the files of a job to those of [global]."""
    text = with_options({"filename": "/dev/vdc"})
    both = edited(text, lambda _: None, **{"global options": {"filename": "/dev/vdb"}})
    assert parse_one(both).targets == ("/dev/vdb", "/dev/vdc")


def test_job_without_a_filename_uses_the_device_of_its_name() -> None:
    text = with_options({"filename": None}, jobname="/dev/nvme8n6")
    assert parse_one(text).targets == ("/dev/nvme8n6",)
    assert parse_one(with_options({"filename": None}, jobname="a")).targets == ()


def two_jobs(first: str, second: str, *disks: str, group: int = 0, **fields: Any) -> str:
    """Return two jobs, each on a file or disk."""
    document = json.loads(with_disks(TWO_JOBS, *disks, **fields))
    for job, filename, number in zip(document["jobs"], (first, second), (0, group), strict=True):
        job["job options"]["filename"] = filename
        job["groupid"] = number
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        (two_jobs("/dev/vdb", "/dev/vdc", "vdb", "vdc"), [("/dev/vdb",), ("/dev/vdc",)]),
        (two_jobs("/dev/vdb", "/dev/vdc", "vdb", "vdc", group=1), [("/dev/vdb",), ("/dev/vdc",)]),
        (two_jobs("/a/f", "/b/f", "vdb", "vdc"), [("/a",), ("/b",)]),
        # Not known to be apart: together, on two disks, and so not judged.
        (two_jobs("/dev/vdb", "/dev/vdc"), [("/dev/vdb", "/dev/vdc")]),
        (two_jobs("/a/f", "/b/f", "vdb", "vdc", aggr_read_ios=None), [("/a",), ("/b",)]),
        (two_jobs("/a/f", "/a/g", "vdb", "vdc"), [("vdb", "vdc")]),
        (two_jobs("/a/f:/b/f", "/a/g", "vdb", "vdc"), [("vdb", "vdc")]),
        (two_jobs("/a/f", "/b/f", "vdb", "vdc", "vdd"), [("vdb", "vdc", "vdd")]),
        # Two partitions are one disk, and the jobs one load.
        (two_jobs("/dev/vdb1", "/dev/vdb2", "vdb"), [("vdb",)]),
    ],
)
def test_jobs_on_several_disks_are_loads_of_their_own(
    text: str, targets: list[tuple[str, ...]]
) -> None:
    assert [load.targets for load in parse_fio_jobs(text)] == targets


def grouped(**changes: Any) -> str:
    """Return a result of which one entry sums several jobs; each change shows it."""
    document = json.loads(with_options({"rate_iops": None, "direct": "1"}))
    [job] = document["jobs"]
    job |= {name: value for name, value in changes.items() if name in job}
    if "write_ios" in changes:
        job["write"] = job["read"] | {"total_ios": 9, "io_bytes": 9 * 4 * KIB}
    if "mean_s" in changes:
        job["read"]["clat_ns"] = {"mean": 1e9 * changes["mean_s"]}
    if "request_bytes" in changes:
        job["read"]["io_bytes"] = job["read"]["total_ios"] * changes["request_bytes"]
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "is_sum"),
    [
        (grouped(), False),
        (grouped(mean_s=1.0), True),
        (with_options({"rw": "randwrite"}, grouped()), True),
        (grouped(job_runtime=2000), True),
        (with_options({"ramp_time": "1s"}, grouped(job_runtime=2000)), False),
        (with_options({"ioengine": "psync"}, grouped(mean_s=0.0007)), True),
        (with_options({"ioengine": "psync"}, grouped(mean_s=0.0003)), False),
        (grouped(job_runtime=1200), False),
        (with_options({"verify": "crc32c", "rw": "randwrite"}, grouped(write_ios=9)), False),
        (with_options({"numjobs": "2"}, grouped(job_runtime=2000)), False),
        (with_options({"verify": "crc32c"}, grouped(job_runtime=2000)), False),
    ],
)
def test_entry_that_sums_several_jobs_is_not_judged(text: str, is_sum: bool) -> None:
    """With group_reporting an entry has the options of its last job only."""
    assert ("sums more jobs" in parse_one(text).problem) is is_sum


def test_what_was_done_is_judged_and_not_what_the_options_say() -> None:
    """A group of a reader and a writer has the options of one of them."""
    mix = parse_one(grouped(write_ios=9))
    assert (mix.pattern, mix.problem, mix.write.requests) == ("randrw", "", 9)
    verified = with_options({"verify": "crc32c", "rw": "randwrite"}, grouped(write_ios=9))
    assert (parse_one(verified).pattern, parse_one(verified).read.requests) == ("randwrite", 0)
    assert parse_one(grouped(request_bytes=6 * KIB)).request_bytes == 6 * KIB
    assert parse_one(grouped(request_bytes=4100)).request_bytes == 4 * KIB


IN_TURN = "its jobs did not run at the same time (wait_for, startdelay); use stonewall"


@pytest.mark.parametrize(
    ("options", "start_ms", "is_load"),
    [
        ({}, 0, True),
        ({"wait_for": "randread"}, 0, False),
        ({"startdelay": "10"}, 0, False),
        ({"startdelay": "5s"}, 0, False),
        ({"startdelay": "500ms"}, 0, True),
        # The time at which a job began decides, where fio prints it.
        ({"wait_for": "randread"}, 1000, True),
        ({"wait_for": "randread"}, 10_500, False),
    ],
)
def test_jobs_that_follow_each_other_are_not_added(
    options: dict[str, str], start_ms: int, is_load: bool
) -> None:
    document = json.loads(TWO_JOBS)
    document["jobs"][1]["groupid"] = document["jobs"][0]["groupid"]
    document["jobs"][1]["job options"] |= options
    for job, at_ms in zip(document["jobs"], (500, start_ms), strict=True):
        job["job_start"] = at_ms
    assert parse_one(json.dumps(document)).problem == ("" if is_load else IN_TURN)


def test_clones_without_their_number() -> None:
    """fio before 3.4 does not print `numjobs` of [global]."""
    clones = parse_one(with_options({"numjobs": None}, CLONES))
    assert (clones.inflight, clones.problem) == (128, "")


def interim(*states: tuple[int, float], timestamp_s: int = 0, step_s: int = 20) -> str:
    """Return documents of the same job, each with its requests and its runtime in seconds."""
    documents = []
    for number, (requests, runtime_s) in enumerate(states):
        document = json.loads(BUFFERED_AT_RATE)
        if timestamp_s:
            document["timestamp"] = timestamp_s + number * step_s
        document["jobs"][0]["read"] |= {
            "total_ios": requests,
            "io_bytes": requests * 4096,
            "runtime": round(1000 * runtime_s),
        }
        documents.append(json.dumps(document, indent=2))
    return "\n".join(documents)


def test_only_the_last_interim_state_counts() -> None:
    """--status-interval prints the sums so far; they are no results of their own."""
    states = ((54_000, 20.0), (118_000, 40.0), (180_000, 60.0))
    for text in (interim(*states), interim(*states, timestamp_s=1_700_000_000)):
        assert parse_one(text).measured.requests == 180_000


@pytest.mark.parametrize(
    "text",
    [
        interim((1000, 60.0), (1000, 60.0)),
        f"{BUFFERED_AT_RATE}\n{BUFFERED_AT_RATE.replace('fio-3.33', 'fio-3.34')}",
        interim((1000, 60.0), (900, 60.1)),
        interim((1000, 60.0), (1100, 60.1), timestamp_s=1_700_000_000, step_s=61),
        f"{interim((1000, 10.0))}\n{with_options({'iodepth': '4'})}",
    ],
)
def test_runs_of_the_same_job_are_results_of_their_own(text: str) -> None:
    assert len(parse_fio_jobs(text)) == 2


def test_document_that_is_cut_off_is_named() -> None:
    states = interim((54_000, 20.0), (118_000, 40.0), (180_000, 60.0))
    last, cut = parse_fio_jobs(states[:-100])
    assert last.measured.requests == 118_000
    assert "cut off" in cut.problem
    with pytest.raises(DiskslaError, match="invalid JSON of fio: it is cut off"):
        parse_fio_jobs(BUFFERED_AT_RATE[:-100])
    with pytest.raises(DiskslaError, match=r"Expecting property name .*: line"):
        parse_fio_jobs(BUFFERED_AT_RATE.replace('"groupid"', '1 "groupid"', 1))


def test_output_that_another_program_keeps_as_a_text() -> None:
    assert parse_fio_jobs(json.dumps({"stdout": TWO_JOBS})) == parse_fio_jobs(TWO_JOBS)


@pytest.mark.parametrize("separator", ["\n", " \n\n", "\nfio: a note\n"])
def test_documents_of_one_line_each(separator: str) -> None:
    one, two = (json.dumps(json.loads(text)) for text in (TWO_JOBS, BUFFERED_AT_RATE))
    assert len(parse_fio_jobs(one + separator + two)) == 3


def test_documents_that_another_program_wrapped() -> None:
    one, two = json.loads(TWO_JOBS), json.loads(BUFFERED_AT_RATE)
    for wrapped in ([one, two], {"results": {"a": one, "b": [two]}}):
        for indent in (None, 2):
            assert len(parse_fio_jobs(f"note\n{json.dumps(wrapped, indent=indent)}")) == 3


def clients(*hosts: str) -> str:
    document = json.loads(BUFFERED_AT_RATE)
    [job] = document.pop("jobs")
    document["client_stats"] = [job | {"hostname": host, "port": 8765} for host in hosts]
    document["client_stats"].append(job | {"jobname": "All clients"})
    document["disk_util"] = [{"name": "vdb", "read_ios": 9, "hostname": host} for host in hosts]
    return json.dumps(document)


def test_each_client_is_a_load_of_its_own() -> None:
    loads = parse_fio_jobs(clients("a", "b"))
    assert [load.name for load in loads] == ["randread (host a)", "randread (host b)"]
    assert [load.targets for load in loads] == [("vdb",), ("vdb",)]
    interleaved = parse_fio_jobs(clients("a", "b", "a", "b"))
    assert [load.inflight for load in interleaved] == [64, 64]
    alone = parse_one(clients("a"))
    assert alone.measured == loads[0].measured == parse_one(BUFFERED_AT_RATE).measured


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["jobs", "fio version", "read", "job options", "jobname", "groupid"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(
    st.text()
    | json_values.map(json.dumps)
    | damaged_json([TWO_JOBS, BUFFERED_AT_RATE], json_values)
)
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    try:
        measurements = parse_fio_jobs(text)
    except DiskslaError:
        return
    assert measurements
