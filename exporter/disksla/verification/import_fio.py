"""Parse fio results in JSON that were made elsewhere: their loads, with options and measurements.

Source: https://fio.readthedocs.io/en/latest/fio_doc.html, JSON output of fio 3.1 and later.
"""

import re
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from disksla.errors import DiskslaError
from disksla.fio import DirectionResult, FioError, FioResult, Pattern, parse_fio
from disksla.verification.measurement import (
    NOTHING,
    SHOWN_SHARES,
    Measurement,
    Percentile,
    at_the_same_time,
    mean_request_bytes,
    percentiles_of,
)

_DOCUMENT = re.compile(r"^\{\s*$.*?^\}\s*$", re.MULTILINE | re.DOTALL)
"""fio prints the outer braces alone on their lines and indents everything else."""
_NO_NUMBER = re.compile(r"(:\s*)[+-]?(?:nan|inf)\b")
"""What fio prints for undefined values; JSON does not allow it."""
_SIZE = re.compile(r"(\d{1,15})(?:b|([kmg])(ib|[ib])?)?", re.IGNORECASE | re.ASCII)
PATTERNS: dict[str, Pattern] = {
    "read": "read",
    "write": "write",
    "randread": "randread",
    "randwrite": "randwrite",
    "rw": "rw",
    "readwrite": "rw",
    "randrw": "randrw",
}
"""Values of fio's option `rw`."""
_SYNCHRONOUS = {"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"}
_DEFAULT_ENGINE = "psync"
_MIXED_SIZES = {"bssplit", "bsrange", "blocksize_range", "bs_unaligned", "blocksize_unaligned"}
_LARGEST = 2**63
_EXPONENTS = {"k": 1, "m": 2, "g": 3}
_OFF = {"0", "false"}

_Options = dict[str, str]


class _Job(msgspec.Struct, frozen=True):
    """What identifies a job and its clones."""

    jobname: str
    groupid: int
    options: _Options = msgspec.field(name="job options", default_factory=dict)


class _Document(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="fio version")
    jobs: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]
    global_options: _Options = msgspec.field(name="global options", default_factory=dict)


def parse_fio_jobs(text: str) -> tuple[Measurement, ...]:
    """Return a measurement for each load in the results of one or several runs of fio.

    Clones of a job, and jobs that ran at the same time, are one load. Raise DiskslaError if the
    text is not a result, or a job failed or its requests are unknown.
    """
    bodies = _DOCUMENT.findall(text) or [text[text.find("{") : text.rfind("}") + 1]]
    return tuple(load for body in bodies for load in _loads(_decode(body)))


def depth_of(engine: str, queue_depth: int) -> int:
    """Return the requests in flight of one job: synchronous engines ignore `iodepth`."""
    return 1 if engine in _SYNCHRONOUS else queue_depth


def _decode(body: str) -> _Document:
    try:
        return msgspec.json.decode(_NO_NUMBER.sub(r"\1null", body), type=_Document)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise DiskslaError(f"invalid JSON of fio: {error}") from None


def _loads(document: _Document) -> list[Measurement]:
    """Return the loads: `stonewall` starts a new one, `new_group` only a new group."""
    jobs = _jobs(document)
    loads = [[_measurement(document.version, *jobs[0])]]
    for (earlier, _), (later, entries) in pairwise(jobs):
        measurement = _measurement(document.version, later, entries)
        options = later.options
        is_new_load = "stonewall" in options or "new_group" not in options
        if earlier.groupid == later.groupid or not is_new_load:
            loads[-1].append(measurement)
        else:
            loads.append([measurement])
    return [at_the_same_time(load) for load in loads]


def _jobs(document: _Document) -> list[tuple[_Job, list[dict[str, Any]]]]:
    """Return each job with its entries: without group_reporting every clone has one."""
    jobs: list[tuple[_Job, list[dict[str, Any]]]] = []
    for raw in document.jobs:
        try:
            job = msgspec.convert(raw, _Job)
        except msgspec.ValidationError as error:
            raise DiskslaError(f"invalid JSON of fio: {error}") from None
        job = msgspec.structs.replace(job, options=document.global_options | job.options)
        if jobs and jobs[-1][0] == job:
            jobs[-1][1].append(raw)
        else:
            jobs.append((job, [raw]))
    return jobs


def _measurement(version: str, job: _Job, entries: list[dict[str, Any]]) -> Measurement:
    options, name = job.options, job.jobname
    pattern = PATTERNS.get(_first(_option(options, "rw", "readwrite", default="read")))
    if pattern is None or not options:
        raise DiskslaError(f"job '{name}': its requests are unknown; expected option rw")
    workers = _count(name, options, "numjobs", 1)
    if len(entries) not in {1, workers}:
        raise DiskslaError(
            f"job '{name}': found {len(entries)} results; expected 1 or {workers}, one per clone"
        )
    result = _result(version, entries)
    direction = _direction(pattern)
    # Reads of a job that writes are those of `verify`, at another time.
    read = NOTHING if direction == "write" else _with_latency(result.read)
    write = NOTHING if direction == "read" else _with_latency(result.write)
    measured = write if direction == "write" else read
    depth = depth_of(
        _option(options, "ioengine", default=_DEFAULT_ENGINE), _count(name, options, "iodepth", 1)
    )
    return Measurement(
        name=name,
        tool=result.version,
        pattern=pattern,
        request_bytes=_request_bytes(job, pattern, read, write),
        inflight=workers * depth,
        read=read,
        write=write,
        percentiles=()
        if direction is None
        else percentiles_of(measured.bins) or _percentiles(entries, direction),
        rate_iops=_rate_iops(job, direction, workers),
        is_direct=_is_direct(options),
        targets=devices_in(options.get("filename", "")),
    )


