"""Results of fio and DiskSpd, made here or elsewhere, by programs that may be anybody's."""

import json
import math
from pathlib import Path

from disksla.errors import DiskslaError
from disksla.fio.result import DirectionResult, FioResult, parse_fio, parse_fio_version, quantile_s
from disksla.limits.derive import derive_limits
from disksla.units import GIB
from disksla.verification.import_results import decode_text, judge_imported, parse_result
from disksla.verification.suites import make_suite
from fuzz.target import Target, Tree
from fuzz.targets.settings import CATALOG

TESTS = Path(__file__).parent.parent.parent
SUITE = make_suite("vk", derive_limits(CATALOG["vk.ceph-ssd"], 100 * GIB), 0.03)


def fio(content: bytes) -> bool:
    """What our own fio printed is a result that makes sense, or a refusal."""
    try:
        result = parse_fio(content.decode(errors="replace"))
    except DiskslaError as error:
        assert str(error)
        return False
    parse_fio_version(result.version)
    assert all(note.isprintable() for note in result.notes)
    assert_sense(result)
    return True


def assert_sense(result: FioResult) -> None:
    for one in (result.read, result.write):
        assert_measured(one)
        assert sorted(one.bins, key=lambda each: each.seconds) == list(one.bins)
        if one.bins:
            assert quantile_s(one.bins, 0.5) <= quantile_s(one.bins, 0.99)


def assert_measured(one: DirectionResult) -> None:
    numbers = (one.requests, one.bytes, one.iops, one.bytes_per_second, one.mean_latency_s or 0)
    assert all(0 <= number < math.inf for number in numbers)


def elsewhere(content: bytes) -> bool:
    """What others measured is judged, or refused."""
    try:
        trials = parse_result(decode_text(content))
    except DiskslaError as error:
        assert str(error)
        return False
    for trial in trials:
        assert_measured(trial.measured)
        assert trial.inflight > 0
    lines, unjudged = judge_imported(SUITE, trials, 0.03)
    assert [line.test for line in lines] == [test.name for test in SUITE.tests]
    assert len(unjudged) <= len(trials)
    return True


def _results(pattern: str) -> list[bytes]:
    return [
        path.read_bytes() for path in sorted((TESTS / "verification" / "results").glob(pattern))
    ]


JSON = Tree(json.loads, lambda tree: json.dumps(tree, indent=2).encode())

TARGETS = (
    Target(
        "fio",
        fio,
        lambda: [
            (TESTS / "fio/results" / name).read_bytes() for name in ("mixed.json", "reads.json")
        ],
        words=(
            b"\n{\n",
            b"\n}\n",
            b'"error" : 5',
            b" : -nan,\n",
            b" : inf\n",
            b"1e300",
            b"null",
        ),
        tree=JSON,
    ),
    Target(
        "fio-elsewhere",
        elsewhere,
        lambda: _results("fio-*.json"),
        words=(
            b'"numjobs" : "',
            b'"rw" : "',
            b'"bs" : "',
            b": nan",
            b"99999999",
            b"k,",
            b"null",
        ),
        tree=JSON,
    ),
    Target(
        "diskspd",
        elsewhere,
        lambda: _results("diskspd-*"),
        words=(
            *(b"\xff\xfe", b"<!DOCTYPE x>", b"&#0;", b"<a>" * 300, b"<TimeSpan>", b"</TimeSpan>"),
            *(b"path: ", b"total:", b"%-ile", b" | ", b"   ", b"Results for timespan 1:", b"\n\n"),
        ),
    ),
)
