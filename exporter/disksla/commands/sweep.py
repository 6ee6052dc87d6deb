"""`disksla sweep`: measure the workload matrix of a disk, or its medium with --identify."""

import argparse
import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from disksla.base.console import SafeConsole, progress_bar, to_json
from disksla.base.errors import DiskslaError
from disksla.base.schema import duration
from disksla.base.text import command_lines
from disksla.base.units import format_size, parse_size_bytes
from disksla.commands._context import add_context_arguments, add_device, read_context
from disksla.commands._exclusive import FORCE_HELP, exclusive_measurement
from disksla.commands._identify import identify_medium
from disksla.commands._option_table import add_options
from disksla.commands._options import check_unused, parse_option, parse_optional
from disksla.kernel.disks import Disk
from disksla.measure.benchmark import SweepHeader, SweepPlan, SweepRow
from disksla.measure.benchmark.sweep_journal import (
    SweepJournal,
    SweepJournalFile,
    load_journal,
    mismatch,
)
from disksla.measure.benchmark.sweep_matrix import MAX_CHOICES, SweepCell, csv_of, row_of
from disksla.measure.benchmark.sweep_page import announcement, document, sweep_html, sweep_page
from disksla.measure.fio import FioError, FioJob, fio_arguments
from disksla.measure.fio.job import SECTOR_BYTES
from disksla.measure.fio.runner import Fio, find_fio
from disksla.measure.fio.scratch_file import file_system_of, remove_leftovers, scratch_file
from disksla.serve.metrics.render import read_build_info
from disksla.tell.printed_page import print_parts

