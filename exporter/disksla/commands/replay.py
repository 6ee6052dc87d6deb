"""`disksla replay FILE`: run a recording through `advance`, as the daemon does with its ticks."""

import argparse
import contextlib
import gzip
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from io import BufferedReader
from itertools import pairwise
from pathlib import Path

import msgspec
from rich.table import Table

from disksla.base.console import SafeConsole
from disksla.base.errors import DiskslaError
from disksla.base.units import MIB, format_count, format_size
from disksla.commands._option_table import add_options
from disksla.commands._options import add_config_file
from disksla.kernel.consumers import ConsumerTotals
from disksla.kernel.procfs import SECTOR_BYTES, Counters
from disksla.promise.configuration import Configuration, SamplingSettings
from disksla.promise.configuration.settings_file import (
    parse_text,
    read_configuration,
    with_terms_files,
)
from disksla.serve.metrics import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline import Snapshot, State, advance, window_records
from disksla.state.pipeline.tick import decode_header, decode_tick
from disksla.tell.explanation import SHOWN_TEXT, Shown, shown_seconds
from disksla.verdict.throttling import VERDICTS

LONGEST_LINE_BYTES = 8 * MIB
"""A tick of 10,000 disks that are all new has 6 MB; others have kilobytes."""
_GZIP = b"\x1f\x8b"
RECORDED_CONFIG_FILE_HELP = "YAML configuration (default: that of the recording)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_options(parser, "FILE  recording written by `disksla record`")
    add_options(
        parser.add_mutually_exclusive_group(),
        """
--json     print one JSON object per tick and disk
--metrics  print the metrics after the last tick
""",
    )
    add_config_file(parser, RECORDED_CONFIG_FILE_HELP)


def run(arguments: argparse.Namespace) -> int:
    """Replay, and print a summary, JSON lines or metrics."""
    states = replay(arguments.file, arguments.config_file)
    if arguments.json:
        for before, after in pairwise(states):
            for record in window_records(before, after):
                sys.stdout.write(msgspec.json.encode(record).decode() + "\n")
        return 0
    first = last = next(states)
    for last in states:
        first = last if first.clocks is None else first
    if arguments.metrics:
        # Without those of the process, which are not in a recording.
        registry = make_registry(SnapshotCollector(lambda: Snapshot(last)))
        sys.stdout.write(render_metrics(registry).body.decode())
    else:
        _print_summary(first, last)
    return 0


def replay(file: Path, config_file: Path | None) -> Iterator[State]:
    """Yield the state before the first tick of a recording, and the state after each tick.

    Terms files are those of the recording, not those of this machine, and so is the configuration
    unless a file is named.
    Raise DiskslaError, with file and line, if the file is not a recording.
    """
    configuration = None if config_file is None else read_configuration(config_file)
    try:
        with file.open("rb") as opened:
            yield from replay_opened(opened, configuration)
    except OSError as error:
        raise DiskslaError(f"cannot read {file}: {error.strerror}") from None
    except DiskslaError as error:
        raise DiskslaError(f"{file}: {error}") from None


def replay_opened(file: BufferedReader, configuration: Configuration | None) -> Iterator[State]:
    """Yield the states of a recording, compressed or not, as `replay` does.

    Raise DiskslaError, with the line, if it is not a recording, and OSError if it cannot be read.
    """
    lines = _lines(file)
    header = decode_header(next(lines, b""))
    if configuration is None:
        configuration = parse_text(header.configuration, "line 1")
    configuration = msgspec.structs.replace(
        configuration,
        settings=msgspec.structs.replace(
            configuration.settings, sampling=SamplingSettings(interval_s=header.interval_s)
        ),
    )
    state = State(with_terms_files(configuration, header.terms_files))
    yield state
    for number, line in enumerate(lines, start=2):
        state = advance(state, decode_tick(line, number))
        yield state


def _lines(file: BufferedReader) -> Iterator[bytes]:
    """Yield the lines of a recording.

    Raise DiskslaError, with the number of the line, if it is longer than any of a recording or
    the file is compressed and damaged. Raise OSError if the file cannot be read.
    """
    is_compressed = file.peek(len(_GZIP)).startswith(_GZIP)
    number = 1
    try:
        with gzip.open(file) if is_compressed else contextlib.nullcontext(file) as lines:
            while line := lines.readline(LONGEST_LINE_BYTES + 1):
                if len(line) > LONGEST_LINE_BYTES:
                    most = f"at most {LONGEST_LINE_BYTES // MIB} MiB"
                    raise DiskslaError(f"line {number}: found a longer line; expected {most}")
                yield line
                number += 1
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DiskslaError(
            f"line {number}: cannot uncompress it: {error}; the file is damaged or incomplete"
        ) from None


def _print_summary(first: State, last: State) -> None:
    """Print what each disk did that is there at the end."""
    console = SafeConsole()
    if first.clocks is None or last.clocks is None:
        console.print("this recording has no sample of /proc/diskstats")
        return
    snapshot = Snapshot(last)
    gaps = ", ".join(
        f"{count} {reason}" for reason, count in snapshot.sampler.gaps.items() if count
    )
    console.print(
        f"{snapshot.sampler.ticks} ticks in"
        f" {last.clocks.monotonic_s - first.clocks.monotonic_s:.1f} s,"
        f" {last.assessed.windows} windows assessed; gaps: {gaps or 'none'}"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("device", no_wrap=True)
    table.add_column("terms", no_wrap=True)
    for heading in ("reads", "read", "writes", "written", "peak IOPS"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("share of time", min_width=14)
    for disk in snapshot.disks:
        verdicts = dict(zip(VERDICTS, disk.verdict_totals.seconds, strict=True))
        slow_s = disk.slow.above_promise_s + disk.slow.above_usual_s
        table.add_row(
            disk.disk.name,
            disk.assignment.title,
            *_amounts(disk.counters),
            format_count(disk.peak.read_iops + disk.peak.write_iops),
            _shares(shown_seconds(verdicts, slow_s)),
        )
    console.print(table)
    for disk in snapshot.disks:
        if used := "; ".join(_used_by(disk.consumers)):
            console.print(f"{disk.disk.name} was used while throttled or busy: {used}")


def _used_by(consumers: ConsumerTotals) -> Iterator[str]:
    """Yield the shares of the consumers of a disk, by requests and by bytes."""
    for unit, sums in (("requests", consumers.requests.sums), ("bytes", consumers.bytes.sums)):
        used = defaultdict[str, float](float)
        for (consumer, _), amount in sums.items():
            used[consumer] += amount
        whole = sum(used.values())
        greatest = sorted(used, key=used.__getitem__, reverse=True)
        shares = [f"{used[each] / whole:.0%} {each}" for each in greatest if used[each]]
        if shares:
            yield f"by {unit} {', '.join(shares)}"


def _shares(seconds: Mapping[Shown, float]) -> str:
    """Return the share of each of what is shown in the assessed time, the largest first."""
    whole_s = sum(seconds.values())
    by_share = sorted(seconds, key=seconds.__getitem__, reverse=True)
    return "\n".join(
        f"{seconds[each] / whole_s:.0%} {SHOWN_TEXT[each].words}"
        for each in by_share
        if seconds[each] > 0
    )


def _amounts(counters: Counters | None) -> tuple[str, str, str, str]:
    if counters is None:
        return ("-", "-", "-", "-")
    return (
        format_count(counters.reads or 0),
        format_size((counters.read_sectors or 0) * SECTOR_BYTES),
        format_count(counters.writes or 0),
        format_size((counters.written_sectors or 0) * SECTOR_BYTES),
    )
