"""Intervals of disks from what sysstat prints: `sadf -j -- -d`, `iostat -x -o JSON`, `iostat -x`.

The names of columns changed: before version 11.7 (iostat) and 12.3 (sadf), there are sectors of
512 bytes and `avgqu-sz` (https://github.com/sysstat/sysstat, CHANGES). Its kB has 1024 bytes. Of
sadf, `tps` does not tell reads from writes. The first report of iostat, after the line with the
name of the machine, is that of all time since its start, and is left out.
"""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import msgspec

from disksla.base.errors import DECODE_ERRORS, DiskslaError
from disksla.base.units import KIB, MIB
from disksla.kernel.procfs import SECTOR_BYTES
from disksla.measure.means.mean import LONGEST_S, MOST_INFLIGHT, Mean
from disksla.verdict.interval import Interval

LARGEST_BYTES = 64 * MIB
_JSON = re.compile(r'\s*\{\s*"sysstat"')
_TABLE = re.compile(r"^\s*Device:?\s(.*\s)?(r/s|tps)\s", re.MULTILINE)
_HEAD = re.compile(r"Linux \S+ \((?P<host>[^)]*)\)")
_TIME = re.compile(
    r"(?:Time: )?(?P<date>\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4})?[T ]*(?P<time>\d{1,2}:\d\d:\d\d)"
    r"(?: ?(?P<half>[AP]M))?(?: ?(?:Z|[+-]\d\d:?\d\d|[A-Z]{3,5}))?"
)
_MOST = 1e13
_HALF_DAY_H = 12
_MOST_OF_MONTH = 31
_CENTURY, _SHORT_YEARS = 2000, 100
_UNITS = {"kB": KIB, "MB": MIB, "sec": SECTOR_BYTES}
_EXPECTED = (
    "expected the output of sadf -j -- -d, iostat -x -o JSON, or iostat -x, without -h and in"
    " English (LC_ALL=C)"
)


_Row = dict[str, float | str]


class RecordedMeans(NamedTuple):
    """What was recorded of one disk."""

    host: str
    device: str
    means: Sequence[Mean]


class _Report(NamedTuple):
    """The rows of disks at one time."""

    run: int
    """0 before the name of a machine; the first report of others is since its start."""
    host: str
    end_s: float | None
    """Seconds since 1970 in the zone of the file."""
    seconds: float | None
    """None where they follow from the times of reports."""
    rows: Mapping[str, Mapping[str, float]]


class _Timestamp(msgspec.Struct):
    date: str
    time: str
    interval_s: float = msgspec.field(default=0.0, name="interval")


class _Statistics(msgspec.Struct):
    timestamp: _Timestamp | str | None = None
    disk: list[_Row] = []


class _Host(msgspec.Struct):
    statistics: list[_Statistics]
    nodename: str = ""


class _Hosts(msgspec.Struct):
    hosts: list[_Host]


class _Document(msgspec.Struct):
    sysstat: _Hosts


def is_sysstat(text: str) -> bool:
    """Return whether a text, or the start of it, is one that sysstat prints of disks."""
    return _JSON.match(text) is not None or _TABLE.search(text) is not None


def parse_sysstat(text: str, every_s: float | None) -> list[RecordedMeans]:
    """Return the intervals of each disk; `every_s` are the seconds between reports without time.

    Raise DiskslaError if there are none, or their length is not known.
    """
    reports = [*(_json_reports(text) if _JSON.match(text) else _text_reports(text))]
    by_disk: defaultdict[tuple[str, str], list[Mean]] = defaultdict(list)
    for _, host, end_s, seconds, rows in _with_times(reports, every_s):
        for device, fields in rows.items():
            is_sound = all(0 <= number < _MOST for number in fields.values())  # else: a reset
            if seconds and 0 < seconds <= LONGEST_S and is_sound:
                by_disk[host, device].append(_mean(fields, end_s or 0.0, seconds))
    if not by_disk:
        raise DiskslaError(
            f"found {len(reports)} report{'' if len(reports) == 1 else 's'}, and no interval of a"
            " disk; expected more: the first of iostat is that of all time since the start of the"
            f" machine (iostat -dxt 5 12); {_EXPECTED}"
        )
    return [RecordedMeans(host, device, means) for (host, device), means in by_disk.items()]


def _with_times(reports: Sequence[_Report], every_s: float | None) -> list[_Report]:
    """Return the reports with end and length. Raise DiskslaError if they are not known."""
    if all(report.seconds is not None for report in reports):
        return list(reports)  # of sadf
    if every_s is None:
        times = [report.end_s for report in reports if report.end_s is not None]
        steps = [after - before for before, after in pairwise(times) if after > before]
        if len(times) < len(reports) or not steps:
            raise DiskslaError(
                "the reports of iostat have no times; expected the seconds between them, such as"
                " --every 5s, or the output of iostat -x -t"
            )
        every_s = median(steps)
    timed = [
        report._replace(
            end_s=number * every_s if report.end_s is None else report.end_s, seconds=every_s
        )
        for number, report in enumerate(reports)
    ]
    first = reports[0]._replace(run=0)
    return [
        report for before, report in pairwise([first, *timed]) if report.run in {0, before.run}
    ]


