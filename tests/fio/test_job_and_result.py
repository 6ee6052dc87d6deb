import errno
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.errors import DiskslaError
from disksla.fio.job import FioJob, fio_arguments
from disksla.fio.result import DirectionResult, FioError, FioResult, parse_fio, parse_fio_version

HERE = Path(__file__).parent / "results"
"""What fio 3.33 printed: two workers in one group; three with reads and writes, a ramp and no
bins, not in a group; a target that is not there."""

READS = (HERE / "reads.json").read_text(encoding="utf-8")
MIXED = (HERE / "mixed.json").read_text(encoding="utf-8")
GONE = (HERE / "gone.json").read_text(encoding="utf-8")
REAL = (READS, MIXED, GONE)

JOB = FioJob(name="probe", target="/dev/vdb", pattern="randread", request_bytes=4096, runtime_s=5)


def changed(**more: object) -> FioJob:
    return msgspec.structs.replace(JOB, **more)


def options(job: FioJob) -> dict[str, str]:
    words = fio_arguments(job)
    assert all(word.startswith("--") for word in words)
    pairs = [word.removeprefix("--").partition("=")[::2] for word in words]
    assert len(dict(pairs)) == len(pairs), "nothing is said twice"
    return dict(pairs)


# The command line.


def test_a_probe_is_this_command() -> None:
    job = changed(rate_iops=20)
    assert " ".join(fio_arguments(job)) == (
        "--name=probe --filename=/dev/vdb --readonly --allow_file_create=0"
        " --allow_mounted_write=0 --rw=randread --randrepeat=0 --norandommap --bs=4096"
        " --direct=1 --ioengine=libaio --iodepth=1 --numjobs=1 --thread --group_reporting"
        " --rate_iops=20 --time_based --runtime=5000ms --invalidate=0 --disk_util=0"
        " --eta=never --output-format=json+"
    )


@pytest.mark.parametrize("random_share", [None, 0.0, 0.5])
@pytest.mark.parametrize("pattern", ["read", "randread", "write", "randwrite", "rw", "randrw"])
def test_only_what_writes_is_not_told_to_read_only(
    pattern: str, random_share: float | None
) -> None:
    said = options(changed(pattern=pattern, random_share=random_share))
    assert ("readonly" in said) == ("w" not in pattern.removeprefix("rand"))
    assert said["allow_mounted_write"] == "0"
    assert said["allow_file_create"] == "0"


def test_places_and_directions_are_mixed() -> None:
    said = options(changed(pattern="rw", read_share=0.7, random_share=0.25))
    assert (said["rw"], said["rwmixread"], said["percentage_random"]) == ("randrw", "70", "25")
    assert "percentage_random" not in options(JOB)
    assert "rwmixread" not in options(changed(pattern="rw"))
    assert "rwmixread" not in options(changed(read_share=0.7)), "nothing is mixed in it"
    assert "norandommap" not in options(changed(pattern="read"))


def test_a_region_is_told() -> None:
    assert {"offset", "size"}.isdisjoint(options(JOB))
    said = options(changed(offset_bytes=4096, span_bytes=2**30, workers=4))
    assert (said["offset"], said["size"]) == ("4096", str(2**30))
    assert "offset_increment" not in said


def test_sequential_workers_share_a_span_out() -> None:
    said = options(changed(pattern="read", span_bytes=100 * 4096, workers=3))
    assert (said["size"], said["offset_increment"]) == (str(33 * 4096), str(33 * 4096))


def test_a_ramp_is_told() -> None:
    assert options(changed(ramp_s=1.5))["ramp_time"] == "1500ms"
    assert "ramp_time" not in options(JOB)


@given(
    rate_iops=st.floats(1, 1e6),
    workers=st.integers(1, 64),
    read_share=st.none() | st.floats(0, 1),
    pattern=st.sampled_from(["read", "randwrite", "rw", "randrw"]),
)
def test_a_rate_is_shared_out_and_never_exceeded(
    rate_iops: float, workers: int, read_share: float | None, pattern: str
) -> None:
    job = changed(rate_iops=rate_iops, workers=workers, read_share=read_share, pattern=pattern)
    try:
        said = options(job)
    except DiskslaError as error:
        assert "cannot be shared out" in str(error)  # noqa: PT017 -- either is right
        return
    rates = [int(rate) for rate in said["rate_iops"].split(",")]
    asked = sum(rates) * workers
    assert rate_iops - len(rates) * workers < asked <= rate_iops + 1e-6 * workers


def test_a_rate_of_a_mixture_counts_both_directions() -> None:
    job = changed(pattern="randrw", rate_iops=200, read_share=0.7, workers=2)
    assert options(job)["rate_iops"] == "70,30"
    assert options(changed(pattern="rw", rate_iops=200))["rate_iops"] == "100,100"
    assert "rate_iops" not in options(JOB)


