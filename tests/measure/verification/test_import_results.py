"""Imported measurements: the test that each is judged by, or why it is not judged."""

import contextlib
import html
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, KIB, MIB
from disksla.measure.fio.job import Pattern
from disksla.measure.fio.result import DirectionResult
from disksla.measure.verification.import_results import decode_text, judge_imported, parse_result
from disksla.measure.verification.measurement import Measurement, not_judged
from disksla.measure.verification.report import SuiteTestResult
from disksla.measure.verification.suites import Suite, make_suite
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.derive import derive_limits, effective_iops
from disksla.promise.catalogue.machine import SharedLimits
from disksla.promise.configuration.custom_terms import (
    SeparateTerms,
    SumTerms,
    TimeSharedTerms,
    custom_limits,
)

RESULTS = Path(__file__).parent / "results"
FILES = sorted(RESULTS.iterdir())
TOLERANCE = 0.03
LIMITS = derive_limits(load_catalog()["vk.ceph-ssd"], 20 * GIB)
SUITE = make_suite("vk", LIMITS, TOLERANCE)


def measurement(  # noqa: PLR0913, PLR0917 -- what differs between loads
    pattern: Pattern = "randread",
    request_bytes: int = 4 * KIB,
    inflight: int = 32,
    iops: float = 1000.0,
    rate_iops: float | None = None,
    runtime_s: float = 60.0,
    is_direct: bool | None = True,
    write_share: float | None = None,
    mean_latency_s: float | None = 0.0,
) -> Measurement:
    """Return what a load measures; with a latency of 0, its queue is full all the time."""
    if write_share is None:
        write_share = float(pattern in {"write", "randwrite"})
    latency_s = mean_latency_s
    if latency_s == 0.0:
        latency_s = inflight / iops if iops else None

    def direction(share: float) -> DirectionResult:
        requests = round(iops * share * runtime_s)
        transferred = requests * request_bytes
        rates = requests / runtime_s, transferred / runtime_s
        return DirectionResult(requests, transferred, runtime_s, *rates, latency_s)

    return Measurement(
        name="mine",
        tool="fio-3.33",
        pattern=pattern,
        request_bytes=request_bytes,
        inflight=inflight,
        read=direction(1 - write_share),
        write=direction(write_share),
        rate_iops=rate_iops,
        is_direct=is_direct,
    )


def judged(*measurements: Measurement, suite: Suite = SUITE) -> dict[str, SuiteTestResult]:
    """Return the results of the measurements by name."""
    results, _ = judge_imported(suite, LIMITS, measurements, TOLERANCE)
    return {result.test: result for result in results if result.measured is not None}


def verdicts(*measurements: Measurement) -> dict[str, str]:
    return {name: result.verdict for name, result in judged(*measurements).items()}


@pytest.mark.parametrize(
    ("imported", "test", "verdict"),
    [
        (measurement(), "randread-4k", "pass"),
        (measurement(iops=700.0), "randread-4k", "fail"),
        (measurement(request_bytes=8 * KIB, iops=700.0), "randread-8k", "fail"),
        (measurement("read", 1024 * KIB, 16, iops=125.0), "read-1m", "pass"),
        (measurement(rate_iops=1000.0), "latency-randread-4k", "shown"),
        (measurement("randwrite", iops=490.0), "randwrite-4k", "pass"),
        # A queue of 32 was asked for, and the load did not fill it.
        (measurement(iops=700.0, mean_latency_s=0.001), "randread-4k", "untested"),
        (measurement(iops=700.0, mean_latency_s=None), "randread-4k", "fail"),
    ],
)
def test_measurement_is_judged_by_its_test(imported: Measurement, test: str, verdict: str) -> None:
    assert verdicts(imported) == {test: verdict}


