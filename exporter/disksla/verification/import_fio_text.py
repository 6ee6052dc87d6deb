"""Parse the normal output of fio, for people, that was made elsewhere.

Source: show_thread_status_normal of https://github.com/axboe/fio/blob/master/stat.c, and fio_doc
for what it means. Versions 2 and 3 differ: `read : io=1MB, ... runt= 42234msec` and
`read: IOPS=10, BW=1MiB/s (1MB/s)(1MiB/42234msec)`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from disksla.errors import DiskslaError
from disksla.fio import DirectionResult, Pattern
from disksla.verification.import_fio import PATTERNS, depth_of, devices_in
from disksla.verification.measurement import (
    NOTHING,
    Measurement,
    Percentile,
    add_up,
    done_within,
    mean_request_bytes,
)

_JOB = re.compile(
    r"(?:^|\s)(?P<name>\S[^\n]{0,200}?): \(g=(?P<group>\d{1,6})\): rw=(?P<pattern>\w{1,20}), "
    r"bs=(?P<sizes>[^\n=]{1,200}), ioengine=(?P<engine>[^\s,]{1,60}), iodepth=(?P<depth>\d{1,6})",
    re.ASCII,
)
_RESULT = re.compile(
    r"(?:^|\s)(?P<name>\S[^\n]{0,200}?): \(groupid=(?P<group>\d{1,6}), jobs=(?P<jobs>\d{1,6})\):"
    r" err= {0,3}(?P<error>\d{1,6})",
    re.ASCII,
)
_DIRECTION = re.compile(r"\s*(read|write) ?: .*?(?:runt= *|/)(\d{1,12})msec", re.ASCII)
_TRANSFERRED = re.compile(r"(?:io=|\()(\d{1,12}(?:\.\d{1,6})?)([KMGTP]?)i?B?[,/]", re.ASCII)
_LATENCY = re.compile(
    r"\s*clat \((nsec|usec|msec)\):.* avg= {0,12}(\d{1,12}(?:\.\d{1,6})?),", re.ASCII
)
_PERCENTILE_UNIT = re.compile(r"\s*clat percentiles \((nsec|usec|msec)\):", re.ASCII)
_PERCENTILE = re.compile(r"(\d{1,3}\.\d\d)th=\[ {0,12}(\d{1,15})\]", re.ASCII)
_ISSUED = re.compile(
    r"\s*issued (?:rwts?)? *: total=(?:r=(\d{1,15})/w=(\d{1,15})|(\d{1,15}),(\d{1,15}),)", re.ASCII
)
_COMMAND = re.compile(r"(?:^|[\s$#>/])fio\s+-", re.ASCII)
_VERSION = re.compile(r"\s*(fio-\d{1,4}\.\S{1,40})\s*$", re.ASCII)
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([KMGTP]?)(?:i?B)?(?=[-,/\s]|$)", re.ASCII)
_OPTION = re.compile(
    r"(?:^|[\s'\"])-{0,2}(direct|buffered|rate_iops|filename)[= ]['\"]?([^\s'\"]{1,200})", re.ASCII
)
_RATE = re.compile(r"[1-9]\d{0,8}", re.ASCII)
_FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_SECONDS = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3}
_SHOWN = {"50.00": 0.5, "90.00": 0.9, "99.00": 0.99, "99.90": 0.999}
_OFF = {"0", "false"}


class _Job(NamedTuple):
    """What fio prints of a job before it starts."""

    name: str
    group: str
    pattern: Pattern
    sizes: tuple[int, ...]
    """Smallest and largest size of reads, then of writes."""
    depth: int

    @property
    def load(self) -> tuple[Pattern, tuple[int, ...], int]:
        """What jobs must have in common to be the same load."""
        return self.pattern, self.sizes, self.depth


class _Result(NamedTuple):
    """What fio prints of a job, or of a group of jobs, when it has ended."""

    name: str
    group: str
    jobs: int
    lines: list[str]


class _Run(NamedTuple):
    """One run of fio: what was printed before its jobs, its jobs, and their results."""

    before: list[str]
    jobs: list[_Job]
    results: list[_Result]


def is_fio_text(text: str) -> bool:
    """Return whether a text has a result of fio in it, in fio's normal output."""
    return _RESULT.search(text) is not None


def parse_fio_text(text: str) -> tuple[Measurement, ...]:
    """Return a measurement for each group of jobs, of all runs in the text.

    Whether I/O was direct, and at which rate it was asked for, is only known if the text has the
    command line or the job file. Raise DiskslaError if a job failed, or the load of a group is not
    known.
    """
    lines = text.replace("\r", "\n").split("\n")
    # A page with several results often says the options once.
    everywhere = _options(lines)
    return tuple(load for run in _runs(lines) for load in _loads(run, everywhere))


def _runs(lines: Sequence[str]) -> Iterator[_Run]:
    run = _Run([], [], [])
    for line in lines:
        if (found := _JOB.search(line)) is not None:
            if run.results:
                yield run
                run = _Run([], [], [])
            run.jobs.append(_job(found))
        elif (found := _RESULT.search(line)) is not None:
            if int(found["error"]):
                raise DiskslaError(f"job '{found['name']}': fio reports error {found['error']}")
            run.results.append(_Result(found["name"], found["group"], int(found["jobs"]), []))
        elif run.results and _COMMAND.search(line) is None:
            run.results[-1].lines.append(line)
        else:
            if run.results:
                yield run
                run = _Run([], [], [])
            run.before.append(line)
    if run.results:
        yield run