def test_colons_do_not_separate_names() -> None:
    said = options(changed(target="/dev/disk/by-path/pci-0000:00:1f.2"))
    assert said["filename"] == r"/dev/disk/by-path/pci-0000\:00\:1f.2"


@pytest.mark.parametrize(
    ("field", "value", "words"),
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
        ("span_bytes", 4095, "too few"),
        ("runtime_s", 0.0, "runtime"),
        ("runtime_s", math.nan, "runtime"),
        ("runtime_s", math.inf, "runtime"),
        ("ramp_s", -1.0, "ramp"),
        ("random_share", 1.1, "share of random requests"),
        ("rate_iops", 0.5, "cannot be shared out"),
        ("rate_iops", -20.0, "cannot be shared out"),
        ("rate_iops", math.nan, "cannot be shared out"),
        ("rate_iops", math.inf, "cannot be shared out"),
    ],
)
def test_what_fio_would_misread_is_refused(field: str, value: object, words: str) -> None:
    with pytest.raises(DiskslaError, match=words):
        fio_arguments(changed(**{field: value}))


def test_a_share_of_reads_that_is_none_is_refused() -> None:
    with pytest.raises(DiskslaError, match="share of reads: found -1"):
        fio_arguments(changed(pattern="rw", read_share=-1.0))


# Versions.


@pytest.mark.parametrize(
    ("text", "version"),
    [("fio-3.1\n", (3, 1)), ("fio-3.33", (3, 33)), ("fio-3.41-27-g1a2b", (3, 41))],
)
def test_a_version_is_read(text: str, version: tuple[int, int]) -> None:
    assert parse_fio_version(text) == version


@given(st.text() | st.from_regex(r"fio-[0-9.]*"))
def test_any_other_version_is_refused(text: str) -> None:
    try:
        assert parse_fio_version(text) >= (3, 1)
    except DiskslaError as error:
        assert "expected" in str(error)  # noqa: PT017 -- either is right


# What fio printed.


def test_workers_of_a_group_are_one_result() -> None:
    result = parse_fio(READS)
    assert result.version == "fio-3.33"
    assert (result.read.requests, result.read.bytes, result.read.runtime_s) == (100, 409600, 1.001)
    assert result.read.iops == pytest.approx(99.9001, abs=1e-4)
    assert result.read.bytes_per_second == pytest.approx(409190, abs=1)
    assert sum(one.requests for one in result.read.bins) == 100
    nothing = DirectionResult(0, 0, 0.0, 0.0, 0.0, None)
    assert result.write == nothing


def test_workers_that_are_told_apart_are_added_up() -> None:
    jobs = json.loads(MIXED)["jobs"]
    assert len(jobs) == 3
    result = parse_fio(MIXED)
    for way, measured in (("read", result.read), ("write", result.write)):
        assert measured.requests == sum(job[way]["total_ios"] for job in jobs)
        assert measured.iops == pytest.approx(sum(job[way]["iops"] for job in jobs), rel=0.01)
        means = [job[way]["clat_ns"]["mean"] / 1e9 for job in jobs]
        assert measured.mean_latency_s is not None
        assert min(means) <= measured.mean_latency_s <= max(means)
        assert measured.bins == ()


def test_a_job_that_failed_is_a_failure() -> None:
    with pytest.raises(FioError, match=r"error 22 \(EINVAL\); fio: a hint") as caught:
        parse_fio(f"fio: a hint\n{GONE}")
    assert caught.value.reason == "error"


def test_an_error_that_no_kernel_knows_is_named() -> None:
    with pytest.raises(FioError, match=r"error 4711 \(no error that the kernel knows\)"):
        parse_fio(READS.replace('"error" : 0', '"error" : 4711'))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ENODEV", "unplugged"),
        ("ENXIO", "unplugged"),
        ("ENOSPC", "no_space"),
        ("EDQUOT", "no_space"),
        ("EROFS", "read_only"),
        ("EACCES", "permission"),
        ("EPERM", "permission"),
        ("EIO", "error"),
    ],
)
def test_errors_of_the_kernel_are_sorted(name: str, reason: str) -> None:
    code = getattr(errno, name)
    with pytest.raises(FioError, match=f"error {code} \\({name}\\)") as caught:
        parse_fio(READS.replace('"error" : 0', f'"error" : {code}'))
    assert caught.value.reason == reason


def test_notes_around_the_document_are_kept() -> None:
    text = f"note: both iodepth >= 1\n\n{READS}\nfio: the end\n"
    assert parse_fio(text).notes == ("note: both iodepth >= 1", "fio: the end")
    assert msgspec.structs.replace(parse_fio(text), notes=()) == parse_fio(READS)


def test_documents_written_anew_are_read() -> None:
    for text in (json.dumps(json.loads(READS)), READS.replace("\n", "\r\n")):
        assert parse_fio(text) == parse_fio(READS)


