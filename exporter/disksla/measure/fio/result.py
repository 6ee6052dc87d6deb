"""The result of a fio run, parsed from its JSON output.

Format of https://fio.readthedocs.io/en/latest/fio_doc.html, for fio 3.1 and later.
"""

import errno
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.histogram import LatencyBin
from disksla.measure.fio.job import SECTOR_BYTES
from disksla.state.pipeline import FioFailure

MIN_VERSION = (3, 1)
"""The first version that reports latency bins in nanoseconds; no distribution has an older one."""
_MAX_SHOWN = 300


class DirectionResult(msgspec.Struct, frozen=True):
    """What was read, or what was written."""

    requests: int
    bytes: int
    runtime_s: float
    iops: float
    bytes_per_second: float
    mean_latency_s: float | None
    """Completion latency; None if no request completed."""
    bins: tuple[LatencyBin, ...] = ()
    """By increasing latency; empty if the output format was not JSON+."""


NOTHING = DirectionResult(
    requests=0, bytes=0, runtime_s=0.0, iops=0.0, bytes_per_second=0.0, mean_latency_s=None
)
"""The result of a direction without requests."""


def done_within(
    requests: int,
    transferred_bytes: int,
    runtime_s: float,
    mean_latency_s: float | None,
    bins: tuple[LatencyBin, ...] = (),
) -> DirectionResult:
    """Return what was done in a time, with its rates; the time is above 0 if there is anything."""
    return DirectionResult(
        requests=requests,
        bytes=transferred_bytes,
        runtime_s=runtime_s,
        iops=requests / runtime_s if requests else 0.0,
        bytes_per_second=transferred_bytes / runtime_s if transferred_bytes else 0.0,
        mean_latency_s=mean_latency_s,
        bins=bins,
    )


def total_result(results: Sequence[DirectionResult]) -> DirectionResult:
    """Return what was done together by loads that ran at the same time.

    The latency is the mean of all requests; None if that of some is unknown.
    """
    used = [result for result in results if result.requests or result.bytes]
    if len(used) <= 1:
        return used[0] if used else max(results, key=lambda result: result.runtime_s)
    requests = sum(result.requests for result in used)
    latencies_s = [
        result.mean_latency_s * result.requests
        for result in used
        if result.mean_latency_s is not None
    ]
    return done_within(
        requests,
        sum(result.bytes for result in used),
        max(result.runtime_s for result in used),
        sum(latencies_s) / requests if len(latencies_s) == len(used) and requests else None,
    )


class FioResult(msgspec.Struct, frozen=True):
    """The result of one run, all workers together."""

    version: str
    read: DirectionResult
    write: DirectionResult


class FioError(DiskslaError):
    """A run without a result: the message describes what happened, `reason` classifies it."""

    def __init__(self, reason: FioFailure, message: str) -> None:
        """Set the reason, which is the label of a metric, and the message."""
        super().__init__(message)
        self.reason: FioFailure = reason


def parse_fio_version(text: str) -> tuple[int, int]:
    """Parse the output of `fio --version`, such as fio-3.33 or fio-3.1-12-gabcdef.

    Raise DiskslaError if it is not a version, or too old.
    """
    found = re.match(r"fio-(\d{1,4})\.(\d{1,4})(?!\d)", text.strip())
    if found is None:
        raise DiskslaError(
            f"found {_printable(text)}; expected a version of fio, such as fio-3.33"
        )
    version = int(found[1]), int(found[2])
    if version < MIN_VERSION:
        raise DiskslaError(f"found {_printable(text)}; expected fio 3.1 or newer")
    return version


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_MAX_NS = 10**15
"""Twelve days: no request takes that long."""


class _Latency(msgspec.Struct, frozen=True):
    mean: Annotated[float, msgspec.Meta(ge=0, le=_MAX_NS)] | None
    bins: dict[Annotated[int, msgspec.Meta(ge=0, le=_MAX_NS)], _Count] = {}


class _Direction(msgspec.Struct, frozen=True):
    total_ios: _Count
    io_bytes: _Count
    runtime: Annotated[int, msgspec.Meta(ge=0, le=_MAX_NS)]
    clat_ns: _Latency


class _Job(msgspec.Struct, frozen=True):
    error: int
    groupid: int
    read: _Direction
    write: _Direction
    jobname: str = ""


class _Document(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="fio version")
    jobs: msgspec.Raw