def _job(found: re.Match[str]) -> _Job:
    pattern = PATTERNS.get(found["pattern"])
    sizes = tuple(
        round(float(number) * _FACTORS[prefix]) for number, prefix in _SIZE.findall(found["sizes"])
    )
    if pattern is None or len(sizes) < 4 or not int(found["depth"]):  # noqa: PLR2004 -- two ranges
        raise DiskslaError(f"job '{found['name']}': its requests are unknown")
    depth = depth_of(found["engine"], int(found["depth"]))
    return _Job(found["name"], found["group"], pattern, sizes[:4], depth)


def _loads(run: _Run, everywhere: dict[str, str]) -> Iterator[Measurement]:
    options = everywhere | _options(run.before)
    versions = (_VERSION.match(line) for line in run.before)
    tool = next((found[1] for found in versions if found is not None), "fio")
    for group in dict.fromkeys(result.group for result in run.results):
        jobs = [job for job in run.jobs if job.group == group]
        results = [result for result in run.results if result.group == group]
        yield _load(tool, jobs, results, options)


def _load(
    tool: str, jobs: list[_Job], results: list[_Result], options: dict[str, str]
) -> Measurement:
    name = " + ".join(dict.fromkeys(result.name for result in results))
    count = sum(result.jobs for result in results)
    loads = {job.load for job in jobs}
    if not jobs or not count:
        raise DiskslaError(f"job '{name}': its requests are unknown; expected its line with bs=")
    if len(loads) != 1 and len(jobs) != count:
        raise DiskslaError(
            f"job '{name}': found {count} jobs of {len(loads)} kinds in its group, so their"
            " requests are unknown; use `stonewall` between jobs, or --output-format=json"
        )
    job = jobs[0]
    measured = [_directions(result, job.sizes) for result in results]
    read = add_up([each[0] for each in measured])
    write = add_up([each[1] for each in measured])
    has_one_size = len(loads) == 1 and len(_used_sizes(job)) == 1
    rate = options.get("rate_iops", "")
    return Measurement(
        name=name,
        tool=tool,
        pattern=job.pattern if len({each.pattern for each in jobs}) == 1 else "randrw",
        request_bytes=_used_sizes(job).pop() if has_one_size else mean_request_bytes(read, write),
        inflight=job.depth * count if len(loads) == 1 else sum(each.depth for each in jobs),
        read=read,
        write=write,
        percentiles=_percentiles(results[0]) if len(results) == 1 and not _is_mix(job) else (),
        rate_iops=float(rate) * count if _RATE.fullmatch(rate) and not _is_mix(job) else None,
        is_direct=_is_direct(options),
        targets=devices_in(options.get("filename", "")),
    )


def _is_mix(job: _Job) -> bool:
    return job.pattern in {"rw", "randrw"}


def _used_sizes(job: _Job) -> set[int]:
    """Return the sizes of the requests of a job: smallest and largest of its directions."""
    reads, writes = job.sizes[:2], job.sizes[2:]
    if _is_mix(job):
        return {*reads, *writes}
    return set(writes if job.pattern in {"write", "randwrite"} else reads)


def _directions(
    result: _Result, sizes: tuple[int, ...]
) -> tuple[DirectionResult, DirectionResult]:
    """Return what was read and written: the counts are exact, rates are rounded by fio."""
    reads, writes = _issued(result)
    found = {"read": NOTHING, "write": NOTHING}
    direction = None
    for line in result.lines:
        if (heading := _DIRECTION.match(line)) is not None:
            direction = heading[1]
            requests, least, most = (
                (reads, *sizes[:2]) if direction == "read" else (writes, *sizes[2:])
            )
            transferred = requests * least if least == most else _transferred_bytes(line)
            found[direction] = _result(requests, transferred, int(heading[2]) / 1000)
        elif direction is not None and (latency := _LATENCY.match(line)) is not None:
            mean_s = float(latency[2]) * _SECONDS[latency[1]]
            found[direction] = msgspec.structs.replace(
                found[direction], mean_latency_s=mean_s or None
            )
    if reads + writes and not any(each.requests for each in found.values()):
        raise DiskslaError(
            f"job '{result.name}': found reads and writes reported together; expected each"
            " (unified_rw_reporting=0)"
        )
    return found["read"], found["write"]


def _issued(result: _Result) -> tuple[int, int]:
    """Return how many reads and writes were done."""
    for line in result.lines:
        issued = _ISSUED.match(line)
        if issued is not None:
            reads, writes = (int(each) for each in issued.groups() if each is not None)
            return reads, writes
    raise DiskslaError(f"job '{result.name}': found no number of requests ('issued')")


def _result(requests: int, transferred_bytes: int, runtime_s: float) -> DirectionResult:
    if not runtime_s:
        raise DiskslaError("found a runtime of 0 ms; expected a result of fio")
    return done_within(requests, transferred_bytes, runtime_s, None)


def _transferred_bytes(line: str) -> int:
    """Return the amount that fio prints, with three or four digits."""
    amounts = _TRANSFERRED.findall(line)
    if not amounts:
        raise DiskslaError(f"found '{line.strip()[:60]}'; expected an amount of data")
    number, prefix = amounts[-1]
    return round(float(number) * _FACTORS[prefix])


def _percentiles(result: _Result) -> tuple[Percentile, ...]:
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


def _options(lines: Sequence[str]) -> dict[str, str]:
    """Return the options of a command line or job file that have one value only."""
    values: dict[str, set[str]] = {}
    for line in lines:
        for option, value in _OPTION.findall(line):
            values.setdefault(option, set()).add(value)
    return {option: each.pop() for option, each in values.items() if len(each) == 1}


def _is_direct(options: dict[str, str]) -> bool | None:
    if "buffered" in options:
        return options["buffered"] in _OFF
    return options["direct"] not in _OFF if "direct" in options else None