@pytest.mark.parametrize(
    ("imported", "test", "verdict", "required"),
    [
        # Separate budgets of 1000 reads and 500 writes: the one that is used up first applies.
        (measurement("randrw", write_share=0.25), "randrw-4k-w25-q32", "fail", 1000 / 0.75),
        (measurement("randrw", iops=1334.0, write_share=0.25), "randrw-4k-w25-q32", "pass", 1333),
        (measurement("randrw", iops=990.0, write_share=0.5), "randrw-4k-w50-q32", "pass", 1000),
        (measurement("rw", iops=625.0, write_share=0.8), "rw-4k-w80-q32", "pass", 625),
        (measurement(inflight=64, iops=700.0), "randread-4k-q64", "fail", 1000),
        (measurement(inflight=8, iops=700.0), "randread-4k-q8", "untested", 1000),
        (measurement(inflight=8, iops=980.0), "randread-4k-q8", "pass", 1000),
        (measurement(request_bytes=64 * KIB, iops=490.0), "randread-64k-q32", "pass", 500),
        (measurement(request_bytes=6 * KIB, iops=700.0), "randread-6k-q32", "fail", 750),
        (measurement(rate_iops=500.0, iops=499.0), "randread-4k-q32", "untested", 1000),
        (measurement(rate_iops=500.0, iops=300.0), "randread-4k-q32", "fail", 1000),
        (
            measurement(rate_iops=5000.0, iops=300.0, mean_latency_s=None),
            "randread-4k-q32",
            "fail",
            1000,
        ),
    ],
)
def test_other_loads_are_judged_by_the_cost_law(
    imported: Measurement, test: str, verdict: str, required: float
) -> None:
    [(name, result)] = judged(imported).items()
    assert (name, result.verdict, result.in_suite) == (test, verdict, False)
    assert result.required == pytest.approx(required, rel=1e-3)


def test_bandwidth_limit_applies_to_large_requests() -> None:
    loads = [
        measurement("randread", 512 * KIB, depth, iops=iops)
        for depth, iops in ((32, 250.0), (32, 200.0), (16, 200.0))
    ]
    found = [judged(load)[f"randread-512k-q{load.inflight}"] for load in loads]
    assert [each.verdict for each in found] == ["pass", "fail", "untested"]
    assert {(each.unit, each.required) for each in found} == {("bytes_per_second", 125.0 * MIB)}
    assert found[2].reason == "16 in flight; the promise needs 32"
    large = judged(measurement("read", 2 * MIB, 16, iops=50.0))["read-2m-q16"]
    assert (large.verdict, large.required) == ("fail", 125.0 * MIB)


@pytest.mark.parametrize(
    ("latency_s", "iops", "verdict"),
    [
        (0.001, 40_000.0, "untested"),
        (0.001, 20_000.0, "untested"),
        (0.001, 49_000.0, "pass"),
        (0.0008, 38_000.0, "fail"),
        (None, 40_000.0, "untested"),
    ],
)
def test_the_depth_that_a_promise_needs_grows_with_it(
    latency_s: float | None, iops: float, verdict: str
) -> None:
    """50,000 IOPS are promised, at 1 ms where no latency is stated: 50 in flight."""
    limits = custom_limits(SumTerms(iops=50_000.0, latency_s=latency_s))
    suite = make_suite("terms", limits, TOLERANCE)
    load = measurement("randrw", inflight=40, iops=iops, write_share=0.5)
    results, _ = judge_imported(suite, limits, (load,), TOLERANCE)
    assert results[-1].verdict == verdict


def test_failure_at_a_limit_of_the_machine_is_untested() -> None:
    machine = SharedLimits("all", "all disks together", "", custom_limits(SumTerms(iops=600.0)))
    load = measurement("randrw", iops=600.0, write_share=0.5)
    results, _ = judge_imported(SUITE, LIMITS, (load,), TOLERANCE, (machine,))
    assert results[-1].verdict == "untested"
    assert "only 600 such IOPS" in results[-1].reason


@pytest.mark.parametrize(
    ("changes", "iops", "verdict", "reason"),
    [
        ({"is_paced": True}, 700.0, "untested", "it paused between requests, so it asked for"),
        ({"is_paced": True}, 1000.0, "pass", ""),
        ({"counted_inflight": 1.0}, 700.0, "untested", "only 1 in flight at the disk on average;"),
        ({"waits": "fsync=1"}, 700.0, "untested", "requests wait for each other (fsync=1)"),
        ({"waits": "fsync=1", "counted_inflight": 31.0}, 700.0, "fail", ""),
        ({"inflight": 8, "counted_inflight": 40.0}, 700.0, "fail", ""),
        # A cache, for example of ZFS, which accepts direct I/O.
        ({}, 2900.0, "pass", ""),
        ({}, 32_000.0, "untested", "32 times the limit"),
    ],
)
def test_a_load_that_proves_nothing_is_untested(
    changes: dict[str, Any], iops: float, verdict: str, reason: str
) -> None:
    [result] = judged(msgspec.structs.replace(measurement(iops=iops), **changes)).values()
    assert result.verdict == verdict
    assert result.reason.startswith(reason)
    assert bool(reason) == bool(result.reason)


