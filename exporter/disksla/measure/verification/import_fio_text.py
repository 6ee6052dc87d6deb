"""Parse the normal output of fio, for people, that was made elsewhere.

Source: show_thread_status_normal of https://github.com/axboe/fio/blob/master/stat.c, and fio_doc
for what it means. Versions 2 and 3 differ: `read : io=1MB, ... runt= 42234msec` and
`read: IOPS=10, BW=1MiB/s (1MB/s)(1MiB/42234msec)`.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from disksla.base.errors import DiskslaError
from disksla.measure.fio import total_result
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
from disksla.measure.verification.fio_text_result import (
    FACTORS,
    Result,
    directions,
    disks_in,
    last_states,
    percentiles,
    syncs_in,
)
from disksla.measure.verification.measurement import (
    Measurement,
    at_the_same_time,
    counted_inflight,
    mean_request_bytes,
    not_judged,
)
from disksla.measure.verification.places import disks_used, is_device

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


class _Run(NamedTuple):
    """One run of fio: what was printed before its jobs, its jobs, and their results."""

    before: list[str]
    jobs: list[re.Match[str]]
    results: list[Result]


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
            run.results.append(
                Result(
                    name=result["name"],
                    group=result["group"],
                    jobs=int(result["jobs"]),
                    error=int(result["error"]),
                    pid=result["pid"],
                    lines=[],
                )
            )
        elif run.results:
            run.results[-1].lines.append(line)
        else:
            run.before.append(line)
    if run.results:
        yield run


def _sizes(job: re.Match[str]) -> tuple[int, ...]:
    """Return the smallest and largest size of reads, then of writes."""
    sizes = tuple(
        round(float(number) * FACTORS[prefix]) for number, prefix in _SIZE.findall(job["sizes"])
    )
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
    disks = disks_in(lines)
    targets = tuple(sorted(disks_used(named, disks)))
    last = last_states(run.results)
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
        yield msgspec.structs.replace(load, tool=tool, targets=targets, counted_inflight=counted)


def _check(jobs: Sequence[re.Match[str]], results: Sequence[Result], options: Options) -> None:
    if any(_HOST.match(each["name"]) for each in jobs) or any(
        result.name == "All clients" for result in results
    ):
        raise DiskslaError(
            "found the output of several clients of fio; expected one of each host, or"
            " --output-format=json"
        )
    if not jobs:
        raise DiskslaError("its requests are unknown; expected its line with bs=")
    error = next((result.error for result in results if result.error), 0)
    if error:
        raise DiskslaError(f"fio reports error {error}")
    if len(jobs) > 1 and any(options.get(name, "0") not in OFF for name in _LATE):
        raise DiskslaError("its jobs did not run at the same time (wait_for, startdelay)")


def _load(
    name: str, jobs: list[re.Match[str]], results: list[Result], options: Options
) -> Measurement:
    count = sum(result.jobs for result in results)
    kinds = {job.group("pattern", "sizes", "engine", "depth") for job in jobs}
    if not count or (len(kinds) != 1 and len(jobs) != count):
        raise DiskslaError(
            f"found {count} jobs of {len(kinds)} kinds in its group, so their requests are"
            " unknown; use `stonewall` between jobs, or --output-format=json"
        )
    sizes = {_sizes(job) for job in jobs}
    of_all = sizes.pop() if len(sizes) == 1 else _SEVERAL_SIZES
    measured = [directions(result, of_all) for result in results]
    read = total_result([each[0] for each in measured])
    write = total_result([each[1] for each in measured])
    request_bytes = mean_request_bytes(read, write)
    if _SYNC_SHARE * syncs_in(results) > write.requests:
        options = {"fsync": "1"} | options
    asked = []
    for job in jobs if len(jobs) == count else jobs[:1] * count:
        own = {"rw": job["pattern"], "ioengine": job["engine"], "iodepth": job["depth"]}
        asked.append(load_of(options | own, name, "fio", pattern_of(own), request_bytes))
    load = at_the_same_time(asked)
    is_mix = load.pattern in {"rw", "randrw"}
    return msgspec.structs.replace(
        load,
        request_bytes=request_bytes,
        read=read,
        write=write,
        percentiles=percentiles(results[0]) if len(results) == 1 and not is_mix else (),
    )
