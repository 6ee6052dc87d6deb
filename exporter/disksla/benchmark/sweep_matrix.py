"""A disk's workload matrix: request size x random share x read share, at one worker and at many.

After https://storageio.com: how many IOPS can a HDD, HHDD or SSD do? It depends: so all of it is
measured, and put into one table of response time, IOPS and bandwidth.
"""

import csv
import itertools
from typing import Annotated

import msgspec

from disksla.benchmark.identify_evidence import Evidence, RequestStats
from disksla.errors import DiskslaError
from disksla.fio import DirectionResult, FioJob, FioResult, Pattern
from disksla.units import KIB

SIZES = tuple(4 * KIB * 2**power for power in range(10))
"""4 KiB to 2 MiB."""
WORKERS = (1, 16)
RANDOM_SHARES = (0.0, 0.4, 0.7, 1.0)
READ_SHARES = (1.0, 0.6, 0.3, 0.0)
SETUP_S = 0.5
"""What starting and ending one run of fio takes."""
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
MOST_CHOICES = 100
"""Sizes, or numbers of workers, so that no journal can ask for cells without end."""
_Counts = Annotated[tuple[_Count, ...], msgspec.Meta(min_length=1, max_length=MOST_CHOICES)]
_NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e18)]


class SweepCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One workload of the matrix."""

    workers: _Count
    request_bytes: _Count
    random_share: _Share
    read_share: _Share

    @property
    def pattern(self) -> Pattern:
        """As fio calls it."""
        at_random = self.random_share > 0
        if self.read_share == 1:
            return "randread" if at_random else "read"
        if self.read_share == 0:
            return "randwrite" if at_random else "write"
        return "randrw" if at_random else "rw"

    def job(self, target: str, size_bytes: int, runtime_s: float) -> FioJob:
        """Give what fio has to do; sequential workers get a part of the target each."""
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
    """What is to be measured."""

    sizes: _Counts = SIZES
    workers: _Counts = WORKERS
    runtime_s: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """Of each cell."""
    writes: bool = False
    """Whether cells with writes are measured too."""

    def cells(self) -> tuple[SweepCell, ...]:
        """Give every cell in the order in which it is measured and shown."""
        read_shares = READ_SHARES if self.writes else (1.0,)
        return tuple(
            SweepCell(workers, size, random_share, read_share)
            for workers, size, read_share, random_share in itertools.product(
                self.workers, self.sizes, read_shares, RANDOM_SHARES
            )
        )

    @property
    def left_out(self) -> int:
        """How many cells are not measured because they write."""
        whole = msgspec.structs.replace(self, writes=True)
        return len(whole.cells()) - len(self.cells())


def cell_duration_s(plan: SweepPlan) -> float:
    """Return how long one cell takes, with the time that fio needs to start and to end."""
    return plan.runtime_s + SETUP_S


def total_s(plan: SweepPlan, finished: int = 0) -> float:
    """Return how long all cells take, or those that are not finished."""
    return (len(plan.cells()) - finished) * cell_duration_s(plan)


class SweepRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One cell, and how it went; reads and writes together, as in the article."""

    cell: SweepCell
    mean_latency_s: _NotNegative | None
    """None where nothing completed."""
    iops: _NotNegative
    bytes_per_second: _NotNegative


def row_of(cell: SweepCell, result: FioResult) -> SweepRow:
    """Add up what was read and written; latency is the mean over all requests."""
    both = (result.read, result.write)
    return SweepRow(
        cell,
        _mean_latency_s(both),
        sum(one.iops for one in both),
        sum(one.bytes_per_second for one in both),
    )


def _mean_latency_s(both: tuple[DirectionResult, ...]) -> float | None:
    known = [(one.requests, one.mean_latency_s) for one in both if one.mean_latency_s is not None]
    requests = sum(count for count, _ in known)
    return sum(count * mean_s for count, mean_s in known) / requests if requests else None


def csv_of(rows: tuple[SweepRow, ...]) -> str:
    """Write rows as comma-separated values in base units; nothing where nothing completed."""
    lines = [",".join(COLUMNS)]
    lines += [",".join(map(_written, _values(row))) for row in rows]
    return "\n".join(lines) + "\n"


def _written(value: float | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.10g}"


def _values(row: SweepRow) -> tuple[float | None, ...]:
    cell = row.cell
    return (
        cell.workers,
        cell.request_bytes,
        cell.random_share,
        cell.read_share,
        row.mean_latency_s,
        row.iops,
        row.bytes_per_second,
    )


def read_csv(text: str) -> tuple[SweepRow, ...]:
    """Read rows as `csv_of` writes them; further columns are left alone.

    Raises Refusal with the number of the line.
    """
    reader = csv.DictReader(text.splitlines())
    rows: list[SweepRow] = []
    try:
        missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
        if missing:
            raise DiskslaError(f"line 1: not the table of a sweep: no column {', '.join(missing)}")
        rows.extend(_row(found) for found in reader)
    except (ValueError, TypeError, csv.Error) as error:
        raise DiskslaError(f"line {len(rows) + 2}: {error}") from None
    if not rows:
        raise DiskslaError("there is no row in it")
    return tuple(rows)


def _row(found: dict[str, str]) -> SweepRow:
    """Read one row; raises ValueError (msgspec's among them) or TypeError."""
    workers, size, random_share, read_share, latency_s, iops, rate = map(found.get, COLUMNS)
    plain = {
        "cell": {
            "workers": workers,
            "request_bytes": size,
            "random_share": random_share,
            "read_share": read_share,
        },
        "mean_latency_s": latency_s or None,
        "iops": iops,
        "bytes_per_second": rate,
    }
    return msgspec.convert(plain, SweepRow, strict=False)


def evidence_of(rows: tuple[SweepRow, ...]) -> Evidence:
    """Give what a sweep shows of the medium: its cells of one worker, at the smallest size.

    Where a latency was rounded to nothing, it is what one worker had for each request.
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
        row
        for row in rows
        if (row.cell.request_bytes, row.cell.random_share, row.cell.read_share) == (size, 1, 1)
        and row.cell.workers > 1
    ]
    return Evidence(
        random=single[size, 1, 1],
        sequential=single.get((size, 0, 1)),
        streamed=single[max(sequential), 0, 1] if sequential else None,
        deep=_requests(max(many, key=lambda row: row.cell.workers)) if many else None,
        written=single.get((size, 0, 0)),
    )


def _requests(row: SweepRow) -> RequestStats:
    return RequestStats(
        request_bytes=row.cell.request_bytes,
        iops=row.iops,
        mean_s=row.mean_latency_s or row.cell.workers / row.iops,
        queue_depth=row.cell.workers,
    )