_MAX_WORKERS = 256
_GRACE_S = 30.0
"""Time after the end of a cell until fio is stopped: the disk has stalled."""
_FILE_BYTES = "1GiB"
_RUNTIME = duration("100ms", "1h", "10s")
_OF_A_SWEEP = (
    "--file", "--file-size", "--sizes", "--workers", "--resume", "--output", "--csv", "--html",
    "--dry-run",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEVICE, the workloads to measure, and the files of results."""
    source = parser.add_mutually_exclusive_group(required=True)
    add_device(source, "")
    identify = "find out the medium of the disk by its latencies, in 20 seconds of reads"
    add_options(parser, f"--identify  {identify}")
    table = "with --identify: table that --csv wrote, instead of a disk"
    add_options(source, f"--table FILE  {table}")
    add_options(
        parser,
        f"""
--file DIR         also measure writes, all on a scratch file in this directory of the disk
--file-size SIZE   size of the scratch file (default: {_FILE_BYTES})
--runtime TIME     duration of each measurement (default: 10s; to identify, 3s)
--sizes SIZE,...   request sizes (default: 4KiB, 8KiB, ... 2MiB)
--workers N,...    numbers of workers (default: 1,16)
""",
    )
    add_options(
        parser.add_mutually_exclusive_group(),
        """
--resume FILE  journal to resume
--output FILE  journal to create, with a line for each cell (default: sweep-DEVICE.jsonl)
""",
    )
    add_options(
        parser,
        f"""
--json       print JSON instead of tables
--csv FILE   also write the table to FILE
--html FILE  also write heat maps to FILE
--dry-run    print the duration, the cost and the fio commands, without running them
--force      {FORCE_HELP}
""",
    )
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure the remaining cells of the matrix, then print all results."""
    if arguments.identify:
        check_unused(arguments, "--identify", _OF_A_SWEEP)
        return identify_medium(arguments)
    check_unused(arguments, "a sweep", ["--table"])
    host = read_context(arguments)
    disk = host.find_block_device(arguments.device)
    journal = load_journal(arguments.resume) if arguments.resume else None
    header = _header(arguments, disk, journal)
    finished = journal.rows if journal else ()
    measured = {row.cell for row in finished}
    left = [cell for cell in header.plan.cells() if cell not in measured]
    path: Path = arguments.resume or arguments.output or Path(f"sweep-{disk.name}.jsonl")
    _check_new_files(arguments.csv, arguments.html)
    if left:
        limits = host.assignment(header.disk).limits
        for sentence in announcement(header, limits, len(finished)):
            SafeConsole(stderr=True).print(sentence)
    if arguments.dry_run:
        target = f"{header.directory}/FILE" if header.directory else f"/dev/{disk.name}"
        for cell in left:
            print(command_lines(("fio", *fio_arguments(_job(cell, header, target)))))
        return 0
    rows = finished
    if left:
        if header.directory:
            file_system_of(Path(header.directory), disk)
        fio = find_fio()
        with (
            exclusive_measurement(arguments, host, disk),
            SweepJournalFile.resume(path, journal)
            if journal
            else SweepJournalFile.create(path, header) as file,
        ):
            print(f"Writing results to {path}.", file=sys.stderr)
            rows = (*finished, *_measure(fio, left, header, file))
    by_cell = {row.cell: row for row in rows}
    in_order = tuple(by_cell[cell] for cell in header.plan.cells() if cell in by_cell)
    _show(arguments, header, in_order)
    return 0


def _header(
    arguments: argparse.Namespace, disk: Disk, journal: SweepJournal | None
) -> SweepHeader:
    """Return what to measure, from the options, the journal and the defaults."""
    before = journal.header if journal else None
    plan = before.plan if before else SweepPlan()
    directory, file_bytes = None, None
    if journal is not None and {*plan.cells()} <= {row.cell for row in journal.rows}:
        directory, file_bytes = journal.header.directory, journal.header.file_bytes  # printed only
    if arguments.file is not None:
        file_system_of(arguments.file, disk)
        directory = str(arguments.file.resolve())
        file_bytes = parse_size_bytes(_FILE_BYTES)
    if arguments.file_size is not None:
        if directory is None:
            raise DiskslaError("--file-size requires --file DIR")
        file_bytes = parse_option("--file-size", arguments.file_size, _size)
    header = SweepHeader(
        disk=disk,
        directory=directory,
        file_bytes=file_bytes,
        plan=SweepPlan(
            sizes=_each("--sizes", arguments.sizes, _size, plan.sizes),
            workers=_each("--workers", arguments.workers, _workers, plan.workers),
            runtime_s=parse_optional("--runtime", arguments.runtime, _RUNTIME.parse)
            or plan.runtime_s,
            writes=directory is not None,
        ),
        started_at_s=before.started_at_s if before else time.time(),
        disksla=read_build_info().version,
    )
    if before is not None:
        reason = mismatch(before, header)
        if reason:
            raise DiskslaError(f"cannot resume from {arguments.resume}: {reason}")
    target_bytes = file_bytes or disk.size_bytes
    if max(header.plan.sizes) * max(header.plan.workers) > target_bytes:
        raise DiskslaError(
            f"--sizes: requests of {format_size(max(header.plan.sizes))} by"
            f" {max(header.plan.workers)} workers do not fit into {format_size(target_bytes)}"
        )
    return header


def _each(
    option: str, text: str | None, parse: Callable[[str], int], default: tuple[int, ...]
) -> tuple[int, ...]:
    """Parse numbers between commas, and drop repeated ones."""
    if text is None:
        return default
    numbers = tuple(
        dict.fromkeys(parse_option(option, part.strip(), parse) for part in text.split(","))
    )
    if len(numbers) > MAX_CHOICES:
        raise DiskslaError(
            f"{option}: found {len(numbers)} values; expected at most {MAX_CHOICES}"
        )
    return numbers


def _size(text: str) -> int:
    size_bytes = parse_size_bytes(text)
    if not size_bytes or size_bytes % SECTOR_BYTES:
        raise ValueError(
            f"found '{text}'; expected a multiple of {SECTOR_BYTES} bytes, such as 4KiB"
        )
    return size_bytes


def _workers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MAX_WORKERS:
        raise ValueError(f"found '{text}'; expected integers from 1 to {_MAX_WORKERS}")
    return int(text)


def _check_new_files(*paths: Path | None) -> None:
    """Check, before the long run, that its results can be written."""
    for path in paths:
        if path is not None and path.exists():
            raise DiskslaError(f"{path} already exists; choose another name")
        if path is not None and not path.absolute().parent.is_dir():
            raise DiskslaError(f"cannot create {path}: no directory {path.parent}")


def _job(cell: SweepCell, header: SweepHeader, target: str) -> FioJob:
    return cell.job(target, header.file_bytes or header.disk.size_bytes, header.plan.runtime_s)


def _measure(
    fio: Fio, cells: list[SweepCell], header: SweepHeader, file: SweepJournalFile
) -> Iterator[SweepRow]:
    """Measure cells one after the other; each is in the journal before the next starts."""
    hint = f"resume with: disksla sweep {header.disk.name} --resume {file.path}"
    if header.directory and header.file_bytes:
        hint += f" --file {header.directory} --file-size {header.file_bytes}"
    done = 0
    cell_s = header.plan.cell_s
    try:
        with _target(header) as target, progress_bar(len(cells) * cell_s) as progress:
            for cell in cells:
                load = f"{cell.workers} x {format_size(cell.request_bytes)}, {cell.mixture}"
                step = f"{done + 1}/{len(cells)}: {load}"
                progress(step, 0.0)
                job = _job(cell, header, target)
                result = fio.run(
                    job,
                    limit_s=job.runtime_s + _GRACE_S,
                    on_second=functools.partial(progress, step),
                )
                row = row_of(cell, result)
                file.add(row)
                done += 1
                progress(step, cell_s)
                yield row
    except KeyboardInterrupt:
        print(f"disksla: stopped after {done} of {len(cells)} cells; {hint}", file=sys.stderr)
        raise
    except FioError as error:
        raise DiskslaError(
            f"{error} ({done} of {len(cells)} cells were measured; {hint})"
        ) from None


@contextlib.contextmanager
def _target(header: SweepHeader) -> Iterator[str]:
    if header.directory is None or header.file_bytes is None:
        yield f"/dev/{header.disk.name}"
        return
    remove_leftovers(Path(header.directory))
    with scratch_file(Path(header.directory), header.file_bytes) as path:
        yield str(path)


def _show(arguments: argparse.Namespace, header: SweepHeader, rows: tuple[SweepRow, ...]) -> None:
    started = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(header.started_at_s))
    if arguments.json:
        print(to_json(document(header, rows)))
    else:
        print_parts(sweep_page(header, rows, started))
    if arguments.csv:
        _write(arguments.csv, csv_of(rows))
    if arguments.html:
        _write(arguments.html, sweep_html(header, rows, started))


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise DiskslaError(f"cannot create {path}: {error.strerror}") from error
