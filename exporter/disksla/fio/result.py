"""What fio is asked to do, and what it says it did.

Values in, values out: a job becomes words of a command line, and fio's JSON becomes a result or a
refusal. Running it is `runtime/fio.py`.

Source: https://fio.readthedocs.io/en/latest/fio_doc.html, of fio 3.1 and later.
"""

import bisect
import errno
import itertools
import re
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from disksla.errors import DiskslaError
from disksla.fio.job import SECTOR_BYTES

FailureReason = Literal[
    "timeout", "unplugged", "no_space", "read_only", "permission", "bad_output", "stopped", "error"
]

LEAST_VERSION = (3, 1)
"""The first whose latency bins stand in nanoseconds, and which is in no distribution older."""
_LONGEST_SHOWN = 300


class LatencyBin(msgspec.Struct, frozen=True):
    """Requests whose completion latency was about the same."""

    seconds: float
    """Middle of the bin; fio's are narrower than 1/64 of their latency."""
    requests: int


def quantile_s(bins: tuple[LatencyBin, ...], share: float) -> float:
    """Give the latency within which at least `share` of the requests were answered.

    There has to be one; it is as exact as fio's bins are narrow.
    """
    reached = list(itertools.accumulate(one.requests for one in bins))
    return bins[bisect.bisect_left(reached, share * reached[-1])].seconds


class DirectionResult(msgspec.Struct, frozen=True):
    """What was done in one direction."""

    requests: int
    bytes: int
    runtime_s: float
    iops: float
    bytes_per_second: float
    mean_latency_s: float | None
    """Completion latency; None where nothing completed."""
    bins: tuple[LatencyBin, ...] = ()
    """In order; none if fio was not asked for JSON+."""


class FioResult(msgspec.Struct, frozen=True):
    """What one run did, all workers together."""

    version: str
    read: DirectionResult
    write: DirectionResult
    notes: tuple[str, ...] = ()
    """Lines that fio printed around its JSON, such as warnings; a person may want them."""


class FioError(DiskslaError):
    """A run that gave no result; the text says what happened, and `reason` sorts it."""

    def __init__(self, reason: FailureReason, words: str) -> None:
        """Take the reason for machines and the words for people."""
        super().__init__(words)
        self.reason: FailureReason = reason


def parse_fio_version(text: str) -> tuple[int, int]:
    """Read what `fio --version` prints, such as fio-3.33 or fio-3.1-12-gabcdef.

    Raises Refusal if it is something else, or too old.
    """
    found = re.match(r"fio-(\d{1,4})\.(\d{1,4})(?!\d)", text.strip())
    if found is None:
        raise DiskslaError(f"found {_shown(text)}; expected a version of fio, such as fio-3.33")
    version = int(found[1]), int(found[2])
    if version < LEAST_VERSION:
        raise DiskslaError(f"found {_shown(text)}; expected fio 3.1 or newer")
    return version


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_FARTHEST_NS = 10**15
"""A dozen days: no request takes as long."""


class _Latency(msgspec.Struct, frozen=True):
    mean: Annotated[float, msgspec.Meta(ge=0, le=_FARTHEST_NS)] | None
    bins: dict[Annotated[int, msgspec.Meta(ge=0, le=_FARTHEST_NS)], _Count] = {}


class _Direction(msgspec.Struct, frozen=True):
    total_ios: _Count
    io_bytes: _Count
    runtime: Annotated[int, msgspec.Meta(ge=0, le=_FARTHEST_NS)]
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


_NO_NUMBER = re.compile(r'^([ \t]*"[^"\n]*" : )[+-]?(?:nan|inf)(,?)$', re.MULTILINE)
"""What C prints for the spread of too few values; such a value is absent."""


