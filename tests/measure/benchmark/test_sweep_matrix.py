"""The workload matrix: cells, duration and tables."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, KIB, MIB
from disksla.measure.benchmark.identify_evidence import Evidence
from disksla.measure.benchmark.sweep_matrix import (
    COLUMNS,
    SweepCell,
    SweepPlan,
    SweepRow,
    csv_of,
    evidence_of,
    read_csv,
    row_of,
)
from disksla.measure.benchmark.sweep_page import cost_warnings
from disksla.measure.fio.result import DirectionResult, FioResult
from disksla.promise.catalogue.derive import derive_limits
from disksla.promise.catalogue.limits import NO_LIMITS
from support.simulated_host import CATALOG

TABLE = Path(__file__).resolve().parent / "sweeps" / "storageio-hdd.csv"
NO_REQUESTS = DirectionResult(0, 0, 10.0, 0.0, 0.0, None)

cells = st.builds(
    SweepCell,
    st.integers(1, 64),
    st.integers(512, 2**22),
    st.sampled_from([0.0, 0.4, 0.7, 1.0]),
    st.sampled_from([0.0, 0.3, 0.6, 1.0]),
)
numbers = st.floats(0, 1e9).map(lambda number: float(f"{number:.10g}"))
rows = st.builds(SweepRow, cells, numbers | st.none(), numbers, numbers)


def test_matrix_is_that_of_the_article() -> None:
    plan = SweepPlan(writes=True)
    assert len(plan.cells()) == 10 * 16 * 2
    assert len(set(plan.cells())) == 320
    assert plan.skipped_cells == 0
    assert plan.sizes[-1] == 2 * MIB
    expected = [
        (row.cell.random_share, row.cell.read_share) for row in read_csv(TABLE.read_text())
    ]
    cells_found = [
        (cell.random_share, cell.read_share)
        for cell in plan.cells()
        if cell.workers == 1 and cell.request_bytes in {4 * KIB, 16 * KIB}
    ]
    assert cells_found == expected


def test_default_plan_only_reads() -> None:
    plan = SweepPlan()
    assert len(plan.cells()) == 80
    assert plan.skipped_cells == 240
    assert not any(cell.job("/dev/vdb", MIB, 1.0).writes for cell in plan.cells())


@given(cells)
def test_job_writes_only_if_its_cell_does(cell: SweepCell) -> None:
    job = cell.job("/dev/vdb", 64 * MIB, 10.0)
    assert job.writes == (cell.read_share < 1)
    assert job.is_random == (cell.random_share > 0)
    assert (job.read_share is None) == (job.pattern not in {"rw", "randrw"})
    assert (job.workers, job.queue_depth, job.span_bytes) == (cell.workers, 1, 64 * MIB)
    if job.random_share is not None:
        assert 0 < job.random_share < 1


def test_row_adds_reads_and_writes() -> None:
    cell = SweepCell(1, 4 * KIB, 1.0, 0.6)
    read = DirectionResult(300, 300 * 4096, 10.0, 30.0, 30.0 * 4096, 0.002)
    write = DirectionResult(100, 100 * 4096, 10.0, 10.0, 10.0 * 4096, 0.006)
    row = row_of(cell, FioResult("fio-3.33", read, write))
    assert (row.iops, row.bytes_per_second) == (40.0, 40.0 * 4096)
    assert row.mean_latency_s == pytest.approx(0.003)
    assert row_of(cell, FioResult("fio-3.33", NO_REQUESTS, NO_REQUESTS)).mean_latency_s is None


LARGE = SweepRow(SweepCell(1, 2**40 - 1, 1.0, 1.0), None, 1.0, 1.0)


@given(st.lists(rows, min_size=1, max_size=20).map(tuple))
@example((LARGE,))
def test_csv_round_trip(table: tuple[SweepRow, ...]) -> None:
    assert read_csv(csv_of(table)) == table


@given(st.text() | st.text(alphabet='0123456789.,-"\n').map((",".join(COLUMNS) + "\n").__add__))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(DiskslaError):
        assert read_csv(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: not a table of a sweep: no column workers"),
        (",".join(COLUMNS), "the table has no rows"),
        ("x" * 200_000, "line "),
        (",".join(COLUMNS) + f"\n{2**41},4096,1,1,0.01,100,4\n", "line 2: "),
        (",".join(COLUMNS) + "\n1,4096,1,1,0.01,100,409600\n1,4096,2,1,0.01,100,4\n", "line 3: "),
        (",".join(COLUMNS) + "\n1,4096\n", "line 2: "),
        (",".join(COLUMNS) + "\n1,4096,1,1,0.01,nan,4\n", "line 2: "),
        (",".join(COLUMNS) + "\n1,4096,1,1,0.01,inf,4\n", "line 2: "),
    ],
)
def test_invalid_row_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(DiskslaError) as refused:
        read_csv(text)
    assert message in str(refused.value)


def row(workers: int, size: int, random: float, read: float, iops: float) -> SweepRow:
    latency_s = workers / iops if iops else None
    return SweepRow(SweepCell(workers, size, random, read), latency_s, iops, iops * size)


def test_evidence_is_of_the_smallest_requests() -> None:
    found = evidence_of(
        (
            row(1, 8 * KIB, 1, 1, 90),
            row(1, 4 * KIB, 1, 1, 100),
            row(16, 4 * KIB, 1, 1, 150),
            row(4, 4 * KIB, 1, 1, 120),
            row(1, 4 * KIB, 0, 1, 20000),
            row(1, 4 * KIB, 0, 0, 120),
            row(1, 256 * KIB, 0, 1, 500),
            row(1, MIB, 0, 1, 0),
        )
    )
    assert found.random is not None
    assert found.random.iops == 100
    assert found.sequential is not None
    assert found.sequential.iops == 20000
    assert found.streamed is not None
    assert found.streamed.request_bytes == 256 * KIB
    assert found.written is not None
    assert found.written.iops == 120
    assert found.deep is not None
    assert (found.deep.iops, found.deep.queue_depth) == (150, 16)


def test_evidence_of_a_rounded_latency_and_of_no_random_reads() -> None:
    found = evidence_of((SweepRow(SweepCell(1, 4096, 1, 1), 0.0, 5000.0, 1.0),))
    assert found.random is not None
    assert found.random.mean_s == 1 / 5000
    assert evidence_of((row(16, 4096, 1, 1, 100), row(1, 4096, 0, 1, 100))) == Evidence()


USES_IT_ALL = (
    "The sweep uses the whole limit of the disk (15000 IOPS, 400 MiB/s) for 14.7 min; other"
    " programs that use the disk will slow down."
)
RUN_OUT = (
    "The burst credits are used up after 31.3 min at most: cells before that show the burst rate,"
    " cells after it the baseline. A full refill takes 12 h."
)


@pytest.mark.parametrize(
    ("terms", "size_gib", "seconds", "expected"),
    [
        ("vk.ceph-ssd", 500, 880, USES_IT_ALL),
        (
            "yandex.network-hdd",
            600,
            880,
            "The sweep uses up to 47% of the burst credits; a full refill takes 12 h.",
        ),
        ("yandex.network-hdd", 600, 3600, RUN_OUT),
    ],
)
def test_warnings_name_the_limit_and_the_burst_credits(
    terms: str, size_gib: int, seconds: float, expected: str
) -> None:
    limits = derive_limits(CATALOG[terms], size_gib * GIB)
    assert [*cost_warnings(limits, seconds)][-1] == expected
    assert list(cost_warnings(NO_LIMITS, seconds)) == []
