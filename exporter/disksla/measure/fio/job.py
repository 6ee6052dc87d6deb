"""A fio job and the command line that runs it.

Options of https://fio.readthedocs.io/en/latest/fio_doc.html, for fio 3.1 and later.
"""

from typing import Literal

import msgspec

from disksla.base.errors import DiskslaError

Pattern = Literal["read", "write", "randread", "randwrite", "rw", "randrw"]
"""Values of fio's option `rw`."""

SECTOR_BYTES = 512
"""The smallest request of direct I/O."""

_RANDOM_PATTERNS: dict[Pattern, Pattern] = {
    "read": "randread",
    "write": "randwrite",
    "rw": "randrw",
}
_MIXED_PATTERNS = {"rw", "randrw"}
_MAX_IOPS = 1e9


class FioJob(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one target."""

    name: str
    target: str
    """Absolute path of a block device or of a scratch file."""
    pattern: Pattern
    request_bytes: int
    runtime_s: float
    queue_depth: int = 1
    """Requests that each worker keeps in flight."""
    workers: int = 1
    rate_iops: float | None = None
    """Requests per second of all workers together, reads and writes; None for no limit."""
    read_share: float | None = None
    """Share of reads in a mixed pattern; None for fio's default, one half."""
    random_share: float | None = None
    """Share of requests at random offsets, the others being sequential; None if the pattern says
    all or none."""
    offset_bytes: int = 0
    """Start of the region."""
    span_bytes: int | None = None
    """Length of the region; None for the rest of the target."""
    ramp_s: float = 0.0
    """Time to run before the measurement starts."""

    @property
    def writes(self) -> bool:
        """Whether the job writes to the target."""
        return self.pattern not in {"read", "randread"}

    @property
    def is_random(self) -> bool:
        """Whether any request goes to a random offset."""
        return self.random_share is not None or self.pattern not in _RANDOM_PATTERNS


def fio_arguments(job: FioJob) -> tuple[str, ...]:
    """Return the options of the command line, without the program.

    Raise DiskslaError for a job that fio would misread or can only run differently.
    """
    return (
        f"--name={job.name}",
        f"--filename={_filename(job.target)}",
        *([] if job.writes else ["--readonly"]),
        # A removed device must not be created as a file in /dev, and a mounted device must not
        # be written.
        "--allow_file_create=0",
        "--allow_mounted_write=0",
        f"--rw={_RANDOM_PATTERNS.get(job.pattern, job.pattern) if job.is_random else job.pattern}",
        *_mixture(job),
        f"--bs={_positive(job.request_bytes, 'request size')}",
        *_region(job),
        "--direct=1",
        "--ioengine=libaio",
        f"--iodepth={_positive(job.queue_depth, 'queue depth')}",
        f"--numjobs={_positive(job.workers, 'workers')}",
        # Worker processes call setsid(), so killing fio's process group would not end them.
        "--thread",
        "--group_reporting",
        *([f"--rate_iops={_rates(job, job.rate_iops)}"] if job.rate_iops is not None else []),
        "--time_based",
        f"--runtime={_milliseconds(job.runtime_s, 'runtime')}ms",
        *([f"--ramp_time={_milliseconds(job.ramp_s, 'ramp')}ms"] if job.ramp_s else []),
        # By default fio first empties the page cache of its target. On a device (BLKFLSBUF) this
        # writes back the whole file system mounted from it: the probe would cause load itself.
        "--invalidate=0",
        "--disk_util=0",
        "--eta=never",
        "--output-format=json+",
    )


def _filename(target: str) -> str:
    """Escape colons, which separate names; fio strips blanks and treats backslashes by version."""
    if not target.startswith("/") or target != target.strip() or not target.isprintable():
        raise DiskslaError(
            f"invalid target for fio: found {target!r}; expected the absolute path of a device"
        )
    if "\\" in target:
        raise DiskslaError(
            f"invalid target for fio: found {target!r}; expected a path without backslash"
        )
    return target.replace(":", "\\:")


def _mixture(job: FioJob) -> list[str]:
    options = []
    if job.pattern in _MIXED_PATTERNS and job.read_share is not None:
        options.append(f"--rwmixread={_percent(job.read_share, 'share of reads')}")
    if job.random_share is not None:
        options.append(
            f"--percentage_random={_percent(job.random_share, 'share of random requests')}"
        )
    if job.is_random:
        # Different offsets in every run, since a cache may hold those of the previous run; and no
        # map of visited blocks, whose memory grows with the disk.
        options += ["--randrepeat=0", "--norandommap"]
    return options


def _region(job: FioJob) -> list[str]:
    """Return offset and size. Each sequential worker gets a part of its own to read."""
    span_bytes, options = job.span_bytes, []
    if job.offset_bytes:
        options.append(f"--offset={_positive(job.offset_bytes, 'offset')}")
    if span_bytes is None:
        return options
    if job.workers > 1 and not job.is_random:
        span_bytes = span_bytes // job.workers // job.request_bytes * job.request_bytes
        options.append(f"--offset_increment={span_bytes}")
    if span_bytes < job.request_bytes:
        raise DiskslaError(
            f"region too small: found {job.span_bytes} bytes for {job.workers} workers; expected"
            f" at least one request of {job.request_bytes} bytes for each"
        )
    return [*options, f"--size={span_bytes}"]


def _rates(job: FioJob, rate_iops: float) -> str:
    """Return the rate as fio expects it: whole IOPS of one worker, for each direction."""
    shares = [1.0]
    if job.pattern in _MIXED_PATTERNS:
        reads = 0.5 if job.read_share is None else job.read_share
        shares = [reads, 1 - reads]
    is_valid = 1 <= rate_iops <= _MAX_IOPS
    rates = [int(rate_iops * share / job.workers + 1e-9) for share in shares if is_valid]
    if not rates or min(rates) < 1:
        raise DiskslaError(
            f"invalid rate for fio: found {rate_iops:g} IOPS for {job.workers * len(shares)}"
            " workers and directions; expected at least 1 IOPS for each"
        )
    return ",".join(map(str, rates))


def _positive(value: int, what: str) -> int:
    if value < 1:
        raise DiskslaError(f"{what}: found {value}; expected at least 1")
    return value


def _percent(share: float, what: str) -> int:
    if not 0 <= share <= 1:
        raise DiskslaError(f"{what}: found {share}; expected 0 to 1")
    return round(100 * share)


def _milliseconds(seconds: float, what: str) -> int:
    if not 0.001 <= seconds < 1e6:  # noqa: PLR2004 -- one millisecond to twelve days
        raise DiskslaError(f"{what}: found {seconds} s; expected 1 ms to 1000000 s")
    return round(1000 * seconds)