def parse_fio(text: str) -> FioResult:
    """Read what fio printed on its standard output: one JSON document, perhaps with notes around.

    Jobs of one group are added up. Raises Refusal for anything else, and FioFailure if fio says
    that a job failed.
    """
    body, notes = _document(text)
    try:
        document = msgspec.json.decode(body, type=_Document)
        parse_fio_version(document.version)
        jobs = msgspec.json.decode(document.jobs, type=tuple[_Job, ...])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise DiskslaError(f"not the JSON of fio: {error}") from error
    for job in jobs:
        if job.error:
            words = [f"fio: {_error_words(job.error)}", *notes]
            raise FioError(reason_of(job.error), _shown("; ".join(words)))
    if len({job.groupid for job in jobs}) != 1:
        raise DiskslaError(
            f"not the result of one measurement: {len(jobs)} jobs that did not run together;"
            " expected one job, or one group of jobs"
        )
    return FioResult(
        version=document.version,
        read=_added([job.read for job in jobs]),
        write=_added([job.write for job in jobs]),
        notes=notes,
    )


def reason_of(error: int) -> FailureReason:
    """Sort an error number of the kernel; EIO is an `error`, whoever knows more may say more."""
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


def _error_words(error: int) -> str:
    return f"error {error} ({errno.errorcode.get(error, 'no error that the kernel knows')})"


def _document(text: str) -> tuple[str, tuple[str, ...]]:
    """Split what was printed into the document and the other lines that say something.

    fio writes the outer braces alone on their lines, and nothing else at the margin; without
    such lines, others may have written the whole anew.
    """
    lines = [line.rstrip("\r") for line in text.split("\n")]
    begins = [number for number, line in enumerate(lines) if line == "{"]
    ends = [number for number, line in enumerate(lines) if line == "}"]
    if not begins and not ends and text.strip():
        return text, ()
    if len(begins) != 1 or len(ends) != 1 or begins > ends:
        what = f"{len(begins)} documents begun and {len(ends)} ended" if begins else _shown(text)
        raise DiskslaError(f"found {what}; expected one JSON document of fio")
    [begin], [end] = begins, ends
    body = "\n".join(lines[begin : end + 1])
    notes = [_shown(line) for line in lines[:begin] + lines[end + 1 :] if line.strip()]
    return _NO_NUMBER.sub(r"\1null\2", body), tuple(notes)


def _added(directions: Iterable[_Direction]) -> DirectionResult:
    """Add up what ran at the same time; rates are reckoned from what was done.

    fio counts up to a queue's depth too few requests when there was a ramp; so bins may hold a
    few more.
    """
    requests = total_bytes = runtime_ms = 0
    waited_s = 0.0
    bins: Counter[int] = Counter()
    for one in directions:
        requests += one.total_ios
        total_bytes += one.io_bytes
        runtime_ms = max(runtime_ms, one.runtime)
        waited_s += one.total_ios * (one.clat_ns.mean or 0) / 1e9
        bins.update(one.clat_ns.bins)
    counted = max(requests, bins.total())
    if counted * SECTOR_BYTES > total_bytes:
        raise DiskslaError(f"fio counts {counted} requests, but {total_bytes} bytes only")
    if total_bytes and not runtime_ms:
        raise DiskslaError(f"fio counts {requests} requests and {total_bytes} bytes in no time")
    runtime_s = runtime_ms / 1000
    return DirectionResult(
        requests=requests,
        bytes=total_bytes,
        runtime_s=runtime_s,
        iops=requests / runtime_s if requests else 0.0,
        bytes_per_second=total_bytes / runtime_s if total_bytes else 0.0,
        mean_latency_s=waited_s / requests if requests else None,
        bins=tuple(LatencyBin(key / 1e9, bins[key]) for key in sorted(bins) if bins[key]),
    )


def _shown(text: str) -> str:
    """Give one short line that can be printed, whatever was found."""
    line = " ".join(text.split())[:_LONGEST_SHOWN]
    return "".join(c if c.isprintable() else "?" for c in line) or "nothing"
