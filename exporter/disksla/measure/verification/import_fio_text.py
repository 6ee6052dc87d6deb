"""Parse the normal output of fio, for people, that was made elsewhere.

Source: show_thread_status_normal of https://github.com/axboe/fio/blob/master/stat.c, and fio_doc
for what it means. Versions 2 and 3 differ: `read : io=1MB, ... runt= 42234msec` and
`read: IOPS=10, BW=1MiB/s (1MB/s)(1MiB/42234msec)`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, starmap
from typing import NamedTuple

from msgspec.structs import replace

from disksla.base.errors import DiskslaError
from disksla.measure.fio import NOTHING, DirectionResult, done_within, total_result
from disksla.measure.verification.fio_options import (
    OFF,
    Options,
    is_command,
    load_of,
    options_in,
    options_of_run,
    pattern_of,
    places,
    with_device,
)
from disksla.measure.verification.measurement import (
    Measurement,
    Percentile,
    UsedDisk,
    at_the_same_time,
    counted_inflight,
    disks_used,
    is_device,
    mean_request_bytes,
    not_judged,
)

_JOB = re.compile(
    r"(?:^|\s)(?P<name>\S[^\n]{0,200}?): \(g=(?P<group>\d{1,6})\): rw=(?P<pattern>\w{1,20}), "
    r"bs=(?P<sizes>[^\n=]{1,200}), ioengine=(?P<engine>[^\s,]{1,60}), iodepth=(?P<depth>\d{1,6})",
    re.ASCII,
)
_RESULT = re.compile(
    r"(?:^|\s)(?P<name>\S[^\n]{0,200}?): \(groupid=(?P<group>\d{1,6}), jobs=(?P<jobs>\d{1,6})\):"
    r" err= {0,3}(?P<error>\d{1,6})(?::? pid=(?P<pid>\d{1,10}))?",
    re.ASCII,
)
_VERSION = re.compile(r"\s*(fio-\d{1,4}\.\S{1,40})\s*$", re.ASCII)
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([KMGTP]?)(?:i?B)?(?=[-,/\s]|$)", re.ASCII)
_OPEN = re.compile(r"\s*(?:read|write) ?: (?:IOPS|io)=", re.ASCII)
_HOST = re.compile(r"<[^<>\s]{1,200}> ")
_SEVERAL_SIZES = (0, 1, 0, 1)
_LATE = ("wait_for", "startdelay")
_SYNC_SHARE = 1000
"""Writes after each sync, from which on the time without a full queue does not matter."""
_LONGEST = 400
"""Characters of a line of fio that a mail program may have broken."""
_DIRECTION = re.compile(r"\s*(read|write) ?: .*?(?:runt= *|/)(\d{1,12})msec", re.ASCII)
_TRANSFERRED = re.compile(r"(?:io=|\()(\d{1,12}(?:\.\d{1,6})?)([KMGTP]?)i?B?[,/]", re.ASCII)
_LATENCY = re.compile(
    r"\s*clat \((nsec|usec|msec)\):.* avg= {0,12}(\d{1,12}(?:\.\d{1,6})?),", re.ASCII
)
_PERCENTILE_UNIT = re.compile(r"\s*clat percentiles \((nsec|usec|msec)\):", re.ASCII)
_PERCENTILE = re.compile(r"(\d{1,3}\.\d\d)th=\[ {0,12}(\d{1,15})\]", re.ASCII)
_ISSUED = re.compile(
    r"\s*issued (?:rwts?)? *: total=(?:r=(\d{1,15})/w=(\d{1,15})"
    r"|(\d{1,15}),(\d{1,15}),(?:\d{1,15},(\d{1,15}))?)",
    re.ASCII,
)
_DISK = re.compile(r"\s*([\w!.-]{1,80}): (ios=\d{1,15}/\d{1,15},.*)", re.ASCII)
_COUNTS = re.compile(r"(?<!aggr)(ios|merge|ticks)=(\d{1,15})/(\d{1,15})", re.ASCII)
_FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_SECONDS = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3}
_SHOWN = {"50.00": 0.5, "90.00": 0.9, "99.00": 0.99, "99.90": 0.999}


class _Result(NamedTuple):
    """What fio prints of a job, or of a group of jobs, when it has ended."""

    name: str
    group: str
    jobs: str
    error: str
    pid: str | None
    lines: list[str]

    @property
    def runtime_ms(self) -> int:
        """The time in which it read or wrote, so far."""
        found = (_DIRECTION.match(line) for line in self.lines)
        return max((int(each[2]) for each in found if each is not None), default=0)

    @property
    def is_whole(self) -> bool:
        """Whether its numbers of requests were printed."""
        return any(_ISSUED.match(line) for line in self.lines)


class _Run(NamedTuple):
    """One run of fio: what was printed before its jobs, its jobs, and their results."""

    before: list[str]
    jobs: list[re.Match[str]]
    results: list[_Result]


def is_fio_text(text: str) -> bool:
    """Return whether a text has a result of fio in it, in fio's normal output."""
    heads = islice(re.finditer(r": \(groupid=\d", text), 1000)  # of a text that is not from fio
    return any(_near(_RESULT, text, each.start()) for each in heads)


