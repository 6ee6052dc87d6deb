"""Parse fio results in JSON that were made elsewhere: their loads, with options and measurements.

A text may have several runs, interim states of a run (with --status-interval fio prints the whole
document again and again, with the sums so far), and clients.
Source: https://fio.readthedocs.io/en/latest/fio_doc.html, JSON output of fio 3.1 and later.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from disksla.base.errors import DiskslaError
from disksla.measure.fio import (
    NOTHING,
    DirectionResult,
    FioResult,
    parse_fio,
    parse_fio_version,
    total_result,
)
from disksla.measure.verification.fio_options import (
    OFF,
    Options,
    count,
    load_of,
    merged,
    pattern_of,
    places,
    seconds_of,
    with_device,
)
from disksla.measure.verification.measurement import (
    SHOWN_SHARES,
    Measurement,
    Percentile,
    UsedDisk,
    at_the_same_time,
    counted_inflight,
    disks_used,
    mean_request_bytes,
    not_judged,
    percentiles_of,
)

_START = re.compile(r'^[ \t]*\{(?=\s*["}])', re.MULTILINE)
_NEXT = re.compile(r'[\s,]*\{(?=\s*["}])')
"""Braces that may begin an object, since the message of an error costs a search of the text."""
_NO_NUMBER = re.compile(r"(:\s*)[+-]?(?:nan|inf)\b")
"""What fio prints for undefined values; JSON does not allow it."""
_SURROGATE = re.compile(r"(?<!\\)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Half of a character, which no text can hold."""
_LEAST_NEW_SHARE = 0.9
"""Share of its runtime that lies between a run and the end of the run before it."""

_MOST_INFLIGHT_SHARE = 1.25
"""Requests in flight on average, of those that a job may have; more are of other jobs."""
_LATE_SHARE = 0.1
"""Share of the runtime by which a job may begin after another."""
_MOST_EXTRA_JOBS = 0.5
"""How many more jobs the runtimes of all may be, as they contain the time to start and end."""
_SIZE_SHARE = 0.01
"""Share by which the mean size may differ, as requests and bytes are counted at other moments."""
_IN_TURN = "its jobs did not run at the same time (wait_for, startdelay); use stonewall"
_SUMS_JOBS = (
    "its entry sums more jobs than its options say, as group_reporting does; run fio without"
    " group_reporting"
)

_Entry = dict[str, Any]


class _Job(msgspec.Struct, frozen=True):
    """What identifies a job and its clones."""

    jobname: str
    groupid: int
    own_options: dict[str, Any] = msgspec.field(name="job options", default_factory=dict)
    hostname: str = ""


class _Document(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="fio version")
    jobs: Annotated[list[_Entry], msgspec.Meta(min_length=1)] | None = None
    clients: list[_Entry] = msgspec.field(name="client_stats", default_factory=list)
    global_options: dict[str, Any] = msgspec.field(name="global options", default_factory=dict)
    disks: list[UsedDisk] = msgspec.field(name="disk_util", default_factory=list)
    timestamp_s: int = msgspec.field(name="timestamp", default=0)


class _Clones(NamedTuple):
    """A job with its clones: without group_reporting, each of them has an entry."""

    name: str
    group: int
    options: Options
    host: str
    entries: list[_Entry]

    @property
    def progress(self) -> list[tuple[float, float]]:
        """Runtimes in ms, and numbers of requests."""
        directions = [
            direction if isinstance(direction := entry.get(name), dict) else {}
            for entry in self.entries
            for name in ("read", "write", "mixed")
        ]
        return [
            (_number(each.get("runtime")), _number(each.get("total_ios"))) for each in directions
        ]

    @property
    def runtime_s(self) -> float:
        """For how long it read or wrote."""
        return max(runtime_ms for runtime_ms, _ in self.progress) / 1000


class _Run(NamedTuple):
    """What one run of fio printed, of all its clients."""

    document: _Document
    jobs: list[_Clones]


