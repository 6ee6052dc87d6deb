"""`disksla sweep`: measure the workload matrix of a disk."""

import argparse
import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from disksla.commands.json_text import json_text
from disksla.commands.machine import Machine, add_machine_arguments, read_machine
from disksla.commands.options import given, parsed
from disksla.commands.quiet import add_even_if_busy, undisturbed
from disksla.commands.sweep_words import announcement, document, print_table
from disksla.commands.terminal import Terminal
from disksla.core.disk import Disk
from disksla.core.fio import SECTOR_BYTES, FioJob, fio_arguments
from disksla.core.journal import Header, Journal, why_another
from disksla.core.matrix import MOST_CHOICES, Cell, Plan, Row, csv_of, row_of
from disksla.core.refusal import Refusal
from disksla.core.units import format_size, parse_duration_s, parse_size_bytes
from disksla.exposition.heatmap import heatmap_page
from disksla.runtime.about import read_about
from disksla.runtime.fio import Fio, FioFailure, find_fio
from disksla.runtime.journalfile import JournalFile, load_journal
from disksla.runtime.testfile import remove_leftovers, test_file

_MOST_WORKERS = 256
_PATIENCE_S = 30.0
"""Beyond the runtime of a cell: a disk that answers later than that has stalled."""
_FILE_BYTES = "1GiB"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEVICE, what to measure, and where results go."""
    parser.add_argument("device", metavar="DEVICE", help="vdb, /dev/vdb, or a name of by-id")
    for option, metavar, what in (
        ("--file", "DIR", "measure a file of our own in this directory on the disk, writes too"),
        ("--file-size", "SIZE", f"size of that file (default: {_FILE_BYTES})"),
        ("--runtime", "TIME", "how long each cell is measured (default: 10s)"),
        ("--sizes", "SIZE,...", "request sizes (default: 4KiB, 8KiB, ... 2MiB)"),
        ("--workers", "N,...", "numbers of workers (default: 1,16)"),
    ):
        parser.add_argument(option, metavar=metavar, help=what)
    journal = parser.add_mutually_exclusive_group()
    journal.add_argument("--resume", type=Path, metavar="FILE", help="go on with this journal")
    journal.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="journal to make, a line for each finished cell (default: sweep-DEVICE.jsonl)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table here too")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write heat maps here too")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and do nothing"
    )
    add_even_if_busy(parser)
    add_machine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure what is left of the matrix, then show all of it."""
    machine = read_machine(arguments)
    disk = machine.find(arguments.device)
    journal = load_journal(arguments.resume) if arguments.resume else None
    header = _header(arguments, disk, journal)
    finished = journal.rows if journal else ()
    measured = {row.cell for row in finished}
    left = [cell for cell in header.plan.cells() if cell not in measured]
    path: Path = arguments.resume or arguments.output or Path(f"sweep-{disk.name}.jsonl")
    _refuse_what_is_there(arguments.csv, arguments.html)
    if left:
        _announce(machine, header, len(finished))
    if arguments.dry_run:
        _print_commands(left, header)
        return 0
    rows = finished
    if left:
        if header.directory:
            _directory(Path(header.directory), disk)
        fio = find_fio()
        with (
            undisturbed(arguments, machine, disk),
            JournalFile.go_on(path, journal)
            if journal
            else JournalFile.make(path, header) as file,
        ):
            print(f"What is measured is kept in {path}.", file=sys.stderr)
            rows = (*finished, *_measured(fio, left, header, file))
    _show(arguments, header, _in_order(header.plan, rows))
    return 0


def _header(arguments: argparse.Namespace, disk: Disk, journal: Journal | None) -> Header:
    """Give what is to be measured: what was asked for, and else what the journal has."""
    before = journal.header if journal else None
    plan = before.plan if before else Plan()
    directory, file_bytes = (before.directory, before.file_bytes) if before else (None, None)
    if arguments.file is not None:
        directory = _directory(Path(arguments.file), disk)
        file_bytes = file_bytes or parse_size_bytes(_FILE_BYTES)
    if arguments.file_size is not None:
        if directory is None:
            raise Refusal("--file-size: there is no file without --file DIR")
        file_bytes = parsed("--file-size", arguments.file_size, _size)
    header = Header(
        disk=disk,
        directory=directory,
        file_bytes=file_bytes,
        plan=Plan(
            sizes=_each("--sizes", arguments.sizes, _size, plan.sizes),
            workers=_each("--workers", arguments.workers, _workers, plan.workers),
            runtime_s=given("--runtime", arguments.runtime, _runtime) or plan.runtime_s,
            writes=directory is not None,
        ),
        started_at_s=before.started_at_s if before else time.time(),
        disksla=read_about().version,
    )
    if before is not None:
        another = why_another(before, header)
        if another:
            raise Refusal(f"{arguments.resume} cannot be gone on with: {another}")
    target_bytes = file_bytes or disk.size_bytes
    if max(header.plan.sizes) * max(header.plan.workers) > target_bytes:
        raise Refusal(
            f"--sizes: {max(header.plan.workers)} workers with requests of"
            f" {format_size(max(header.plan.sizes))} do not fit into {format_size(target_bytes)}"
        )
    return header


