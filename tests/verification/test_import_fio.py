"""Results of fio that were made elsewhere, with the options of their jobs."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.errors import DiskslaError
from disksla.units import KIB, MIB
from disksla.verification.import_fio import parse_fio_jobs
from disksla.verification.measurement import Measurement

RESULTS = Path(__file__).parent / "results"
TWO_JOBS = (RESULTS / "fio-3.33-two-jobs.json").read_text()
CLONES = (RESULTS / "fio-3.33-eight-clones.json").read_text()
BUFFERED_AT_RATE = (RESULTS / "fio-3.33-buffered-at-a-rate.json").read_text()

Options = dict[str, str | None]


ALL_OPTIONS = list(json.loads(BUFFERED_AT_RATE)["jobs"][0]["job options"])


def with_options(options: Options, text: str = BUFFERED_AT_RATE, **fields: Any) -> str:
    """Return a result whose jobs have other options; None removes one."""
    document = json.loads(text)
    for job in document["jobs"]:
        for name, value in options.items():
            job["job options"].pop(name, None)
            if value is not None:
                job["job options"][name] = value
        job.update(fields)
    return json.dumps(document)


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


def test_buffered_job_at_a_fixed_rate() -> None:
    measurement = parse_one(BUFFERED_AT_RATE)
    assert not measurement.is_direct
    assert measurement.rate_iops == 2910


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"bs": "1m"}, {"request_bytes": MIB}),
        ({"bs": "4096"}, {"request_bytes": 4 * KIB}),
        ({"bs": "16Ki"}, {"request_bytes": 16 * KIB}),
        ({"bs": "4096B"}, {"request_bytes": 4 * KIB}),
        ({"bs": "16KiB"}, {"request_bytes": 16000}),
        ({"bs": "16KiB", "kb_base": "1000"}, {"request_bytes": 16 * KIB}),
        ({"bs": "16k", "kb_base": "1000"}, {"request_bytes": 16000}),
        ({"bs": "8k,16k"}, {"request_bytes": 8 * KIB}),
        ({"bs": None, "blocksize": "8k"}, {"request_bytes": 8 * KIB}),
        ({"bs": None}, {"request_bytes": 4 * KIB}),
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
    ],
)
def test_options_are_parsed_as_fio_does(options: Options, expected: dict[str, Any]) -> None:
    measurement = parse_one(with_options(options))
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


def test_results_of_several_runs_in_one_file() -> None:
    assert len(parse_fio_jobs(f"note\n{TWO_JOBS}\n{BUFFERED_AT_RATE}")) == 3


def test_mix_has_reads_and_writes() -> None:
    document = json.loads(with_options({"rw": "randrw", "rwmixread": "70", "bs": "8k,4k"}))
    [job] = document["jobs"]
    job["write"] = job["read"] | {"total_ios": 1000, "io_bytes": 4096 * 1000}
    job["read"] |= {"total_ios": 3000, "io_bytes": 8192 * 3000}
    measurement = parse_one(json.dumps(document))
    assert (measurement.pattern, measurement.write_share) == ("randrw", 0.25)
    assert measurement.request_bytes == 7168
    assert measurement.measured.requests == 4000


def test_latency_that_was_not_measured_is_unknown() -> None:
    document = json.loads(with_options({"gtod_reduce": "1"}))
    document["jobs"][0]["read"]["clat_ns"] = {"mean": 0.0}
    measurement = parse_one(json.dumps(document))
    assert measurement.measured.mean_latency_s is None
    assert measurement.mean_inflight == measurement.inflight


def test_global_options_apply_to_every_job() -> None:
    document = json.loads(with_options({"rw": None, "bs": None}))
    document["global options"] = {"rw": "write", "bs": "1M", "direct": "1"}
    measurement = parse_one(json.dumps(document))
    assert (measurement.pattern, measurement.request_bytes, measurement.is_direct) == (
        "write",
        MIB,
        True,
    )


def test_text_around_the_json_is_ignored() -> None:
    noisy = "fio: a note\n" + TWO_JOBS + "\n[W] another\n"
    assert len(parse_fio_jobs(noisy.replace('"stddev" : 0.000000', '"stddev" : -nan'))) == 2


def test_percentiles_may_be_missing() -> None:
    document = json.loads(BUFFERED_AT_RATE)
    document["jobs"][0]["read"]["clat_ns"]["percentile"] = {
        "50.000000": -1,
        "90.000000": "x",
        "99.000000": 10**400,
    }
    assert parse_one(json.dumps(document)).percentiles == ()
    del document["jobs"][0]["read"]["clat_ns"]["percentile"]
    assert parse_one(json.dumps(document)).percentiles == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "missing required field `fio version`"),
        ('{"fio version": "fio-3.33", "jobs": []}', "length >= 1"),
        ('{"fio version": "fio-3.33", "jobs": [{}]}', "missing required field `jobname`"),
        ("{" * 100_000, "invalid JSON of fio"),
        ('{"\ud800": 1}', "invalid JSON of fio"),
        (TWO_JOBS.replace("fio-3.33", "fio-2.2"), "expected fio 3.1 or newer"),
        (with_options({"rw": "trim"}), "its requests are unknown"),
        (with_options(dict.fromkeys(ALL_OPTIONS)), "its requests are unknown"),
        (with_options({"bs": "big"}), "found 'big'; expected a size such as 4k"),
        (with_options({"bs": "0"}), "found '0'; expected a size"),
        (with_options({"iodepth": "deep"}), "found iodepth='deep'; expected a number"),
        (with_options({"numjobs": "3"}, CLONES), "found 8 results; expected 1 or 3"),
        (with_options({}, error=5), "EIO"),
    ],
)
def test_incomplete_result_is_rejected(text: str, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        parse_fio_jobs(text)


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


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Return a result in which one value is replaced."""
    document: Any = json.loads(draw(st.sampled_from([TWO_JOBS, BUFFERED_AT_RATE])))
    at = document
    while True:
        key = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        inner = at[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
            at[key] = draw(json_values)
            return json.dumps(document)
        at = inner


@given(st.text() | json_values.map(json.dumps) | damaged())
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    try:
        measurements = parse_fio_jobs(text)
    except DiskslaError:
        return
    assert measurements