def parse_fio_jobs(text: str) -> tuple[Measurement, ...]:
    """Return a measurement for each load in the results of one or several runs of fio.

    Clones of a job, and jobs that ran at the same time on one disk, are one load. What cannot be
    judged has a problem. Raise DiskslaError if the text is not a result.
    """
    decoded, errors = _decode(_SURROGATE.sub("?", _NO_NUMBER.sub(r"\1null", text)).rstrip())
    found = [document for value in decoded for document in _inside(value)]
    if not found and (errors or not decoded):
        raise DiskslaError(f"invalid JSON of fio: {errors[0] if errors else 'found no object'}")
    runs: list[_Run] = []
    try:
        for value in found or decoded:
            run = _run(msgspec.convert(value, _Document, strict=False))
            if runs and _continues(runs[-1], run):
                runs.pop()
            runs.append(run)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise DiskslaError(f"invalid JSON of fio: {error}") from None
    if not any(run.jobs for run in runs):
        raise DiskslaError("invalid JSON of fio: found no job, or only the sum of all clients")
    loads = [load for run in runs for load in _loads(run)]
    return (*loads, *(not_judged("a document of fio", "fio", error) for error in errors[:1]))


def _run(document: _Document) -> _Run:
    """Return the jobs, of one client after another, without the sum of all clients.

    Raise msgspec.ValidationError if an entry is not that of a job.
    """
    entries = [
        entry
        for entry in (*(document.jobs or ()), *document.clients)
        if "hostname" in entry or entry.get("jobname") != "All clients"
    ]
    jobs: list[_Clones] = []
    for entry in sorted(entries, key=lambda entry: str(entry.get("hostname", ""))):
        found = msgspec.convert(entry, _Job)
        options = merged(document.global_options, found.own_options)
        options = with_device(options, found.jobname)
        job = _Clones(found.jobname, found.groupid, options, found.hostname, [entry])
        if jobs and jobs[-1][:-1] == job[:-1]:
            jobs[-1].entries.append(entry)
        else:
            jobs.append(job)
    return _Run(document, jobs)


def _decode(text: str) -> tuple[list[_Entry], list[str]]:
    """Return the objects that start a line or follow another one, and why others are none."""
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=lambda _: None)
    found: list[_Entry] = []
    errors: list[str] = []
    start = _next_start(text, 0) if _START.search(text) else text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
            found.append(value)
            start = _next_start(text, end)
        except (ValueError, RecursionError) as error:
            if text[max(0, start - 1)] in "{\n":  # not an object in one that is cut off
                is_end = getattr(error, "pos", 0) >= len(text) - 1 or "Untermin" in str(error)
                errors.append("it is cut off" if is_end else str(error))
            start = _next_start(text, start + 1)
    return found, errors


def _next_start(text: str, place: int) -> int:
    """Return where the next object may start; -1 at the end."""
    found = _NEXT.match(text, place) or _START.search(text, place)
    return -1 if found is None else found.end() - 1


def _inside(value: Any) -> Iterator[_Entry]:
    """Return the documents in what another program may have written around them."""
    if isinstance(value, dict) and "fio version" in value:
        yield value
    elif isinstance(value, str) and '"fio version"' in value:  # the output of a program
        yield from (document for each in _decode(value)[0] for document in _inside(each))
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _inside(each)


def _object(pairs: list[tuple[str, Any]]) -> _Entry:
    """Return an object. fio repeats the key `filename` for each line that adds files."""
    found = dict(pairs)
    if len(found) < len(pairs) and "filename" in found:
        found["filename"] = ":".join(str(value) for key, value in pairs if key == "filename")
    return found


