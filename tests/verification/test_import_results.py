"""Imported measurements: the test that each is judged by, or why it is not judged."""

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


def measurement(
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


def verdicts(*measurements: Measurement) -> dict[str, str]:
    results, _ = judge_imported(SUITE, measurements, TOLERANCE)
    return {result.test: result.verdict for result in results if result.verdict != "skipped"}


@pytest.mark.parametrize(
    ("imported", "test", "verdict"),
    [
        (measurement(), "randread-4k", "pass"),
        (measurement(iops=700.0), "randread-4k", "fail"),
        (measurement(request_bytes=8 * KIB, iops=700.0), "randread-8k", "fail"),
        (measurement("read", 1024 * KIB, 16, iops=125.0), "read-1m", "pass"),
        (measurement(rate_iops=1000.0), "latency-randread-4k", "shown"),
        (measurement("randwrite", iops=490.0), "randwrite-4k", "pass"),
    ],
)
def test_measurement_is_judged_by_its_test(imported: Measurement, test: str, verdict: str) -> None:
    assert verdicts(imported) == {test: verdict}


def test_worst_of_several_measurements_counts() -> None:
    assert verdicts(measurement(), measurement(iops=700.0), measurement()) == {
        "randread-4k": "fail"
    }


@pytest.mark.parametrize(
    ("imported", "message"),
    [
        (
            measurement("randrw"),
            "mine: found randrw, 4 KiB, 32 in flight; suite vk expects one of randread",
        ),
        (measurement(request_bytes=64 * KIB), "suite vk expects randread of 4 KiB, 8 KiB, 16 KiB"),
        (measurement(inflight=64), "64 in flight; suite vk expects 32 in flight"),
        (measurement(request_bytes=8 * KIB, rate_iops=500.0), "has no such test at a fixed rate"),
        (measurement(is_direct=False), "found buffered I/O"),
        (measurement(runtime_s=5.0), "a runtime of 5 s is too short"),
        (measurement(rate_iops=500.0), "found a rate of 500 IOPS; expected 970 IOPS"),
    ],
)
def test_mismatched_conditions_are_reported(imported: Measurement, message: str) -> None:
    results, [text] = judge_imported(SUITE, (imported,), TOLERANCE)
    assert message in text
    assert {result.verdict for result in results} == {"skipped"}
    assert {result.reason for result in results} == {"not in the imported result"}


def test_suite_with_only_fixed_rates() -> None:
    latency = tuple(test for test in SUITE.tests if test.rate_iops is not None)
    suite = msgspec.structs.replace(SUITE, tests=latency)
    _, [text] = judge_imported(suite, (measurement(),), TOLERANCE)
    assert text.endswith("has no such test without a fixed rate")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_of_windows_are_decoded(path: Path, encoding: str) -> None:
    """PowerShell writes UTF-16 with a byte order mark when output is redirected."""
    data = path.read_text(encoding="utf-8").encode(encoding)
    assert parse_result(decode_text(data)) == parse_result(path.read_text(encoding="utf-8"))


def test_big_endian_utf16_is_decoded() -> None:
    assert decode_text(b"\xfe\xff\x00a") == "a"


@pytest.mark.parametrize("text", ["", "IOPS=17.0k, BW=66.4MiB/s"])
def test_unknown_format_is_rejected(text: str) -> None:
    with pytest.raises(DiskslaError, match="expected fio JSON"):
        parse_result(text)


@given(st.binary())
def test_any_bytes_are_parsed_or_rejected(data: bytes) -> None:
    with contextlib.suppress(DiskslaError):
        assert parse_result(decode_text(data))
