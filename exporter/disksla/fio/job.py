"""What fio is asked to do, and what it says it did.

Values in, values out: a job becomes words of a command line, and fio's JSON becomes a result or a
refusal. Running it is `runtime/fio.py`.

Source: https://fio.readthedocs.io/en/latest/fio_doc.html, of fio 3.1 and later.
"""

from typing import Literal

import msgspec

from disksla.errors import DiskslaError

Pattern = Literal["read", "write", "randread", "randwrite", "rw", "randrw"]
"""As fio's `rw` has it."""

SECTOR_BYTES = 512
"""No request of direct I/O is smaller."""

_AT_RANDOM: dict[Pattern, Pattern] = {"read": "randread", "write": "randwrite", "rw": "randrw"}
_MIXED = {"rw", "randrw"}
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
        raise DiskslaError(
            f"{target!r} is no target for fio; expected the absolute path of a device"
        )
    if "\\" in target:
        raise DiskslaError(f"{target!r} cannot be told to fio, because of the backslash")
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
        raise DiskslaError(
            f"{job.span_bytes} bytes are too few for requests of {job.request_bytes}"
        )
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
        raise DiskslaError(
            f"{rate_iops:g} requests per second cannot be shared out: fio wants at least 1 for"
            f" each worker and direction, and there are {job.workers * len(shares)}"
        )
    return rates


def _whole(value: int, what: str) -> int:
    if value < 1:
        raise DiskslaError(f"{what}: found {value}; expected at least 1")
    return value


def _percent(share: float, what: str) -> int:
    if not 0 <= share <= 1:
        raise DiskslaError(f"{what}: found {share}; expected 0 to 1")
    return round(100 * share)


def _milliseconds(seconds: float, what: str) -> int:
    if not 0.001 <= seconds < 1e6:  # noqa: PLR2004 -- one millisecond, and a dozen days
        raise DiskslaError(f"{what}: found {seconds} s; expected at least a millisecond")
    return round(1000 * seconds)