def _continues(earlier: _Run, later: _Run) -> bool:
    """Return whether a run is a later state of the same one.

    Its jobs are the same, and have run for longer and done no less. A run of its own has
    its whole runtime after the end of the one before it.
    """
    versions = {run.document.version for run in (earlier, later)}
    jobs, same = ([job[:-1] for job in run.jobs] for run in (earlier, later))
    before, after = (
        [each for job in run.jobs for each in job.progress] for run in (earlier, later)
    )
    if len(versions) > 1 or jobs != same or len(before) != len(after):
        return False
    no_less = all(
        runtime_ms <= later_ms and requests <= later_requests
        for (runtime_ms, requests), (later_ms, later_requests) in zip(before, after, strict=True)
    )
    has_run = sum(each[0] for each in after) > sum(each[0] for each in before)
    longest_s = max(after, default=(0.0, 0.0))[0] / 1000
    passed_s = later.document.timestamp_s - earlier.document.timestamp_s
    return no_less and has_run and passed_s < _LEAST_NEW_SHARE * longest_s


def _loads(run: _Run) -> Iterator[Measurement]:
    """Return the loads of each client, which is a machine with disks of its own."""
    for host, jobs in groupby(run.jobs, key=lambda job: job.host):
        disks = [disk for disk in run.document.disks if disk.hostname == host]
        loads = list(_loads_of_host(run.document.version, disks, list(jobs)))
        if len(loads) == 1:  # the disk has only counted this one
            counted = counted_inflight(loads[0], disks)
            loads = [replace(loads[0], counted_inflight=counted)]
        yield from loads


def _loads_of_host(
    version: str, disks: Sequence[UsedDisk], jobs: Sequence[_Clones]
) -> Iterator[Measurement]:
    """Return the loads of a machine, and by disk, if each file is on a disk of its own."""
    used = [disk for disk in disks if disk.is_used]
    has_stack = any(disk.aggr_read_ios is not None for disk in disks)
    is_apart = not has_stack and 1 < len(used) == len(_places(jobs))
    for together in _at_the_same_time(jobs):
        for load in _by_place(together) if is_apart else [together]:
            own = _places(load)
            targets = own if is_apart and len(own) == 1 else disks_used(own, disks)
            measurement = at_the_same_time([_attempt(version, job) for job in load])
            problem = measurement.problem or (_IN_TURN if _began_late(load) else "")
            yield replace(measurement, targets=tuple(sorted(targets)), problem=problem)


def _at_the_same_time(jobs: Sequence[_Clones]) -> list[list[_Clones]]:
    """Return the jobs of each load: `stonewall` starts a new one, `new_group` only a new group."""
    loads = [[jobs[0]]]
    for earlier, later in pairwise(jobs):
        is_new_load = "stonewall" in later.options or "new_group" not in later.options
        if earlier.group == later.group or not is_new_load:
            loads[-1].append(later)
        else:
            loads.append([later])
    return loads


def _began_late(jobs: Sequence[_Clones]) -> bool:
    """Return whether a job began later than another. Newer versions of fio print when."""
    starts_s = [_number(entry.get("job_start")) / 1000 for job in jobs for entry in job.entries]
    if not all(starts_s):
        if len({job.options.get("wait_for") for job in jobs}) > 1:
            return True
        starts_s = [seconds_of(job.options.get("startdelay", "")) for job in jobs]
    longest_s = max(job.runtime_s for job in jobs)
    return max(starts_s) - min(starts_s) > _LATE_SHARE * longest_s


def _by_place(jobs: Sequence[_Clones]) -> list[list[_Clones]]:
    """Return the jobs by the place of their files, if each has only one."""
    if any(len(places(job.options)) > 1 for job in jobs):
        return [list(jobs)]
    return [[job for job in jobs if places(job.options) == {place}] for place in _places(jobs)]


def _places(jobs: Sequence[_Clones]) -> list[str]:
    return sorted({place for job in jobs for place in places(job.options)})


def _attempt(version: str, job: _Clones) -> Measurement:
    """Return the measurement of a job, or why there is none."""
    name = f"{job.name} (host {job.host})" if job.host else job.name
    try:
        return _measurement(version, name, job)
    except DiskslaError as error:
        return not_judged(name, version, str(error))


