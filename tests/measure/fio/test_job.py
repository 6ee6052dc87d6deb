"""The command line of fio jobs."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.measure.fio.job import FioJob, fio_arguments

JOB = FioJob(name="probe", target="/dev/vdb", pattern="randread", request_bytes=4096, runtime_s=5)


def job_with(**more: object) -> FioJob:
    return msgspec.structs.replace(JOB, **more)


def options(job: FioJob) -> dict[str, str]:
    arguments = fio_arguments(job)
    assert all(argument.startswith("--") for argument in arguments)
    pairs = [argument.removeprefix("--").partition("=")[::2] for argument in arguments]
    assert len(dict(pairs)) == len(pairs), "no option is given twice"
    return dict(pairs)


def test_probe_command_line() -> None:
    job = job_with(rate_iops=20)
    assert " ".join(fio_arguments(job)) == (
        "--name=probe --filename=/dev/vdb --readonly --allow_file_create=0"
        " --allow_mounted_write=0 --rw=randread --randrepeat=0 --norandommap --bs=4096"
        " --direct=1 --ioengine=libaio --iodepth=1 --numjobs=1 --thread --group_reporting"
        " --rate_iops=20 --time_based --runtime=5000ms --invalidate=0 --disk_util=0"
        " --eta=never --output-format=json+"
    )


@pytest.mark.parametrize("random_share", [None, 0.0, 0.5])
@pytest.mark.parametrize("pattern", ["read", "randread", "write", "randwrite", "rw", "randrw"])
def test_readonly_unless_job_writes(pattern: str, random_share: float | None) -> None:
    found = options(job_with(pattern=pattern, random_share=random_share))
    assert ("readonly" in found) == ("w" not in pattern.removeprefix("rand"))
    assert found["allow_mounted_write"] == "0"
    assert found["allow_file_create"] == "0"


def test_shares_of_reads_and_random_requests() -> None:
    found = options(job_with(pattern="rw", read_share=0.7, random_share=0.25))
    assert (found["rw"], found["rwmixread"], found["percentage_random"]) == ("randrw", "70", "25")
    assert "percentage_random" not in options(JOB)
    assert "rwmixread" not in options(job_with(pattern="rw"))
    assert "rwmixread" not in options(job_with(read_share=0.7)), "only in mixed patterns"
    assert "norandommap" not in options(job_with(pattern="read"))


def test_region_which_sequential_workers_divide() -> None:
    assert {"offset", "size", "ramp_time"}.isdisjoint(options(JOB))
    found = options(job_with(offset_bytes=4096, span_bytes=2**30, workers=4, ramp_s=1.5))
    assert (found["offset"], found["size"], found["ramp_time"]) == ("4096", str(2**30), "1500ms")
    assert "offset_increment" not in found
    found = options(job_with(pattern="read", span_bytes=100 * 4096, workers=3))
    assert (found["size"], found["offset_increment"]) == (str(33 * 4096), str(33 * 4096))


@given(
    rate_iops=st.floats(1, 1e6),
    workers=st.integers(1, 64),
    read_share=st.none() | st.floats(0, 1),
    pattern=st.sampled_from(["read", "randwrite", "rw", "randrw"]),
)
def test_rate_of_all_workers_is_never_exceeded(
    rate_iops: float, workers: int, read_share: float | None, pattern: str
) -> None:
    job = job_with(rate_iops=rate_iops, workers=workers, read_share=read_share, pattern=pattern)
    try:
        found = options(job)
    except DiskslaError as error:
        assert "invalid rate" in str(error)  # noqa: PT017 -- either is right
        return
    rates = [int(rate) for rate in found["rate_iops"].split(",")]
    total = sum(rates) * workers
    assert rate_iops - len(rates) * workers < total <= rate_iops + 1e-6 * workers


def test_rate_of_mixed_pattern_counts_both_directions() -> None:
    job = job_with(pattern="randrw", rate_iops=200, read_share=0.7, workers=2)
    assert options(job)["rate_iops"] == "70,30"
    assert options(job_with(pattern="rw", rate_iops=200))["rate_iops"] == "100,100"
    assert "rate_iops" not in options(JOB)


def test_colons_in_the_target_are_escaped() -> None:
    path = "/dev/disk/by-path/pci-0000:00:1f.2"
    assert options(job_with(target=path))["filename"] == path.replace(":", r"\:")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("target", "vdb", "absolute path"),
        ("target", "", "absolute path"),
        ("target", "/dev/vdb ", "absolute path"),
        ("target", "/dev/v\0db", "absolute path"),
        ("target", "/dev/v\ndb", "absolute path"),
        ("target", "/dev/v\\db", "backslash"),
        ("request_bytes", 0, "request size"),
        ("queue_depth", 0, "queue depth"),
        ("workers", -1, "workers"),
        ("offset_bytes", -1, "offset"),
        ("span_bytes", 4095, "region too small: found 4095 bytes"),
        ("runtime_s", 0.0, "runtime"),
        ("runtime_s", math.nan, "runtime"),
        ("runtime_s", math.inf, "runtime"),
        ("ramp_s", -1.0, "ramp"),
        ("random_share", 1.1, "share of random requests"),
        ("read_share", -1.0, "share of reads: found -1"),
        ("rate_iops", 0.5, "invalid rate for fio: found 0.5 IOPS"),
        ("rate_iops", -20.0, "invalid rate"),
        ("rate_iops", math.nan, "invalid rate"),
        ("rate_iops", math.inf, "invalid rate"),
    ],
)
def test_job_that_fio_would_misread_is_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        fio_arguments(job_with(**{"pattern": "randrw", field: value}))
