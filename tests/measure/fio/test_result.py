"""Parsing the output of fio."""

import errno
import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.measure.fio.result import (
    DirectionResult,
    FioError,
    FioResult,
    parse_fio,
    parse_fio_version,
)
from support.examples import damaged_json, damaged_text

HERE = Path(__file__).parent / "results"
"""Output of fio 3.33: two workers in one group; three jobs with reads and writes, a ramp and no
bins, not in a group; a missing target."""

READS = (HERE / "reads.json").read_text(encoding="utf-8")
MIXED = (HERE / "mixed.json").read_text(encoding="utf-8")
GONE = (HERE / "gone.json").read_text(encoding="utf-8")
REAL = (READS, MIXED, GONE)


# Versions.


@pytest.mark.parametrize(
    ("text", "version"),
    [("fio-3.1\n", (3, 1)), ("fio-3.33", (3, 33)), ("fio-3.41-27-g1a2b", (3, 41))],
)
def test_version_is_parsed(text: str, version: tuple[int, int]) -> None:
    assert parse_fio_version(text) == version


@given(st.text() | st.from_regex(r"fio-[0-9.]*"))
def test_any_text_is_a_version_or_an_error(text: str) -> None:
    try:
        assert parse_fio_version(text) >= (3, 1)
    except DiskslaError as error:
        assert "expected" in str(error)  # noqa: PT017 -- either is right


# Results.


def test_workers_of_a_group_are_one_result() -> None:
    result = parse_fio(READS)
    assert result.version == "fio-3.33"
    assert (result.read.requests, result.read.bytes, result.read.runtime_s) == (100, 409600, 1.001)
    assert result.read.iops == pytest.approx(99.9001, abs=1e-4)
    assert result.read.bytes_per_second == pytest.approx(409190, abs=1)
    assert sum(one.requests for one in result.read.bins) == 100
    nothing = DirectionResult(0, 0, 0.0, 0.0, 0.0, None)
    assert result.write == nothing


def test_workers_outside_a_group_are_added_up() -> None:
    jobs = json.loads(MIXED)["jobs"]
    assert len(jobs) == 3
    result = parse_fio(MIXED)
    for direction, measured in (("read", result.read), ("write", result.write)):
        assert measured.requests == sum(job[direction]["total_ios"] for job in jobs)
        assert measured.iops == pytest.approx(
            sum(job[direction]["iops"] for job in jobs), rel=0.01
        )
        means = [job[direction]["clat_ns"]["mean"] / 1e9 for job in jobs]
        assert measured.mean_latency_s is not None
        assert min(means) <= measured.mean_latency_s <= max(means)
        assert measured.bins == ()


def test_failed_job_raises() -> None:
    with pytest.raises(FioError, match=r"error 22 \(EINVAL\); fio: a hint") as caught:
        parse_fio(f"fio: a hint\n{GONE}")
    assert caught.value.reason == "error"


@pytest.mark.parametrize(
    ("code", "name", "reason"),
    [
        *((getattr(errno, name), name, "unplugged") for name in ("ENODEV", "ENXIO")),
        *((getattr(errno, name), name, "no_space") for name in ("ENOSPC", "EDQUOT")),
        *((getattr(errno, name), name, "permission") for name in ("EACCES", "EPERM")),
        (errno.EROFS, "EROFS", "read_only"),
        (errno.EIO, "EIO", "error"),
        (4711, "unknown error number", "error"),
    ],
)
def test_kernel_errors_have_reasons(code: int, name: str, reason: str) -> None:
    with pytest.raises(FioError, match=rf"error {code} \({name}\)") as caught:
        parse_fio(READS.replace('"error" : 0', f'"error" : {code}'))
    assert caught.value.reason == reason


def test_what_is_around_or_reformatted_does_not_matter() -> None:
    noisy = f"note: both iodepth >= 1\n\n{READS}\nfio: the end\n"
    for text in (noisy, json.dumps(json.loads(READS)), READS.replace("\n", "\r\n")):
        assert parse_fio(text) == parse_fio(READS)


def test_nan_is_absent() -> None:
    text = READS.replace('"bw_dev" : 0.000000', '"bw_dev" : -nan')
    assert text != READS
    assert parse_fio(text) == parse_fio(READS)
    job = json.loads(READS)
    job["jobs"][0]["read"]["clat_ns"]["mean"] = None
    assert parse_fio(json.dumps(job)).read.mean_latency_s == 0.0


def edited(edit: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(READS)
    edit(document)
    return json.dumps(document, indent=2)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda doc: doc.update({"fio version": "fio-2.99"}), r"expected fio 3\.1"),
        (lambda doc: doc.update(jobs=[]), "0 jobs"),
        (lambda doc: doc["jobs"].append({**doc["jobs"][0], "groupid": 1}), "2 jobs"),
        (lambda doc: doc["jobs"][0]["read"].update(total_ios=801), "801 requests, but only 4096"),
        (lambda doc: doc["jobs"][0]["read"].update(runtime=0), "in 0 ms"),
        (lambda doc: doc["jobs"][0]["read"].update(total_ios=-1), "not valid fio JSON"),
        (lambda doc: doc["jobs"][0]["read"]["clat_ns"].update(mean=1e300), "not valid fio"),
        (lambda doc: doc["jobs"][0]["read"]["clat_ns"]["bins"].update({"99": 2**40}), "only"),
        (lambda doc: doc["jobs"][0]["read"]["clat_ns"]["bins"].update({"x": 1}), "not valid"),
    ],
)
def test_inconsistent_document_is_refused(
    edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    with pytest.raises(DiskslaError, match=message):
        parse_fio(edited(edit))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found nothing; expected one JSON document of fio"),
        ("\n", "found nothing"),
        ("fio: no", "not valid fio JSON"),
        ("{", "1 opening and 0 closing braces"),
        ("fio: stopped\n}\n{", "1 opening and 1 closing braces"),
        ("fio: stopped\n}", "found fio: stopped }"),
        (READS + READS, "2 opening"),
        (READS[:-3], "1 opening and 0 closing braces"),
        ("\ud800", "not valid fio JSON"),
        ("[" * 100_000, "not valid fio JSON"),
        ("{\n" * 100_000, "100000 opening"),
    ],
)
def test_text_without_a_result_is_refused(text: str, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        parse_fio(text)


def is_consistent(measured: DirectionResult) -> bool:
    numbers = [measured.runtime_s, measured.iops, measured.bytes_per_second]
    numbers += [one.seconds for one in measured.bins]
    numbers += [] if measured.mean_latency_s is None else [measured.mean_latency_s]
    latencies = [one.seconds for one in measured.bins]
    return (
        all(math.isfinite(number) and number >= 0 for number in numbers)
        and measured.requests >= 0
        and (measured.mean_latency_s is None) == (measured.requests == 0)
        and measured.bytes >= 512 * measured.requests
        and measured.bytes >= 512 * sum(one.requests for one in measured.bins)
        and all(one.requests > 0 for one in measured.bins)
        and latencies == sorted(set(latencies))
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([2**63 - 1, 2**63, 1e308, -1, 0])


@given(
    st.text()
    | JSON.map(json.dumps)
    | JSON.map(partial(json.dumps, indent=2))
    | damaged_text(REAL)
    | damaged_json(REAL, JSON | NUMBERS)
)
def test_any_text_is_a_consistent_result_or_an_error(text: str) -> None:
    try:
        result = parse_fio(text)
    except DiskslaError as error:
        assert str(error)  # noqa: PT017 -- either is right
        return
    assert isinstance(result, FioResult)
    assert is_consistent(result.read)
    assert is_consistent(result.write)
