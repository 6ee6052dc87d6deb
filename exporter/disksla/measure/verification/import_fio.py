"""Parse fio results in JSON that were made elsewhere: their loads, with options and measurements.

Source: https://fio.readthedocs.io/en/latest/fio_doc.html, JSON output of fio 3.1 and later.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import msgspec

from disksla.base.errors import DiskslaError
from disksla.measure.fio import (
    NOTHING,
    DirectionResult,
    FioResult,
    parse_fio,
    parse_fio_version,
    total_result,
)
from disksla.measure.verification.fio_documents import (
    Entry,
    FioDocument,
    Job,
    fio_documents,
    jobs_of,
    number,
)
from disksla.measure.verification.fio_options import (
    OFF,
    count,
    load_of,
    pattern_of,
    places,
    seconds_of,
)
from disksla.measure.verification.measurement import (
    SHOWN_SHARES,
    Measurement,
    Percentile,
    at_the_same_time,
    counted_inflight,
    mean_request_bytes,
    not_judged,
    percentiles_of,
)
from disksla.measure.verification.places import UsedDisk, disks_used

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


def parse_fio_jobs(text: str) -> tuple[Measurement, ...]:
    """Return a measurement for each load in the results of one or several runs of fio.

    Clones of a job, and jobs that ran at the same time on one disk, are one load. What cannot be
    judged has a problem. Raise DiskslaError if the text is not a result.
    """
    documents, errors = fio_documents(text)
    loads = [load for document in documents for load in _loads(document)]
    return (*loads, *(not_judged("a document of fio", "fio", error) for error in errors[:1]))


def _loads(document: FioDocument) -> Iterator[Measurement]:
    """Return the loads of each client, which is a machine with disks of its own."""
    for host, jobs in groupby(jobs_of(document), key=lambda job: job.host):
        disks = [disk for disk in document.disks if disk.hostname == host]
        loads = list(_loads_of_host(document.version, disks, list(jobs)))
        if len(loads) == 1:  # the disk has only counted this one
            counted = counted_inflight(loads[0], disks)
            loads = [msgspec.structs.replace(loads[0], counted_inflight=counted)]
        yield from loads


def _loads_of_host(
    version: str, disks: Sequence[UsedDisk], jobs: Sequence[Job]
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
            yield msgspec.structs.replace(
                measurement, targets=tuple(sorted(targets)), problem=problem
            )


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


def _began_late(jobs: Sequence[Job]) -> bool:
    """Return whether a job began later than another. Newer versions of fio print when."""
    starts_s = [number(entry.get("job_start")) / 1000 for job in jobs for entry in job.entries]
    if not all(starts_s):
        if len({job.options.get("wait_for") for job in jobs}) > 1:
            return True
        starts_s = [seconds_of(job.options.get("startdelay", "")) for job in jobs]
    longest_s = max(job.runtime_s for job in jobs)
    return max(starts_s) - min(starts_s) > _LATE_SHARE * longest_s


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
    result = _result(version, job.entries)
    read, write = (  # fio prints a latency of 0 if it did not measure it
        msgspec.structs.replace(each, mean_latency_s=each.mean_latency_s or None)
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
    load = msgspec.structs.replace(
        load, read=read, write=write, percentiles=percentiles, is_direct=load.is_direct or False
    )
    is_other = pattern not in {"rw", "randrw"} and not set(used) <= {pattern.removeprefix("rand")}
    if is_other or _sums_several_jobs(job, load, workers):
        raise DiskslaError(_SUMS_JOBS)
    return load


def _workers(job: Job) -> int:
    """Return the number of clones, which old versions of fio do not print."""
    clones, entries = count(job.options, "numjobs", 1), len(job.entries)
    if entries > 1 and entries % clones:
        raise DiskslaError(f"found {entries} results of {clones} clones; expected one of each")
    return max(clones, entries)


def _sums_several_jobs(job: Job, load: Measurement, workers: int) -> bool:
    """Return whether an entry has more in flight, or ran for longer, than its options explain."""
    mean = load.measured.iops * (load.measured.mean_latency_s or 0.0)
    total_s = sum(number(entry.get("job_runtime")) for entry in job.entries) / 1000
    of_one_s = job.runtime_s + seconds_of(job.options.get("ramp_time", ""))
    return mean > _MOST_INFLIGHT_SHARE * load.inflight or (
        total_s > (workers + _MOST_EXTRA_JOBS) * of_one_s and "verify" not in job.options
    )


def _request_bytes(read: DirectionResult, write: DirectionResult) -> int:
    """Return the mean size of the requests; a power of two, if it is one but for some requests."""
    mean = mean_request_bytes(read, write)
    power: int = 2 ** round(math.log2(mean))
    return power if abs(mean - power) <= _SIZE_SHARE * power else mean


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
    found = ((share, number(known.get(f"{100 * share:.6f}"))) for share in SHOWN_SHARES)
    return tuple(Percentile(share, value / 1e9) for share, value in found if value > 0)