def _direction(pattern: Pattern) -> str | None:
    """Return the only direction of a pattern; None for a mix."""
    return {"randread": "read", "read": "read", "randwrite": "write", "write": "write"}.get(
        pattern
    )


def _with_latency(result: DirectionResult) -> DirectionResult:
    """Return a result without the latency of 0 that fio prints if it did not measure it."""
    return msgspec.structs.replace(result, mean_latency_s=result.mean_latency_s or None)


def devices_in(filename: str) -> tuple[str, ...]:
    """Return the devices in a value of fio's option `filename`, in which colons separate names."""
    names = re.split(r"(?<!\\):", filename)
    return tuple(sorted({name for name in names if name.startswith("/dev/")}))


def _request_bytes(
    job: _Job, pattern: Pattern, read: DirectionResult, write: DirectionResult
) -> int:
    """Return the size of the requests; their mean if they have several sizes."""
    text = _option(job.options, "bs", "blocksize", default="4k")
    sizes = [_size(job, _part(text, direction)) for direction in ("read", "write")]
    direction = _direction(pattern)
    if _MIXED_SIZES & job.options.keys() or (direction is None and sizes[0] != sizes[1]):
        return mean_request_bytes(read, write)
    return sizes[1] if direction == "write" else sizes[0]


def _rate_iops(job: _Job, direction: str | None, workers: int) -> float | None:
    """Return the requested rate of all clones, and of both directions of a mix."""
    text = job.options.get("rate_iops")
    if text is None:
        return None
    directions = ("read", "write") if direction is None else (direction,)
    return float(sum(_size(job, _part(text, each)) for each in directions)) * workers


def _result(version: str, entries: list[dict[str, Any]]) -> FioResult:
    """Parse the entries of one job as the result of a run of only this job."""
    document = {"fio version": version, "jobs": [entry | {"groupid": 0} for entry in entries]}
    try:
        return parse_fio(msgspec.json.encode(document).decode())
    except FioError as failure:
        raise DiskslaError(str(failure)) from None


def _percentiles(entries: list[dict[str, Any]], direction: str) -> tuple[Percentile, ...]:
    """Return the percentiles that fio computed; those of several clones cannot be combined."""
    known = entries[0][direction]["clat_ns"].get("percentile") if len(entries) == 1 else None
    if not isinstance(known, dict):
        return ()
    found = ((share, known.get(f"{100 * share:.6f}")) for share in SHOWN_SHARES)
    return tuple(
        Percentile(share, value / 1e9)
        for share, value in found
        if isinstance(value, int) and 0 <= value < _LARGEST
    )


def _is_direct(options: _Options) -> bool:
    if "buffered" in options:
        return options["buffered"] in _OFF
    return options.get("direct", "0") not in _OFF


def _option(options: _Options, *names: str, default: str) -> str:
    return next((options[name] for name in names if name in options), default)


def _count(name: str, options: _Options, option: str, default: int) -> int:
    text = options.get(option, str(default))
    if re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII) is None:
        raise DiskslaError(f"job '{name}': found {option}='{text[:40]}'; expected a number")
    return int(text)


def _size(job: _Job, text: str) -> int:
    """Parse a size or a number as fio does.

    With its default, `kb_base=1024`, 4k, 4kb and 4Ki are 4096 and 4KiB is 4000: for compatibility
    with old scripts. With `kb_base=1000` it is the other way round.
    """
    found = _SIZE.fullmatch(_first(text))
    if found is None or not int(found[1]):
        raise DiskslaError(f"job '{job.jobname}': found '{text[:40]}'; expected a size such as 4k")
    prefix, suffix = (found[2] or "").lower(), (found[3] or "").lower()
    is_decimal = (suffix == "ib") != (job.options.get("kb_base") == "1000")
    factor: int = (1000 if is_decimal else 1024) ** _EXPONENTS.get(prefix, 0)
    return int(found[1]) * factor


def _part(text: str, direction: str) -> str:
    """Return the part of `100,50` for reads or writes; a single number is for both."""
    parts = text.split(",")
    return parts[1] if direction == "write" and len(parts) > 1 and parts[1] else parts[0]


def _first(text: str) -> str:
    """Return the text before a comma or colon, as in bs=4k,4k and rw=randread:8."""
    return re.split("[,:]", text.strip())[0]