def test_load_within_one_allocation_unit_is_untested() -> None:
    limits = derive_limits(load_catalog()["yandex.network-ssd"], 256 * GIB)
    suite = make_suite("yandex", limits, TOLERANCE)
    assert limits.one_unit is not None
    most = effective_iops(
        msgspec.structs.replace(limits, promise_charges=limits.one_unit.promise_charges),
        4 * KIB,
        0.0,
    )
    assert most is not None
    found = [
        judge_imported(suite, limits, (measurement(iops=share * most.promise),), TOLERANCE)[0][-1]
        for share in (1.0, 0.5)
    ]
    assert [each.verdict for each in found] == ["untested", "fail"]
    assert "each allocation unit of 32 GiB has its own limit" in found[0].reason


def test_worst_of_several_measurements_counts() -> None:
    assert verdicts(measurement(), measurement(iops=700.0), measurement()) == {
        "randread-4k": "fail"
    }
    paced = measurement(iops=700.0, mean_latency_s=0.001)
    assert verdicts(paced, measurement()) == {"randread-4k": "pass"}


def test_the_same_other_load_twice_has_two_names() -> None:
    load = measurement("randrw", write_share=0.5)
    assert [*judged(load, load)] == ["randrw-4k-w50-q32", "randrw-4k-w50-q32-2"]


@pytest.mark.parametrize(
    ("imported", "message"),
    [
        (measurement(is_direct=False), "found buffered I/O"),
        (measurement(is_direct=None), "does not say whether I/O was direct; use --direct"),
        (not_judged("mine", "fio", "trims are not judged"), "mine: trims are not judged"),
        (measurement(runtime_s=5.0), "a runtime of 5 s is too short"),
        (measurement("randrw", iops=0.0), "no request completed"),
        (
            msgspec.structs.replace(measurement(), targets=("/dev/sdb", "/dev/sdc")),
            "several disks or directories (/dev/sdb, /dev/sdc)",
        ),
    ],
)
def test_what_cannot_be_judged_is_reported(imported: Measurement, message: str) -> None:
    results, [text] = judge_imported(SUITE, LIMITS, (imported,), TOLERANCE)
    assert message in text
    assert {result.verdict for result in results} == {"untested"}
    assert {result.reason for result in results} == {"not in the imported result"}


def test_load_without_a_promise_is_not_judged() -> None:
    limits = custom_limits(SeparateTerms(read_iops=1000.0))
    suite = make_suite("terms", limits, TOLERANCE)
    write, mix = measurement("randwrite"), measurement("randwrite", inflight=8)
    results, unjudged = judge_imported(suite, limits, (write, mix), TOLERANCE)
    assert unjudged == (
        "mine: the terms promise no IOPS for writes",
        "mine: the terms promise nothing for such a load",
    )
    assert {result.verdict for result in results} == {"untested", "skipped"}


TERMS = (
    SeparateTerms(read_iops=1000.0, write_iops=500.0, read_bytes_per_second=50.0 * MIB),
    SumTerms(iops=3000.0, bytes_per_second=125.0 * MIB),
    TimeSharedTerms(read_iops=8000.0, write_iops=4000.0),
)