def _near(pattern: re.Pattern[str], text: str, place: int) -> re.Match[str] | None:
    """Return the match of a pattern around a place; a search of a long text would take minutes."""
    return None if place < 0 else pattern.search(text, max(0, place - 220), place + 400)


def parse_fio_text(text: str) -> tuple[Measurement, ...]:
    """Return a measurement for each group of jobs, of all runs in the text.

    Whether I/O was direct, and at which rate it was asked for, is only known if the text has the
    command line or the job file. What cannot be judged has a problem.
    """
    lines = _unbroken(text.replace("\r", "\n").split("\n"))
    # A page with several results often says the options once.
    everywhere = options_in(lines)
    return tuple(load for run in _runs(lines) for load in _loads(run, everywhere))


def _unbroken(lines: Sequence[str]) -> list[str]:
    """Return the lines of fio as they were before a mail program broke the long ones."""
    found: list[str] = []
    for line in lines:
        if found and _is_broken(found[-1]) and ": ios=" not in line:
            found[-1] += f" {line.strip()}"
        else:
            found.append(line)
    return found


def _is_broken(line: str) -> bool:
    if len(line) > _LONGEST:
        return False
    is_job = ": (g=" in line and "): rw=" in line and "iodepth=" not in line
    is_disk = ": ios=" in line and "util=" not in line
    return is_job or is_disk or (_OPEN.match(line) is not None and "msec" not in line)


def _runs(lines: Sequence[str]) -> Iterator[_Run]:
    run = _Run([], [], [])
    for line in lines:
        job = _near(_JOB, line, line.find(": (g="))
        result = _near(_RESULT, line, line.find(": (groupid="))
        is_of_result = job is None and not is_command(line)
        if run.results and result is None and not is_of_result:
            yield run
            run = _Run([], [], [])
        if job is not None:
            run.jobs.append(job)
        elif result is not None:
            run.results.append(_Result(**result.groupdict(), lines=[]))
        elif run.results:
            run.results[-1].lines.append(line)
        else:
            run.before.append(line)
    if run.results:
        yield run


def _sizes(job: re.Match[str]) -> tuple[int, ...]:
    """Return the smallest and largest size of reads, then of writes."""
    sizes = tuple(starmap(_bytes, _SIZE.findall(job["sizes"])))
    if len(sizes) < 4 or not int(job["depth"]):  # noqa: PLR2004 -- two ranges
        raise DiskslaError("its requests are unknown")
    return sizes[:4]


def _loads(run: _Run, everywhere: Options) -> Iterator[Measurement]:
    options = options_of_run(run.before, everywhere)
    versions = (_VERSION.match(line) for line in run.before)
    tool = next((found[1] for found in versions if found is not None), "fio")
    lines = [line for result in run.results for line in result.lines]
    named = {
        place
        for job in run.jobs
        for place in places(with_device(options, job["name"]))
        if {"filename", "directory"} & options.keys() or is_device(place)
    }
    # fio does not print which of its jobs used which disk.
    disks = _disks_in(lines)
    targets = tuple(sorted(disks_used(named, disks)))
    last = _last_states(run.results)
    groups = dict.fromkeys(result.group for result in last)
    for group in groups:
        results = [result for result in last if result.group == group]
        jobs = [job for job in run.jobs if job["group"] == group]
        name = " + ".join(dict.fromkeys(result.name for result in results))
        try:
            _check(jobs, results, options)
            load = _load(name, jobs, results, options)
        except DiskslaError as error:
            load = not_judged(name, tool, str(error))
        counted = counted_inflight(load, disks) if len(groups) == 1 else None
        yield replace(load, tool=tool, targets=targets, counted_inflight=counted)


def _check(jobs: Sequence[re.Match[str]], results: Sequence[_Result], options: Options) -> None:
    if any(_HOST.match(each["name"]) for each in jobs) or any(
        result.name == "All clients" for result in results
    ):
        raise DiskslaError(
            "found the output of several clients of fio; expected one of each host, or"
            " --output-format=json"
        )
    if not jobs:
        raise DiskslaError("its requests are unknown; expected its line with bs=")
    if error := max(int(result.error) for result in results):
        raise DiskslaError(f"fio reports error {error}")
    if len(jobs) > 1 and any(options.get(name, "0") not in OFF for name in _LATE):
        raise DiskslaError("its jobs did not run at the same time (wait_for, startdelay)")


