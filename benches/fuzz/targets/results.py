"""Results of fio and DiskSpd: from the fio that disksla runs, and imported ones."""

import json
import math
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.histogram import quantile_s
from disksla.base.units import GIB
from disksla.measure.fio.result import DirectionResult, FioResult, parse_fio, parse_fio_version
from disksla.measure.verification.import_results import decode_text, judge_imported, parse_result
from disksla.measure.verification.suites import make_suite
from disksla.promise.catalogue.derive import derive_limits
from fuzz.target import Target, Tree
from fuzz.targets.settings import CATALOG

TESTS = Path(__file__).parents[3] / "tests"
LIMITS = derive_limits(CATALOG["vk.ceph-ssd"], 100 * GIB)
SUITE = make_suite("vk", LIMITS, 0.03)


def fio(content: bytes) -> bool:
    """Output of fio is parsed into finite, ordered values, or rejected with a message."""
    try:
        result = parse_fio(content.decode(errors="replace"))
    except DiskslaError as error:
        assert str(error)
        return False
    parse_fio_version(result.version)
    assert_consistent(result)
    return True


def assert_consistent(result: FioResult) -> None:
    for direction in (result.read, result.write):
        assert_finite(direction)
        assert sorted(direction.bins, key=lambda each: each.seconds) == list(direction.bins)
        if direction.bins:
            assert quantile_s(direction.bins, 0.5) <= quantile_s(direction.bins, 0.99)


def assert_finite(result: DirectionResult) -> None:
    numbers = (
        *(result.requests, result.bytes, result.iops, result.bytes_per_second),
        result.mean_latency_s or 0,
    )
    assert all(0 <= number < math.inf for number in numbers)


def imported(content: bytes) -> bool:
    """An imported result is judged, or rejected with a message."""
    try:
        measurements = parse_result(decode_text(content))
    except DiskslaError as error:
        assert str(error)
        return False
    for measurement in measurements:
        assert_finite(measurement.measured)
        assert measurement.inflight > 0
    results, unjudged = judge_imported(SUITE, LIMITS, measurements, 0.03)
    in_suite = [result.test for result in results if result.in_suite]
    assert in_suite == [test.name for test in SUITE.tests]
    assert len(results) - len(in_suite) + len(unjudged) <= len(measurements)
    return True


def _results(pattern: str) -> list[bytes]:
    """Return the results of tests and of public pages whose names match."""
    directories = (TESTS / "measure" / "verification" / name for name in ("results", "public"))
    return [path.read_bytes() for each in directories for path in sorted(each.glob(pattern))]


JSON = Tree(json.loads, lambda tree: json.dumps(tree, indent=2).encode())

TARGETS = (
    Target(
        "fio",
        fio,
        lambda: [
            (TESTS / "measure/fio/results" / name).read_bytes()
            for name in ("mixed.json", "reads.json")
        ],
        words=(b"\n{\n", b"\n}\n", b'"error" : 5', b" : -nan,\n", b" : inf\n", b"1e300", b"null"),
        tree=JSON,
    ),
    Target(
        "fio-elsewhere",
        imported,
        lambda: _results("fio-*.json"),
        words=(b'"numjobs" : "', b'"rw" : "', b'"bs" : "', b": nan", b"99999999", b"k,", b"null"),
        tree=JSON,
    ),
    Target(
        "fio-normal",
        imported,
        lambda: _results("fio-*.txt"),
        words=(
            *(b": (g=0): rw=", b", bs=", b", ioengine=", b", iodepth=", b"4K-4K/", b"(R) 4096B-"),
            *(b": (groupid=0, jobs=", b"): err= 0", b"  read : io=", b"runt= 1msec", b"/1msec"),
            *(b"clat (usec): avg=", b"issued rwts: total=", b"total=r=1/w=1", b"direct=1", b"..."),
        ),
    ),
    Target(
        "diskspd",
        imported,
        lambda: _results("diskspd-*"),
        words=(
            *(b"\xff\xfe", b"<!DOCTYPE x>", b"&#0;", b"<a>" * 300, b"<TimeSpan>", b"</TimeSpan>"),
            *(b"path: ", b"total:", b"%-ile", b" | ", b"   ", b"Results for timespan 1:", b"\n\n"),
        ),
    ),
)
