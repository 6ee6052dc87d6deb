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

from disksla.core.refusal import Refusal

Pattern = Literal["read", "write", "randread", "randwrite", "rw", "randrw"]
"""As fio's `rw` has it."""

FailureReason = Literal[
    "timeout", "unplugged", "no_space", "read_only", "permission", "garbage", "stopped", "error"
]

LEAST_VERSION = (3, 1)
"""The first whose latency bins stand in nanoseconds, and which is in no distribution older."""

SECTOR_BYTES = 512
"""No request of direct I/O is smaller."""

_AT_RANDOM: dict[Pattern, Pattern] = {"read": "randread", "write": "randwrite", "rw": "randrw"}
_MIXED = {"rw", "randrw"}
_LONGEST_SHOWN = 300
_MOST_IOPS = 1e9


class FioJob(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one target."""

    name: str
    target: str
    """Absolute path of a block device, or of a file of our own."""
    pattern: Pattern
    request_bytes: int
    runtime_s: float
    queue_depth: int = 1
    """Requests in flight of each worker."""
    workers: int = 1
    rate_iops: float | None = None
    """Requests per second of all workers together, reads and writes; None for as many as go."""
    read_share: float | None = None
    """Of mixed patterns; fio's own half and half unless given."""
    random_share: float | None = None
    """Of requests at random places, where some are sequential; None for what the pattern says."""
    offset_bytes: int = 0
    """Where the region begins."""
    span_bytes: int | None = None
    """Length of the region; None for all that follows."""
    ramp_s: float = 0.0
    """Run before anything is measured."""

    @property
    def writes(self) -> bool:
        """Whether this writes to the target."""
        return self.pattern not in {"read", "randread"}

    @property
    def is_random(self) -> bool:
        """Whether any request goes to a random place."""
        return self.random_share is not None or self.pattern not in _AT_RANDOM


class Bin(msgspec.Struct, frozen=True):
    """Requests whose completion latency was about the same."""

    seconds: float
    """Middle of the bin; fio's are narrower than 1/64 of their latency."""
    requests: int


def quantile_s(bins: tuple[Bin, ...], share: float) -> float:
    """Give the latency within which at least `share` of the requests were answered.

    There has to be one; it is as exact as fio's bins are narrow.
    """
    reached = list(itertools.accumulate(one.requests for one in bins))
    return bins[bisect.bisect_left(reached, share * reached[-1])].seconds


class Measured(msgspec.Struct, frozen=True):
    """What was done in one direction."""

    requests: int
    bytes: int
    runtime_s: float
    iops: float
    bytes_per_second: float
    mean_latency_s: float | None
    """Completion latency; None where nothing completed."""
    bins: tuple[Bin, ...] = ()
    """In order; none if fio was not asked for JSON+."""


class FioResult(msgspec.Struct, frozen=True):
    """What one run did, all workers together."""

    version: str
    read: Measured
    write: Measured
    notes: tuple[str, ...] = ()
    """Lines that fio printed around its JSON, such as warnings; a person may want them."""


class FioFailure(Refusal):
    """A run that gave no result; the text says what happened, and `reason` sorts it."""

    def __init__(self, reason: FailureReason, words: str) -> None:
        """Take the reason for machines and the words for people."""
        super().__init__(words)
        self.reason: FailureReason = reason


def fio_arguments(job: FioJob) -> tuple[str, ...]:
    """Give the options of the command line, without the program itself.

    Raises Refusal for a job that fio would misread, or could only do differently.
    """
    return (
        f"--name={job.name}",
        f"--filename={_filename(job.target)}",
        *([] if job.writes else ["--readonly"]),
        # What is gone by now must not become a file in /dev; nor may a mounted disk be written.
        "--allow_file_create=0",
        "--allow_mounted_write=0",
        f"--rw={_AT_RANDOM.get(job.pattern, job.pattern) if job.is_random else job.pattern}",
        *_mixture(job),
        f"--bs={_whole(job.request_bytes, 'request size')}",
        *_region(job),
        "--direct=1",
        "--ioengine=libaio",
        f"--iodepth={_whole(job.queue_depth, 'queue depth')}",
        f"--numjobs={_whole(job.workers, 'workers')}",
        # Worker processes call setsid(): they would be left when our process group is killed.
        "--thread",
        "--group_reporting",
        *_rate(job),
        "--time_based",
        f"--runtime={_milliseconds(job.runtime_s, 'runtime')}ms",
        *([f"--ramp_time={_milliseconds(job.ramp_s, 'ramp')}ms"] if job.ramp_s else []),
        # The default empties the page cache first, which on a device (BLKFLSBUF) writes back the
        # whole file system that is mounted from it: a probe would disturb what it watches.
        "--invalidate=0",
        "--disk_util=0",
        "--eta=never",
        "--output-format=json+",
    )


def _filename(target: str) -> str:
    """Escape what separates names; fio strips blanks, and versions differ over backslashes."""
    if not target.startswith("/") or target != target.strip() or not target.isprintable():
        raise Refusal(f"{target!r} is no target for fio; expected the absolute path of a device")
    if "\\" in target:
        raise Refusal(f"{target!r} cannot be told to fio, because of the backslash")
    return target.replace(":", "\\:")


def _mixture(job: FioJob) -> list[str]:
    words = []
    if job.pattern in _MIXED and job.read_share is not None:
        words.append(f"--rwmixread={_percent(job.read_share, 'share of reads')}")
    if job.random_share is not None:
        words.append(
            f"--percentage_random={_percent(job.random_share, 'share of random requests')}"
        )
    if job.is_random:
        # Other places in every run, or a cache would know them; and no map of those visited,
        # which takes memory by the size of the disk.
        words += ["--randrepeat=0", "--norandommap"]
    return words


def _region(job: FioJob) -> list[str]:
    """Give offset and size; sequential workers share a span out, lest all read the same."""
    span_bytes, words = job.span_bytes, []
    if job.offset_bytes:
        words.append(f"--offset={_whole(job.offset_bytes, 'offset')}")
    if span_bytes is None:
        return words
    if job.workers > 1 and not job.is_random:
        span_bytes = span_bytes // job.workers // job.request_bytes * job.request_bytes
        words.append(f"--offset_increment={span_bytes}")
    if span_bytes < job.request_bytes:
        raise Refusal(f"{job.span_bytes} bytes are too few for requests of {job.request_bytes}")
    return [*words, f"--size={span_bytes}"]


def _rate(job: FioJob) -> list[str]:
    if job.rate_iops is None:
        return []
    return [f"--rate_iops={','.join(map(str, _rates(job, job.rate_iops)))}"]


def _rates(job: FioJob, rate_iops: float) -> list[int]:
    """Give what fio wants: whole requests per second of one worker, for each direction."""
    shares = [1.0]
    if job.pattern in _MIXED:
        reads = 0.5 if job.read_share is None else job.read_share
        shares = [reads, 1 - reads]
    possible = 1 <= rate_iops <= _MOST_IOPS
    rates = [int(rate_iops * share / job.workers + 1e-9) for share in shares if possible]
    if not rates or min(rates) < 1:
        raise Refusal(
            f"{rate_iops:g} requests per second cannot be shared out: fio wants at least 1 for"
            f" each worker and direction, and there are {job.workers * len(shares)}"
        )
    return rates


def _whole(value: int, what: str) -> int:
    if value < 1:
        raise Refusal(f"{what}: found {value}; expected at least 1")
    return value


def _percent(share: float, what: str) -> int:
    if not 0 <= share <= 1:
        raise Refusal(f"{what}: found {share}; expected 0 to 1")
    return round(100 * share)


def _milliseconds(seconds: float, what: str) -> int:
    if not 0.001 <= seconds < 1e6:  # noqa: PLR2004 -- one millisecond, and a dozen days
        raise Refusal(f"{what}: found {seconds} s; expected at least a millisecond")
    return round(1000 * seconds)


def parse_fio_version(text: str) -> tuple[int, int]:
    """Read what `fio --version` prints, such as fio-3.33 or fio-3.1-12-gabcdef.

    Raises Refusal if it is something else, or too old.
    """
    found = re.match(r"fio-(\d{1,4})\.(\d{1,4})(?!\d)", text.strip())
    if found is None:
        raise Refusal(f"found {_shown(text)}; expected a version of fio, such as fio-3.33")
    version = int(found[1]), int(found[2])
    if version < LEAST_VERSION:
        raise Refusal(f"found {_shown(text)}; expected fio 3.1 or newer")
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
        raise Refusal(f"not the JSON of fio: {error}") from error
    for job in jobs:
        if job.error:
            words = [f"fio: {_error_words(job.error)}", *notes]
            raise FioFailure(reason_of(job.error), _shown("; ".join(words)))
    if len({job.groupid for job in jobs}) != 1:
        raise Refusal(
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
        raise Refusal(f"found {what}; expected one JSON document of fio")
    [begin], [end] = begins, ends
    body = "\n".join(lines[begin : end + 1])
    notes = [_shown(line) for line in lines[:begin] + lines[end + 1 :] if line.strip()]
    return _NO_NUMBER.sub(r"\1null\2", body), tuple(notes)


def _added(directions: Iterable[_Direction]) -> Measured:
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
        raise Refusal(f"fio counts {counted} requests, but {total_bytes} bytes only")
    if total_bytes and not runtime_ms:
        raise Refusal(f"fio counts {requests} requests and {total_bytes} bytes in no time")
    runtime_s = runtime_ms / 1000
    return Measured(
        requests=requests,
        bytes=total_bytes,
        runtime_s=runtime_s,
        iops=requests / runtime_s if requests else 0.0,
        bytes_per_second=total_bytes / runtime_s if total_bytes else 0.0,
        mean_latency_s=waited_s / requests if requests else None,
        bins=tuple(Bin(key / 1e9, bins[key]) for key in sorted(bins) if bins[key]),
    )


def _shown(text: str) -> str:
    """Give one short line that can be printed, whatever was found."""
    line = " ".join(text.split())[:_LONGEST_SHOWN]
    return "".join(c if c.isprintable() else "?" for c in line) or "nothing"