def _load(
    name: str, jobs: list[re.Match[str]], results: list[_Result], options: Options
) -> Measurement:
    count = sum(int(result.jobs) for result in results)
    kinds = {job.group("pattern", "sizes", "engine", "depth") for job in jobs}
    if not count or (len(kinds) != 1 and len(jobs) != count):
        raise DiskslaError(
            f"found {count} jobs of {len(kinds)} kinds in its group, so their requests are"
            " unknown; use `stonewall` between jobs, or --output-format=json"
        )
    sizes = {_sizes(job) for job in jobs}
    of_all = sizes.pop() if len(sizes) == 1 else _SEVERAL_SIZES
    measured = [_directions(result, of_all) for result in results]
    read = total_result([each[0] for each in measured])
    write = total_result([each[1] for each in measured])
    request_bytes = mean_request_bytes(read, write)
    if _SYNC_SHARE * _syncs_in(results) > write.requests:
        options = {"fsync": "1"} | options
    asked = []
    for job in jobs if len(jobs) == count else jobs[:1] * count:
        own = {"rw": job["pattern"], "ioengine": job["engine"], "iodepth": job["depth"]}
        asked.append(load_of(options | own, name, "fio", pattern_of(own), request_bytes))
    load = at_the_same_time(asked)
    is_mix = load.pattern in {"rw", "randrw"}
    return replace(
        load,
        request_bytes=request_bytes,
        read=read,
        write=write,
        percentiles=_percentiles(results[0]) if len(results) == 1 and not is_mix else (),
    )


def _last_states(results: Sequence[_Result]) -> list[_Result]:
    """Return the last whole state of each result: --status-interval prints those before it too."""
    kept: list[_Result] = []
    for result in results:
        key = (result.name, result.group, result.pid)
        before = next((each for each in kept if key == (each.name, each.group, each.pid)), None)
        if before is None or result.pid is None:
            kept.append(result)
        elif not result.is_whole:
            continue
        elif result.runtime_ms > before.runtime_ms or not before.is_whole:
            kept[kept.index(before)] = result
        else:
            kept.append(result)
    return kept


def _disks_in(lines: Iterable[str]) -> list[UsedDisk]:
    """Return the disks that fio lists."""
    disks = []
    for name, text in (match.groups() for match in map(_DISK.match, lines) if match):
        counts = {kind: (int(read), int(write)) for kind, read, write in _COUNTS.findall(text)}
        ios, merges, ticks = (counts.get(kind, (0, 0)) for kind in ("ios", "merge", "ticks"))
        is_stack = 0 if "aggrios=" in text else None
        disks.append(UsedDisk(name, *ios, *merges, *ticks, aggr_read_ios=is_stack))
    return disks


def _syncs_in(results: Iterable[_Result]) -> int:
    """Return how often jobs waited for a sync, in a row of versions that print it."""
    found = [match for each in results for match in map(_ISSUED.match, each.lines) if match]
    return sum(int(match[5] or 0) for match in found)


def _directions(
    result: _Result, sizes: tuple[int, ...]
) -> tuple[DirectionResult, DirectionResult]:
    """Return what was read and written: the counts are exact, rates are rounded by fio."""
    issued = next(filter(None, map(_ISSUED.match, result.lines)), None)
    if issued is None:
        raise DiskslaError("found no line that begins 'issued', which has the number of requests")
    reads, writes = (int(issued[old] or issued[new] or 0) for old, new in ((1, 3), (2, 4)))
    found = {"read": NOTHING, "write": NOTHING}
    direction = None
    for line in result.lines:
        if (heading := _DIRECTION.match(line)) is not None:
            direction = heading[1]
            requests, least, most = (
                (reads, *sizes[:2]) if direction == "read" else (writes, *sizes[2:])
            )
            transferred = requests * least if least == most else _transferred_bytes(line)
            if not int(heading[2]):
                raise DiskslaError("found a runtime of 0 ms; expected a result of fio")
            found[direction] = done_within(requests, transferred, int(heading[2]) / 1000, None)
        elif direction is not None and (latency := _LATENCY.match(line)) is not None:
            mean_s = float(latency[2]) * _SECONDS[latency[1]]
            found[direction] = replace(found[direction], mean_latency_s=mean_s or None)
    if reads + writes and any(line.lstrip().startswith("mixed:") for line in result.lines):
        raise DiskslaError(
            "it does not tell reads from writes; run fio without unified_rw_reporting=1"
        )
    for number, name in ((reads, "read"), (writes, "write")):
        if number and not found[name].requests:
            raise DiskslaError(f"found {number} {name}s without the line that begins '{name}:'")
    return found["read"], found["write"]


def _transferred_bytes(line: str) -> int:
    """Return the amount that fio prints, with three or four digits."""
    amounts = _TRANSFERRED.findall(line)
    if not amounts:
        raise DiskslaError(f"found '{line.strip()[:60]}'; expected an amount of data")
    return _bytes(*amounts[-1])


def _bytes(number: str, prefix: str) -> int:
    return round(float(number) * _FACTORS[prefix])


def _percentiles(result: _Result) -> tuple[Percentile, ...]:
    """Return the percentiles that fio printed."""
    unit = 0.0
    found: dict[float, float] = {}
    for line in result.lines:
        if (heading := _PERCENTILE_UNIT.match(line)) is not None:
            unit = _SECONDS[heading[1]]
        elif unit:
            found |= {
                _SHOWN[label]: int(value) * unit
                for label, value in _PERCENTILE.findall(line)
                if label in _SHOWN
            }
    return tuple(Percentile(share, found[share]) for share in sorted(found))