def _directory(directory: Path, disk: Disk) -> str:
    """Give the directory, if it lies on the disk; it may not any more when one goes on."""
    try:
        resolved = directory.resolve(strict=True)
    except OSError as error:
        raise Refusal(f"--file: {directory}: {error.strerror}") from error
    mounted = next(place for place in (resolved, *resolved.parents) if os.path.ismount(place))
    if str(mounted) not in disk.mount_points:
        where = ", ".join(disk.mount_points) or "nowhere"
        raise Refusal(
            f"--file: {directory} lies on what is mounted at {mounted},"
            f" and {disk.name} is mounted at: {where}"
        )
    return str(resolved)


def _each(
    option: str, text: str | None, parse: Callable[[str], int], usual: tuple[int, ...]
) -> tuple[int, ...]:
    """Read numbers between commas, each once."""
    if text is None:
        return usual
    numbers = tuple(dict.fromkeys(parsed(option, part.strip(), parse) for part in text.split(",")))
    if len(numbers) > MOST_CHOICES:
        raise Refusal(f"{option}: found {len(numbers)}; expected {MOST_CHOICES} at most")
    return numbers


def _size(text: str) -> int:
    size_bytes = parse_size_bytes(text)
    if not size_bytes or size_bytes % SECTOR_BYTES:
        raise ValueError(
            f"expected a multiple of {SECTOR_BYTES} bytes, such as 4KiB, not '{text}'"
        )
    return size_bytes


def _runtime(text: str) -> float:
    seconds = parse_duration_s(text)
    if not 0.1 <= seconds <= 3600:  # noqa: PLR2004 -- said in the message
        raise ValueError(f"expected between 100ms and 1h, not '{text}'")
    return seconds


def _workers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_WORKERS:
        raise ValueError(f"expected whole numbers from 1 to {_MOST_WORKERS}, not '{text}'")
    return int(text)


def _refuse_what_is_there(*paths: Path | None) -> None:
    """Refuse before the long run what could not be written after it."""
    for path in paths:
        if path is not None and path.exists():
            raise Refusal(f"{path} is there already: name a file that is not")
        if path is not None and not path.absolute().parent.is_dir():
            raise Refusal(f"cannot make {path}: there is no directory {path.parent}")


def _announce(machine: Machine, header: Header, finished: int) -> None:
    limits = machine.assignment(header.disk).limits
    console = Terminal(stderr=True)
    for sentence in announcement(header, limits, finished):
        console.print(sentence)


def _print_commands(cells: list[Cell], header: Header) -> None:
    target = f"{header.directory}/FILE" if header.directory else f"/dev/{header.disk.name}"
    for cell in cells:
        print(shlex.join(("fio", *fio_arguments(_job(cell, header, target)))))


def _job(cell: Cell, header: Header, target: str) -> FioJob:
    return cell.job(target, header.file_bytes or header.disk.size_bytes, header.plan.runtime_s)


def _measured(fio: Fio, cells: list[Cell], header: Header, file: JournalFile) -> Iterator[Row]:
    """Measure cells one after the other; each is in the journal before the next begins."""
    go_on = f"go on with: disksla sweep {header.disk.name} --resume {file.path}"
    done = 0
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Terminal(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    try:
        with _target(header) as target, progress:
            task = progress.add_task("", total=len(cells))
            for cell in cells:
                progress.update(task, description=_described(cell))
                job = _job(cell, header, target)
                row = row_of(cell, fio.run(job, limit_s=job.runtime_s + _PATIENCE_S))
                file.add(row)
                done += 1
                progress.update(task, completed=done)
                yield row
    except KeyboardInterrupt:
        print(f"disksla: stopped after {done} of {len(cells)} cells; {go_on}", file=sys.stderr)
        raise
    except FioFailure as failure:
        raise Refusal(f"{failure} ({done} of {len(cells)} cells were measured; {go_on})") from None


@contextlib.contextmanager
def _target(header: Header) -> Iterator[str]:
    if header.directory is None or header.file_bytes is None:
        yield f"/dev/{header.disk.name}"
        return
    remove_leftovers(Path(header.directory))
    with test_file(Path(header.directory), header.file_bytes) as path:
        yield str(path)


def _described(cell: Cell) -> str:
    return (
        f"{cell.workers} x {format_size(cell.request_bytes)},"
        f" {1 - cell.random_share:.0%} seq, {cell.read_share:.0%} read"
    )


def _in_order(plan: Plan, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    by_cell = {row.cell: row for row in rows}
    return tuple(by_cell[cell] for cell in plan.cells() if cell in by_cell)


def _show(arguments: argparse.Namespace, header: Header, rows: tuple[Row, ...]) -> None:
    if arguments.json:
        print(json_text(document(header, rows)))
    else:
        print_table(header, rows)
    if arguments.csv:
        _write(arguments.csv, csv_of(rows))
    if arguments.html:
        started = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(header.started_at_s))
        _write(arguments.html, heatmap_page(header, rows, started))


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Refusal(f"cannot make {path}: {error.strerror}") from error
