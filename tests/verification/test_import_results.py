"""Which line of a suite a measurement belongs to, and why it may belong to none."""

import contextlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.errors import DiskslaError
from disksla.fio.job import Pattern
from disksla.fio.result import DirectionResult
from disksla.limits.catalog import load_catalog
from disksla.limits.derive import derive_limits
from disksla.units import GIB, KIB
from disksla.verification.import_results import decode_text, judge_imported, parse_result
from disksla.verification.measurement import Measurement
from disksla.verification.suites import make_suite

RESULTS = Path(__file__).parent / "results"
FILES = sorted(RESULTS.iterdir())
TOLERANCE = 0.03
LIMITS = derive_limits(load_catalog()["vk.ceph-ssd"], 20 * GIB)
SUITE = make_suite("vk", LIMITS, TOLERANCE)


def trial(
    pattern: Pattern = "randread",
    request_bytes: int = 4 * KIB,
    inflight: int = 32,
    iops: float = 1000.0,
    rate_iops: float | None = None,
    runtime_s: float = 60.0,
    is_direct: bool = True,
) -> Measurement:
    measured = DirectionResult(
        int(iops * runtime_s), 4096, runtime_s, iops, iops * request_bytes, mean_latency_s=0.002
    )
    return Measurement(
        name="mine",
        tool="fio-3.33",
        pattern=pattern,
        request_bytes=request_bytes,
        inflight=inflight,
        measured=measured,
        rate_iops=rate_iops,
        is_direct=is_direct,
    )


def verdicts(*trials: Measurement) -> dict[str, str]:
    lines, _ = judge_imported(SUITE, trials, TOLERANCE)
    return {line.test: line.verdict for line in lines if line.verdict != "skipped"}


@pytest.mark.parametrize(
    ("made", "test", "verdict"),
    [
        (trial(), "randread-4k", "pass"),
        (trial(iops=700.0), "randread-4k", "fail"),
        (trial(request_bytes=8 * KIB, iops=700.0), "randread-8k", "fail"),
        (trial("read", 1024 * KIB, 16, iops=125.0), "read-1m", "pass"),
        (trial(rate_iops=1000.0), "latency-randread-4k", "shown"),
        (trial("randwrite", iops=490.0), "randwrite-4k", "pass"),
    ],
)
def test_a_measurement_finds_its_line(made: Measurement, test: str, verdict: str) -> None:
    assert verdicts(made) == {test: verdict}


def test_of_two_measurements_of_one_line_the_worst_counts() -> None:
    assert verdicts(trial(), trial(iops=700.0), trial()) == {"randread-4k": "fail"}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            trial("randrw"),
            "mine: found randrw, 4 KiB, 32 in flight; suite vk expects one of randread",
        ),
        (trial(request_bytes=64 * KIB), "suite vk expects randread of 4 KiB, 8 KiB, 16 KiB"),
        (trial(inflight=64), "64 in flight; suite vk expects 32 in flight"),
        (trial(request_bytes=8 * KIB, rate_iops=500.0), "has no such test at a fixed rate"),
        (trial(is_direct=False), "found buffered I/O"),
        (trial(runtime_s=5.0), "a runtime of 5 s is too short"),
        (trial(rate_iops=500.0), "found a rate of 500 IOPS; expected 970 IOPS"),
    ],
)
def test_conditions_that_do_not_match_are_named(made: Measurement, said: str) -> None:
    lines, [words] = judge_imported(SUITE, (made,), TOLERANCE)
    assert said in words
    assert {line.verdict for line in lines} == {"skipped"}
    assert {line.reason for line in lines} == {"not in the imported result"}


def test_a_line_may_have_a_rate_only() -> None:
    latency = tuple(line for line in SUITE.tests if line.rate_iops is not None)
    suite = msgspec.structs.replace(SUITE, tests=latency)
    _, [words] = judge_imported(suite, (trial(),), TOLERANCE)
    assert words.endswith("has no such test without a fixed rate")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_results_are_read_as_windows_and_others_write_them(path: Path, encoding: str) -> None:
    """PowerShell writes UTF-16 with a mark when output is redirected."""
    data = path.read_text(encoding="utf-8").encode(encoding)
    assert parse_result(decode_text(data)) == parse_result(path.read_text(encoding="utf-8"))


def test_a_mark_of_the_other_order_is_known() -> None:
    assert decode_text(b"\xfe\xff\x00a") == "a"


@pytest.mark.parametrize("text", ["", "IOPS=17.0k, BW=66.4MiB/s"])
def test_what_neither_tool_prints_is_refused(text: str) -> None:
    with pytest.raises(DiskslaError, match="expected fio JSON"):
        parse_result(text)


@given(st.binary())
def test_any_bytes_are_a_result_or_refused(data: bytes) -> None:
    with contextlib.suppress(DiskslaError):
        assert parse_result(decode_text(data))