@given(
    st.sampled_from(TERMS),
    st.sampled_from([512, 4 * KIB, 16 * KIB, 256 * KIB, MIB]),
    st.floats(0.05, 0.95),
    st.integers(1, 256),
    st.floats(0.01, 3.0),
)
def test_any_mix_passes_at_its_limit_and_fails_below_if_it_is_deep(
    terms: SeparateTerms | SumTerms | TimeSharedTerms,
    request_bytes: int,
    write_share: float,
    inflight: int,
    load: float,
) -> None:
    """The limiter's law says at which rate a mix is at the limits: load 1."""
    limits = custom_limits(terms)
    at_limit = effective_iops(limits, request_bytes, write_share)
    assert at_limit is not None
    assume(abs(load - (1 - TOLERANCE)) > 0.01)
    imported = measurement(
        "randrw",
        request_bytes,
        inflight,
        iops=at_limit.promise * load,
        write_share=write_share,
        runtime_s=10_000.0,  # whole requests hardly change the mix
    )
    suite = make_suite("terms", limits, TOLERANCE)
    results, unjudged = judge_imported(suite, limits, (imported,), TOLERANCE)
    assert not unjudged
    assert results[-1].ratio == pytest.approx(load, rel=1e-3)
    if load > 1 - TOLERANCE:
        assert results[-1].verdict == "pass"
    elif inflight >= 32 or inflight < 16:  # in between, the bandwidth needs fewer than the IOPS
        assert results[-1].verdict == ("fail" if inflight >= 32 else "untested")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_encodings_of_windows_are_decoded(path: Path, encoding: str) -> None:
    """PowerShell writes UTF-16 with a byte order mark when output is redirected."""
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    data = (mark + path.read_text(encoding="utf-8")).encode(encoding)
    assert parse_result(decode_text(data)) == parse_result(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "quote",
    [
        *("> ", ">", "> > ", ">> ", "# ", "// ", " * ", "| ", "<node-1> ", "[pod/fio-1/fio] "),
        *("2026-11-28T14:00:07.123456789Z ", "fio-1  | ", "Nov 28 14:00:07 host fio[4217]: "),
    ],
)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_results_quoted_in_a_mail_are_read(path: Path, quote: str) -> None:
    text = path.read_text(encoding="utf-8")
    quoted = "".join(f"{quote}{line}\n" for line in text.splitlines())
    assert parse_result(quoted) == parse_result(text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_results_in_a_page_are_read(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    page = f"<html><body>\n<pre><code>\n{html.escape(text)}\n</code></pre></body></html>"
    assert parse_result(page) == parse_result(text)
    lines = "".join(f"<span>{html.escape(line)}</span><br>" for line in text.splitlines())
    assert parse_result(f"<div>{lines}</div>") == parse_result(text)
    assert parse_result(f"```\n{text}\n```\n") == parse_result(text)


def test_a_text_that_another_program_keeps_in_a_line_is_read() -> None:
    text = (Path(__file__).parent / "public" / "fio-2.1-mix.txt").read_text()
    for line_end in (r"\n", r"\\n"):
        kept = '{"stdout": "' + text.replace("\n", line_end) + '"}'
        assert parse_result(kept)[0].measured == parse_result(text)[0].measured


def test_a_message_names_what_stands_there() -> None:
    sizes = "(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B"
    line = f"a: (g=0): rw=read, bs={sizes}, ioengine=libaio, iodepth=4"
    with pytest.raises(DiskslaError, match=r"found 'a: \(g=0\): rw=read"):
        parse_result(f"{line} a: (groupid=0, jobs=1): err= 0")
    with pytest.raises(DiskslaError, match=r"as Python prints it; expected that of json\.dumps"):
        parse_result(str({"fio version": "fio-3.33", "jobs": []}))
    with pytest.raises(DiskslaError, match="found '<node-1> hostname=a"):
        parse_result("<node-1> hostname=a, be=0, 64-bit, os=Linux")


@pytest.mark.parametrize("text", ["", "IOPS=17.0k, BW=66.4MiB/s"])
def test_unknown_format_is_rejected(text: str) -> None:
    with pytest.raises(DiskslaError, match="expected output of fio"):
        parse_result(text)


@given(st.binary())
def test_any_bytes_are_parsed_or_rejected(data: bytes) -> None:
    with contextlib.suppress(DiskslaError):
        assert parse_result(decode_text(data))


@pytest.mark.parametrize(
    "text",
    ["\\n read : IOPS=\n" + "\\" * 4_000_000, "x" + " " * 4_000_000, "a (groupid=0 " * 300_000],
)
def test_a_long_text_that_is_no_result_costs_no_time(text: str) -> None:
    """The first one took hours, since each search went on to the end."""
    with pytest.raises(DiskslaError, match="expected output of fio"):
        parse_result(text)
