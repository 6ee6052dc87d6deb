"""Parse fio results in JSON that were made elsewhere: their loads, with options and measurements.

Source: https://fio.readthedocs.io/en/latest/fio_doc.html, JSON output of fio 3.1 and later.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import msgspec

from disksla.errors import DiskslaError
from disksla.fio import NOTHING, DirectionResult, FioResult, Pattern, parse_fio, parse_fio_version
from disksla.verification.fio_documents import Entry, FioDocument, Job, fio_documents, jobs_of
from disksla.verification.fio_options import (
    OFF,
    Options,
    count,
    depth,
    engine_of,
    is_direct,
    is_paced,
    option,
    part,
    pattern_of,
    places,
    queue_depth,
    rate_iops,
    size,
)
from disksla.verification.measurement import (
    SHOWN_SHARES,
    Measurement,
    Percentile,
    at_the_same_time,
    mean_request_bytes,
    not_judged,
    percentiles_of,
)
from disksla.verification.places import disks_used

_MIXED_SIZES = {
    *("bssplit", "bsrange", "blocksize_range", "bs_unaligned", "blocksize_unaligned"),
    "bs_is_seq_rand",
}
_LARGEST = 2**63
_MOST_INFLIGHT_SHARE = 1.25
"""Requests in flight on average, of those that a job may have; more are of other jobs."""
_SIZE_SHARE = 0.1
"""Share by which the mean size of requests may differ from `bs`, as they are counted at other
moments than the bytes."""
_SUMS_JOBS = (
    "its entry sums more jobs than its options say, as group_reporting does; run fio without"
    " group_reporting"
)


def parse_fio_jobs(text: str) -> tuple[Measurement, ...]:
    """Return a measurement for each load in the results of one or several runs of fio.

    Clones of a job, and jobs that ran at the same time on one disk, are one load. What cannot be
    judged has a problem. Raise DiskslaError if the text is not a result.
    """
    documents, is_cut = fio_documents(text)
    loads = [load for document in documents for load in _loads(document)]
    if is_cut:
        loads.append(not_judged("a document of fio", "fio", "it is cut off, or not valid JSON"))
    return tuple(loads)


def _loads(document: FioDocument) -> Iterator[Measurement]:
    """Return the loads of each client, which is a machine with disks of its own."""
    for host, jobs in groupby(jobs_of(document), key=lambda job: job.host):
        yield from _loads_of_host(document, host, list(jobs))


def _loads_of_host(document: FioDocument, host: str, jobs: Sequence[Job]) -> Iterator[Measurement]:
    """Return the loads of a machine, and by disk, if each file is on a disk of its own."""
    disks = [disk for disk in document.disks if disk.hostname == host]
    stacks = {disk.name for disk in disks if disk.aggr_read_ios is not None}
    used = {disk.name for disk in disks if disk.read_ios + disk.write_ios > 0} - stacks
    is_apart = not stacks and 1 < len(used) == len(_places(jobs))
    for together in _at_the_same_time(jobs):
        for load in _by_place(together) if is_apart else [together]:
            own = _places(load)
            targets = own if is_apart and len(own) == 1 else disks_used(own, used, stacks)
            measurement = at_the_same_time([_attempt(document.version, job) for job in load])
            yield msgspec.structs.replace(measurement, targets=tuple(sorted(targets)))


def _at_the_same_time(jobs: Sequence[Job]) -> list[list[Job]]:
    """Return the jobs of each load: `stonewall` starts a new one, `new_group` only a new group."""
    loads = [[jobs[0]]]
    for earlier, later in pairwise(jobs):
        is_new_load = "stonewall" in later.options or "new_group" not in later.options
        if earlier.group == later.group or not is_new_load:
            loads[-1].append(later)
        else:
            loads.append([later])
    return loads


def _by_place(jobs: Sequence[Job]) -> list[list[Job]]:
    """Return the jobs by the place of their files, if each has only one."""
    if any(len(places(job.options)) > 1 for job in jobs):
        return [list(jobs)]
    return [[job for job in jobs if places(job.options) == {place}] for place in _places(jobs)]


def _places(jobs: Sequence[Job]) -> list[str]:
    return sorted({place for job in jobs for place in places(job.options)})


def _attempt(version: str, job: Job) -> Measurement:
    """Return the measurement of a job, or why there is none."""
    name = f"{job.name} (host {job.host})" if job.host else job.name
    try:
        return _measurement(version, name, job)
    except DiskslaError as error:
        return not_judged(name, version, str(error))


def _measurement(version: str, name: str, job: Job) -> Measurement:
    parse_fio_version(version)
    options = job.options
    pattern, workers = pattern_of(options), _workers(job)
    direction = _direction(pattern)
    result = _result(version, job.entries)
    # Reads of a job that writes are those of `verify`, at another time.
    read = NOTHING if direction == "write" else _with_latency(result.read)
    write = NOTHING if direction == "read" else _with_latency(result.write)
    measured = write if direction == "write" else read
    request_bytes = _request_bytes(options, pattern, read, write)
    rate = rate_iops(options, direction, request_bytes)
    load = Measurement(
        name=name,
        tool=result.version,
        pattern=pattern,
        request_bytes=request_bytes,
        inflight=workers * depth(options),
        read=read,
        write=write,
        percentiles=()
        if direction is None
        else percentiles_of(measured.bins) or _percentiles(job.entries, direction),
        rate_iops=None if rate is None else rate * workers,
        is_direct=is_direct(options, engine_of(options)) or False,
        is_paced=is_paced(options),
    )
    if _sums_several_jobs(job, result, load, workers * queue_depth(options)):
        raise DiskslaError(_SUMS_JOBS)
    return load


def _workers(job: Job) -> int:
    """Return the number of clones, which old versions of fio do not print."""
    clones, entries = count(job.options, "numjobs", 1), len(job.entries)
    if entries > 1 and entries % clones:
        raise DiskslaError(f"found {entries} results of {clones} clones; expected one of each")
    return max(clones, entries)


def _sums_several_jobs(job: Job, result: FioResult, load: Measurement, most_inflight: int) -> bool:
    """Return whether an entry has requests that its options do not explain."""
    if len(job.entries) > 1:
        return False
    [entry] = job.entries
    only = _direction(load.pattern)
    other = result.read if only == "write" else result.write if only == "read" else NOTHING
    if other.requests and (only == "read" or job.options.get("verify", "0") in OFF):
        return True
    sizes = [(each, name) for each, name in ((load.read, "read"), (load.write, "write"))]
    if not _MIXED_SIZES & job.options.keys() and any(
        abs(each.bytes / _bytes_of(job.options, name) - each.requests)
        > _SIZE_SHARE * each.requests
        for each, name in sizes
    ):
        return True
    measured = load.measured
    mean = measured.iops * (measured.mean_latency_s or 0.0)
    return mean > _MOST_INFLIGHT_SHARE * most_inflight or _least_jobs(entry) > max(
        1, count(job.options, "numjobs", 1)
    )


def _least_jobs(entry: Entry) -> int:
    """Return how many jobs an entry has at least: each ran for no longer than the run took."""
    total_ms, longest_s = entry.get("job_runtime"), entry.get("elapsed")
    if not isinstance(total_ms, int) or not isinstance(longest_s, int) or longest_s <= 0:
        return 1
    return math.ceil(min(total_ms, _LARGEST) / (1000 * longest_s) - _SIZE_SHARE)


def _direction(pattern: Pattern) -> str | None:
    """Return the only direction of a pattern; None for a mix."""
    return {"randread": "read", "read": "read", "randwrite": "write", "write": "write"}.get(
        pattern
    )


def _with_latency(result: DirectionResult) -> DirectionResult:
    """Return a result without the latency of 0 that fio prints if it did not measure it."""
    return msgspec.structs.replace(result, mean_latency_s=result.mean_latency_s or None)


def _bytes_of(options: Options, direction: str) -> int:
    text = option(options, "bs", "blocksize", default="4k")
    return size(options, part(text, direction))


def _request_bytes(
    options: Options, pattern: Pattern, read: DirectionResult, write: DirectionResult
) -> int:
    """Return the size of the requests; their mean if they have several sizes."""
    sizes = [_bytes_of(options, direction) for direction in ("read", "write")]
    direction = _direction(pattern)
    if _MIXED_SIZES & options.keys() or (direction is None and sizes[0] != sizes[1]):
        return mean_request_bytes(read, write)
    return sizes[1] if direction == "write" else sizes[0]


def _result(version: str, entries: Sequence[Entry]) -> FioResult:
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


def _percentiles(entries: Sequence[Entry], direction: str) -> tuple[Percentile, ...]:
    """Return the percentiles that fio computed; those of several clones cannot be combined."""
    known = entries[0][direction]["clat_ns"].get("percentile") if len(entries) == 1 else None
    if not isinstance(known, dict):
        return ()
    found = ((share, known.get(f"{100 * share:.6f}")) for share in SHOWN_SHARES)
    return tuple(
        Percentile(share, value / 1e9)
        for share, value in found
        if isinstance(value, int) and 0 <= value < _LARGEST
    )