def test_numbers_that_c_cannot_print_are_absent() -> None:
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
    ("edit", "words"),
    [
        (lambda whole: whole.update({"fio version": "fio-2.99"}), r"expected fio 3\.1"),
        (lambda whole: whole.update(jobs=[]), "0 jobs"),
        (lambda whole: whole["jobs"].append({**whole["jobs"][0], "groupid": 1}), "2 jobs"),
        (lambda whole: whole["jobs"][0]["read"].update(total_ios=801), "801 requests, but 4096"),
        (lambda whole: whole["jobs"][0]["read"].update(runtime=0), "in no time"),
        (lambda whole: whole["jobs"][0]["read"].update(total_ios=-1), "not the JSON of fio"),
        (lambda whole: whole["jobs"][0]["read"]["clat_ns"].update(mean=1e300), "not the JSON"),
        (lambda whole: whole["jobs"][0]["read"]["clat_ns"]["bins"].update({"99": 2**40}), "only"),
        (lambda whole: whole["jobs"][0]["read"]["clat_ns"]["bins"].update({"x": 1}), "not the JS"),
    ],
)
def test_what_cannot_be_is_refused(edit: Callable[[dict[str, Any]], object], words: str) -> None:
    with pytest.raises(DiskslaError, match=words):
        parse_fio(edited(edit))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "found nothing; expected one JSON document of fio"),
        ("\n", "found nothing"),
        ("fio: no", "not the JSON of fio"),
        ("{", "1 documents begun and 0 ended"),
        ("fio: stopped\n}\n{", "1 documents begun"),
        ("fio: stopped\n}", "found fio: stopped }"),
        (READS + READS, "2 documents begun"),
        (READS[:-3], "1 documents begun and 0 ended"),
        ("\ud800", "not the JSON of fio"),
        ("[" * 100_000, "not the JSON of fio"),
        ("{\n" * 100_000, "100000 documents begun"),
    ],
)
def test_text_that_is_no_result_is_refused(text: str, words: str) -> None:
    with pytest.raises(DiskslaError, match=words):
        parse_fio(text)


def is_sound(measured: DirectionResult) -> bool:
    numbers = [measured.runtime_s, measured.iops, measured.bytes_per_second]
    numbers += [one.seconds for one in measured.bins]
    numbers += [] if measured.mean_latency_s is None else [measured.mean_latency_s]
    places = [one.seconds for one in measured.bins]
    return (
        all(math.isfinite(number) and number >= 0 for number in numbers)
        and measured.requests >= 0
        and (measured.mean_latency_s is None) == (measured.requests == 0)
        and measured.bytes >= 512 * measured.requests
        and measured.bytes >= 512 * sum(one.requests for one in measured.bins)
        and all(one.requests > 0 for one in measured.bins)
        and places == sorted(set(places))
    )


def holds(text: str) -> None:
    """Any text is a result that can be believed, or a refusal with words."""
    try:
        result = parse_fio(text)
    except DiskslaError as error:
        assert str(error)  # noqa: PT017 -- either is right
        return
    assert isinstance(result, FioResult)
    assert is_sound(result.read)
    assert is_sound(result.write)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.text())
def test_any_text_is_a_result_or_a_refusal(text: str) -> None:
    holds(text)


@given(JSON)
def test_any_json_is_a_result_or_a_refusal(value: object) -> None:
    holds(json.dumps(value))
    holds(json.dumps(value, indent=2))


@given(st.sampled_from(REAL), st.integers(0, 10**5), st.integers(0, 40), st.text(max_size=10))
def test_any_damage_to_text_is_a_result_or_a_refusal(
    text: str, at: int, length: int, new: str
) -> None:
    at %= len(text)
    holds(text[:at] + new + text[at + length :])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(p for key, one in inner for p in places(one, (*path, key)))]


PLACES = [(text, path) for text in REAL for path in places(json.loads(text)) if path]
NUMBERS = st.integers() | st.floats() | st.sampled_from([2**63 - 1, 2**63, 1e308, -1, 0])


@given(st.sampled_from(PLACES), JSON | NUMBERS)
def test_any_change_of_a_real_document_is_a_result_or_a_refusal(
    place: tuple[str, tuple[Any, ...]], new: object
) -> None:
    text, path = place
    document = json.loads(text)
    at = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    holds(json.dumps(document, indent=1))


@given(
    st.sampled_from([READS, MIXED]),
    st.dictionaries(
        st.sampled_from(["total_ios", "io_bytes", "runtime"]), st.integers(0, 2**63 - 1)
    ),
    st.dictionaries(st.integers(0, 10**16).map(str), st.integers(0, 2**64)),
)
def test_any_numbers_are_a_result_or_a_refusal(
    text: str, numbers: dict[str, int], bins: dict[str, int]
) -> None:
    document = json.loads(text)
    document["jobs"][0]["read"].update(numbers)
    document["jobs"][0]["read"]["clat_ns"]["bins"] = bins
    holds(json.dumps(document))
