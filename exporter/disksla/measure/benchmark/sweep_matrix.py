"""The workload matrix of a sweep: request size x random share x read share x workers.

After "How many IOPS can a HDD, HHDD or SSD do?", https://storageio.com: it depends on the
workload, so all workloads are measured, into one table of response time, IOPS and bandwidth.
"""

import csv
import itertools
from typing import Annotated, Literal

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.units import KIB, format_size
from disksla.kernel.disks import Disk
from disksla.measure.benchmark.identify_evidence import Evidence, RequestStats
from disksla.measure.fio import FioJob, FioResult, Pattern, total_result

SIZES = tuple(4 * KIB * 2**power for power in range(10))
"""4 KiB to 2 MiB."""
WORKERS = (1, 16)
RANDOM_SHARES = (0.0, 0.4, 0.7, 1.0)
READ_SHARES = (1.0, 0.6, 0.3, 0.0)
SETUP_S = 0.5
"""Time that fio needs to start and to end."""
COLUMNS = (
    "workers",
    "request_bytes",
    "random_share",
    "read_share",
    "mean_latency_seconds",
    "iops",
    "bytes_per_second",
)

_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Count = Annotated[int, msgspec.Meta(gt=0, le=2**40)]
MAX_CHOICES = 100
"""Maximum number of sizes, or of worker counts, which bounds the cells of a journal."""
_Counts = Annotated[tuple[_Count, ...], msgspec.Meta(min_length=1, max_length=MAX_CHOICES)]
_NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e18)]


class SweepCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One workload of the matrix."""

    workers: _Count
    request_bytes: _Count
    random_share: _Share
    read_share: _Share

    @property
    def mixture(self) -> str:
        """The shares of requests, for people."""
        return f"{1 - self.random_share:.0%} seq, {self.read_share:.0%} read"

    @property
    def pattern(self) -> Pattern:
        """The access pattern, as fio names it."""
        at_random = self.random_share > 0
        if self.read_share == 1:
            return "randread" if at_random else "read"
        if self.read_share == 0:
            return "randwrite" if at_random else "write"
        return "randrw" if at_random else "rw"

    def job(self, target: str, size_bytes: int, runtime_s: float) -> FioJob:
        """Return the fio job; sequential workers get a part of the target each."""
        mixed = 0 < self.read_share < 1
        partly = 0 < self.random_share < 1
        return FioJob(
            name="sweep",
            target=target,
            pattern=self.pattern,
            request_bytes=self.request_bytes,
            runtime_s=runtime_s,
            workers=self.workers,
            read_share=self.read_share if mixed else None,
            random_share=self.random_share if partly else None,
            span_bytes=size_bytes,
        )


class SweepPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The cells to measure."""

    sizes: _Counts = SIZES
    workers: _Counts = WORKERS
    runtime_s: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """Duration of each cell."""
    writes: bool = False
    """Whether cells with writes are included."""

    def cells(self) -> tuple[SweepCell, ...]:
        """Return all cells in the order in which they are measured and printed."""
        read_shares = READ_SHARES if self.writes else (1.0,)
        return tuple(
            SweepCell(workers, size, random_share, read_share)
            for workers, size, read_share, random_share in itertools.product(
                self.workers, self.sizes, read_shares, RANDOM_SHARES
            )
        )

    @property
    def cell_s(self) -> float:
        """How long a cell takes, including the start and end of fio."""
        return self.runtime_s + SETUP_S

    @property
    def skipped_cells(self) -> int:
        """Number of cells that are skipped because they write."""
        complete = msgspec.structs.replace(self, writes=True)
        return len(complete.cells()) - len(self.cells())


class SweepHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The disk and the plan: the first line of a journal."""

    sweep: Literal[1] = 1
    """Version of the format."""
    disk: Disk
    directory: str | None = None
    """Directory of the scratch file; None if the device itself is read."""
    file_bytes: int | None = None
    """Size of the scratch file."""
    plan: SweepPlan
    started_at_s: float
    """Unix time."""
    disksla: str
    """Version of disksla that started it."""

    @property
    def where(self) -> str:
        """What is measured, in words."""
        if self.directory is None or self.file_bytes is None:
            return "the device itself"
        return f"a file of {format_size(self.file_bytes)} in {self.directory}"


class SweepRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a cell; reads and writes together, as in the article."""

    cell: SweepCell
    mean_latency_s: _NotNegative | None
    """None if no request completed."""
    iops: _NotNegative
    bytes_per_second: _NotNegative


def row_of(cell: SweepCell, result: FioResult) -> SweepRow:
    """Return the sum of reads and writes; the latency is the mean of all requests."""
    both = total_result((result.read, result.write))
    return SweepRow(cell, both.mean_latency_s, both.iops, both.bytes_per_second)


def csv_of(rows: tuple[SweepRow, ...]) -> str:
    """Return rows as CSV in base units; the latency is empty if no request completed."""
    lines = [",".join(COLUMNS)]
    for row in rows:
        cell = msgspec.structs.astuple(row.cell)
        rates = (row.mean_latency_s, row.iops, row.bytes_per_second)
        measured = ("" if value is None else f"{value:.10g}" for value in rates)
        shares = (str(value) if isinstance(value, int) else f"{value:.10g}" for value in cell)
        lines.append(",".join((*shares, *measured)))
    return "\n".join(lines) + "\n"


def read_csv(text: str) -> tuple[SweepRow, ...]:
    """Parse rows that `csv_of` wrote; other columns are ignored.

    Raise DiskslaError with the number of the line that is invalid.
    """
    reader = csv.DictReader(text.splitlines())
    rows: list[SweepRow] = []
    try:
        missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
        if missing:
            raise DiskslaError(f"line 1: not a table of a sweep: no column {', '.join(missing)}")
        rows.extend(_row(found) for found in reader)
    except (ValueError, TypeError, csv.Error) as error:
        raise DiskslaError(f"line {len(rows) + 2}: {error}") from None
    if not rows:
        raise DiskslaError("the table has no rows")
    return tuple(rows)


def _row(found: dict[str, str]) -> SweepRow:
    """Parse one row. Raise ValueError (msgspec's errors included) or TypeError."""
    latency_s, iops, rate = map(found.get, COLUMNS[4:])
    plain = {
        "cell": {name: found.get(name) for name in COLUMNS[:4]},
        "mean_latency_s": latency_s or None,
        "iops": iops,
        "bytes_per_second": rate,
    }
    return msgspec.convert(plain, SweepRow, strict=False)


def evidence_of(rows: tuple[SweepRow, ...]) -> Evidence:
    """Return what a sweep shows of the medium: its cells of one worker, at the smallest size.

    A latency that was rounded to 0 is computed from the IOPS.
    """
    single = {
        (row.cell.request_bytes, row.cell.random_share, row.cell.read_share): _requests(row)
        for row in rows
        if row.cell.workers == 1 and row.iops
    }
    at_random = [size for size, *shares in single if shares == [1, 1]]
    if not at_random:
        return Evidence()
    size = min(at_random)
    sequential = [found for found, *shares in single if shares == [0, 1] and found > size]
    many = [
        _requests(row)
        for row in rows
        if (row.cell.request_bytes, row.cell.random_share, row.cell.read_share) == (size, 1, 1)
        and row.cell.workers > 1
    ]
    return Evidence(
        random=single[size, 1, 1],
        sequential=single.get((size, 0, 1)),
        streamed=single[max(sequential), 0, 1] if sequential else None,
        deep=max(many, key=lambda each: each.queue_depth, default=None),
        written=single.get((size, 0, 0)),
    )


def _requests(row: SweepRow) -> RequestStats:
    return RequestStats(
        request_bytes=row.cell.request_bytes,
        iops=row.iops,
        mean_s=row.mean_latency_s or row.cell.workers / row.iops,
        queue_depth=row.cell.workers,
    )