_NOT_A_NUMBER = re.compile(r'^([ \t]*"[^"\n]*" : )[+-]?(?:nan|inf)(,?)$', re.MULTILINE)
"""What C prints for the deviation of too few values; the value is treated as absent."""


def parse_fio(text: str) -> FioResult:
    """Parse the standard output of fio: one JSON document, with optional lines around it.

    The jobs of one group are added up. Raise FioError if fio reports that a job failed, and
    DiskslaError for anything that is not a result of fio.
    """
    body, notes = _split_document(text)
    try:
        document = msgspec.json.decode(body, type=_Document)
        parse_fio_version(document.version)
        jobs = msgspec.json.decode(document.jobs, type=tuple[_Job, ...])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise DiskslaError(f"not valid fio JSON: {error}") from error
    for job in jobs:
        if job.error:
            reason = reason_of(job.error)
            hints = ["run this as root"] if reason == "permission" else []
            name = errno.errorcode.get(job.error, "unknown error number")
            messages = [f"fio: error {job.error} ({name})", *notes, *hints]
            raise FioError(reason, _printable("; ".join(messages)))
    if len({job.groupid for job in jobs}) != 1:
        raise DiskslaError(
            f"not the result of one measurement: found {len(jobs)} jobs that did not run together;"
            " expected one job, or one group of jobs"
        )
    return FioResult(
        document.version, _sum(job.read for job in jobs), _sum(job.write for job in jobs)
    )


def reason_of(error: int) -> FioFailure:
    """Classify an error number of the kernel; EIO is `error`, whatever caused it."""
    match error:
        case errno.ENODEV | errno.ENXIO:
            return "unplugged"
        case errno.ENOSPC | errno.EDQUOT:
            return "no_space"
        case errno.EROFS:
            return "read_only"
        case errno.EACCES | errno.EPERM:
            return "permission"
        case _:
            return "error"


def _split_document(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the JSON document and the other lines that are not empty.

    fio prints the outer braces alone on their lines and indents everything else. Text without
    such lines may have been reformatted by another program; then all of it is the document.
    """
    lines = [line.rstrip("\r") for line in text.split("\n")]
    starts = [number for number, line in enumerate(lines) if line == "{"]
    ends = [number for number, line in enumerate(lines) if line == "}"]
    if not starts and not ends and text.strip():
        return text, ()
    if len(starts) != 1 or len(ends) != 1 or starts > ends:
        found = _printable(text)
        if starts:
            found = f"{len(starts)} opening and {len(ends)} closing braces without indentation"
        raise DiskslaError(f"found {found}; expected one JSON document of fio")
    [start], [end] = starts, ends
    body = "\n".join(lines[start : end + 1])
    notes = [_printable(line) for line in lines[:start] + lines[end + 1 :] if line.strip()]
    return _NOT_A_NUMBER.sub(r"\1null\2", body), tuple(notes)


def _sum(directions: Iterable[_Direction]) -> DirectionResult:
    """Add up the jobs that ran at the same time, and compute the rates from the sums.

    After a ramp, fio counts up to one queue depth of requests too few, so the bins may contain a
    few more.
    """
    requests = total_bytes = runtime_ms = 0
    total_latency_s = 0.0
    bins: Counter[int] = Counter()
    for one in directions:
        requests += one.total_ios
        total_bytes += one.io_bytes
        runtime_ms = max(runtime_ms, one.runtime)
        total_latency_s += one.total_ios * (one.clat_ns.mean or 0) / 1e9
        bins.update(one.clat_ns.bins)
    counted = max(requests, bins.total())
    if counted * SECTOR_BYTES > total_bytes:
        raise DiskslaError(f"fio counts {counted} requests, but only {total_bytes} bytes")
    if total_bytes and not runtime_ms:
        raise DiskslaError(f"fio counts {requests} requests and {total_bytes} bytes in 0 ms")
    mean_latency_s = total_latency_s / requests if requests else None
    counts = tuple(LatencyBin(key / 1e9, bins[key]) for key in sorted(bins) if bins[key])
    return done_within(requests, total_bytes, runtime_ms / 1000, mean_latency_s, counts)


def _printable(text: str) -> str:
    """Return one short line without control characters."""
    line = " ".join(text.split())[:_MAX_SHOWN]
    return "".join(c if c.isprintable() else "?" for c in line) or "nothing"