def _mean(fields: Mapping[str, float], end_s: float, seconds: float) -> Mean:
    """Return an interval by the columns of a row, without what is the same in all versions."""
    is_told_apart = "r" in fields
    read_iops = fields.get("r", fields.get("tps"))
    inflight = fields.get("aqu-sz", fields.get("avgqu-sz"))
    if read_iops is None or inflight is None:
        raise DiskslaError(f"found a row without requests, or those in flight; {_EXPECTED}")
    reads, writes = seconds * read_iops, seconds * fields.get("w", 0.0)
    read_await, write_await = fields.get("r_await"), fields.get("w_await")
    interval = Interval(
        reads=round(reads),
        writes=round(writes),
        read_bytes=round(seconds * _bytes(fields, "r")),
        written_bytes=round(seconds * _bytes(fields, "w")),
        end_s=end_s,
        seconds=seconds,
        read_ms=None if read_await is None else round(read_await * reads),
        write_ms=None if write_await is None else round(write_await * writes),
        inflight=MOST_INFLIGHT if reads or writes else 0,
        flushes=round(seconds * fields.get("f", 0.0)),
    )
    return Mean(interval, inflight, is_told_apart)


def _bytes(fields: Mapping[str, float], direction: str) -> float:
    """Return the bytes per second of a direction. Raise DiskslaError."""
    sectors = fields.get(f"{direction}d_sec", fields.get(f"{direction}r_sec"))
    if sectors is not None:
        return sectors * SECTOR_BYTES
    for unit, factor in _UNITS.items():
        if f"{direction}{unit}" in fields:
            return fields[f"{direction}{unit}"] * factor
    raise DiskslaError(f"found a row without bytes of reads and writes; {_EXPECTED}")


def _json_reports(text: str) -> Iterator[_Report]:
    try:
        hosts = msgspec.json.decode(text, type=_Document).sysstat.hosts
    except DECODE_ERRORS as error:
        raise DiskslaError(f"invalid JSON of sysstat: {error}; {_EXPECTED}") from None
    for run, host in enumerate(hosts, 1):
        for each in host.statistics:
            time, seconds = each.timestamp, None
            if isinstance(time, _Timestamp):
                seconds = time.interval_s
                time = f"{time.date} {time.time}"
            rows = {
                str(row.get("disk-device", row.get("disk_device", ""))): {
                    name.removesuffix("/s"): value
                    for name, value in row.items()
                    if not isinstance(value, str)
                }
                for row in each.disk
            }
            yield _Report(run, host.nodename, _time(time or ""), seconds, rows)


def _text_reports(text: str) -> Iterator[_Report]:
    """Yield the tables of iostat; that of another run has a head before it."""
    run, host, end_s = 0, "", None
    columns: list[str] = []
    rows: dict[str, dict[str, float]] = {}
    for line in (each.strip() for each in text.splitlines()):
        words = line.split()
        if head := _HEAD.match(line):
            run, host = run + 1, head["host"]
        elif _TIME.fullmatch(line):
            end_s = _time(line)
        elif words and words[0].rstrip(":") == "Device":
            columns = [name.removesuffix("/s") for name in words[1:]]
            rows = {}
            yield _Report(run, host, end_s, None, rows)
        elif len(words) == len(columns) + 1 and columns:
            try:
                numbers = [float(word.replace(",", ".")) for word in words[1:]]
            except ValueError:
                continue
            rows[words[0]] = dict(zip(columns, numbers, strict=True))


def _time(text: str) -> float | None:
    """Return a time as iostat and sadf write it, in seconds since 1970; None if it is none.

    The order of a date follows from its separator: 2026-10-31, 10/31/2026 or 31.10.2026.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = map(int, match["time"].split(":"))
    if match["half"]:
        hour = hour % _HALF_DAY_H + _HALF_DAY_H * (match["half"] == "PM")
    first, middle, last = map(int, re.split("[-/.]", match["date"] or "1970-01-01"))
    if first <= _MOST_OF_MONTH:
        day, month = (middle, first) if "/" in match["date"] else (first, middle)
        first, middle, last = last + _CENTURY * (last < _SHORT_YEARS), month, day
    try:
        day_s = dt.datetime(first, middle, last, tzinfo=dt.UTC).timestamp()
    except ValueError:
        return None
    return day_s + 3600 * hour + 60 * minute + second