def _measurement(version: str, name: str, job: _Clones) -> Measurement:
    parse_fio_version(version)
    options = job.options
    pattern, workers = pattern_of(options), _workers(job)
    result = _result(version, job.entries)
    read, write = (  # fio prints a latency of 0 if it did not measure it
        replace(each, mean_latency_s=each.mean_latency_s or None)
        for each in (result.read, result.write)
    )
    if pattern in {"write", "randwrite"} and options.get("verify", "0") not in OFF:
        read = NOTHING  # at another time
    used = [name for name, each in (("read", read), ("write", write)) if each.requests]
    if len(used) > 1:  # a mix, or the sum of a group, with the options of its last job
        pattern = "randrw" if pattern.startswith("rand") else "rw"
    percentiles: tuple[Percentile, ...] = ()
    if len(used) == 1 and pattern not in {"rw", "randrw"}:
        bins = total_result((read, write)).bins
        percentiles = percentiles_of(bins) or _percentiles(job.entries, used[0])
    load = load_of(
        options,
        name,
        result.version,
        pattern=pattern,
        request_bytes=_request_bytes(read, write),
        clones=workers,
    )
    load = replace(
        load, read=read, write=write, percentiles=percentiles, is_direct=load.is_direct or False
    )
    is_other = pattern not in {"rw", "randrw"} and not set(used) <= {pattern.removeprefix("rand")}
    if is_other or _sums_several_jobs(job, load, workers):
        raise DiskslaError(_SUMS_JOBS)
    return load


def _workers(job: _Clones) -> int:
    """Return the number of clones, which old versions of fio do not print."""
    clones, entries = count(job.options, "numjobs", 1), len(job.entries)
    if entries > 1 and entries % clones:
        raise DiskslaError(f"found {entries} results of {clones} clones; expected one of each")
    return max(clones, entries)


def _sums_several_jobs(job: _Clones, load: Measurement, workers: int) -> bool:
    """Return whether an entry has more in flight, or ran for longer, than its options explain."""
    mean = load.measured.iops * (load.measured.mean_latency_s or 0.0)
    total_s = sum(_number(entry.get("job_runtime")) for entry in job.entries) / 1000
    of_one_s = job.runtime_s + seconds_of(job.options.get("ramp_time", ""))
    return mean > _MOST_INFLIGHT_SHARE * load.inflight or (
        total_s > (workers + _MOST_EXTRA_JOBS) * of_one_s and "verify" not in job.options
    )


def _request_bytes(read: DirectionResult, write: DirectionResult) -> int:
    """Return the mean size of the requests; a power of two, if it is one but for some requests."""
    mean = mean_request_bytes(read, write)
    power: int = 2 ** round(math.log2(mean))
    return power if abs(mean - power) <= _SIZE_SHARE * power else mean


def _result(version: str, entries: Sequence[_Entry]) -> FioResult:
    """Parse the entries of one job as the result of a run of only this job."""
    if any("mixed" in entry and "read" not in entry for entry in entries):
        raise DiskslaError(
            "it does not tell reads from writes; run fio without unified_rw_reporting=1"
        )
    document = {"fio version": version, "jobs": [entry | {"groupid": 0} for entry in entries]}
    try:
        return parse_fio(msgspec.json.encode(document).decode())
    except (UnicodeEncodeError, OverflowError) as error:
        raise DiskslaError(f"not valid fio JSON: {error}") from None


def _percentiles(entries: Sequence[_Entry], direction: str) -> tuple[Percentile, ...]:
    """Return the percentiles that fio computed; those of several clones cannot be combined."""
    known = entries[0][direction]["clat_ns"].get("percentile") if len(entries) == 1 else None
    if not isinstance(known, dict):
        return ()
    found = ((share, _number(known.get(f"{100 * share:.6f}"))) for share in SHOWN_SHARES)
    return tuple(Percentile(share, value / 1e9) for share, value in found if value > 0)


def _number(value: Any) -> float:
    """Return a number; 0 for other values."""
    return float(value) if isinstance(value, int | float) and abs(value) < 2**63 else 0.0
