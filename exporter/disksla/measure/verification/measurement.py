"""One measurement with the conditions under which it ran, and where: by disksla, or imported.

The same record serves for what disksla measured itself and for results of fio or DiskSpd that
were made elsewhere.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from disksla.base.histogram import LatencyBin, quantile_s
from disksla.measure.fio import NOTHING, DirectionResult, FioJob, FioResult, Pattern, total_result

_LEAST_COUNTED_SHARE = 0.9
"""Share of the requests of a load that the kernel counted, if the counts are those of the load."""
SHOWN_SHARES = (0.5, 0.9, 0.99, 0.999)
"""The percentiles of latency in reports, as shares of the requests."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_NAME = re.compile(r"(?:(?:^|(?<=:))[A-Za-z]:(?=[\\/]))?(?:\\.|[^:\\])+")
"""One of the names that fio separates by colons, in which a backslash escapes a colon."""
_WINDOWS = re.compile(
    r"(?:\\\\[.?]\\)?(#\d{1,4}|PhysicalDrive\d{1,4}|Volume\{[^}]{1,60}\}"
    r"|[A-Z]:(?:\\ClusterStorage\\[^\\]{1,60})?|\\\\[^\\]{1,60}\\[^\\]{1,60})",
    re.IGNORECASE | re.ASCII,
)
"""A drive, a volume, a volume of a cluster, or a share of another machine."""


class UsedDisk(msgspec.Struct, frozen=True):
    """A disk that fio found behind the files of its jobs, and what the kernel counted there.

    Ticks are in ms: the time that each request took, added up.
    """

    name: str
    read_ios: _Count = 0
    write_ios: _Count = 0
    read_merges: _Count = 0
    write_merges: _Count = 0
    read_ticks: _Count = 0
    write_ticks: _Count = 0
    aggr_read_ios: _Count | None = None
    """Only for a disk that is built from others."""
    hostname: str = ""

    @property
    def is_used(self) -> bool:
        """Whether it had requests, and is not built from disks that had them."""
        return self.read_ios + self.write_ios > 0 and self.aggr_read_ios is None


class Percentile(msgspec.Struct, frozen=True):
    """The latency within which a share of the requests completed."""

    share: float
    seconds: float


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one load: one kind of request, or a mix of reads and writes."""

    name: str
    """Name of the job, as the tool that ran it reports it."""
    tool: str
    pattern: Pattern
    request_bytes: int
    """The mean, if requests have several sizes."""
    inflight: int
    """Requests in flight of all workers together."""
    read: DirectionResult = NOTHING
    write: DirectionResult = NOTHING
    percentiles: tuple[Percentile, ...] = ()
    rate_iops: float | None = None
    """The requested rate, reads and writes; None for as many requests as possible."""
    is_direct: bool | None = True
    """Whether the requests bypassed the cache of the operating system; None if unknown."""
    counted_inflight: float | None = None
    """Requests in flight at the disk on average, as the kernel counted them; None if unknown."""
    waits: str = ""
    """The option that makes requests wait for each other, so that the queue may drain."""
    is_paced: bool = False
    """Whether it paused between requests, so that it asked for less than it could."""
    targets: tuple[str, ...] = ()
    """The disks that were loaded, or directories of which it is not known whether they are on one
    disk; as far as the result names them."""
    problem: str = ""
    """Why it cannot be judged, as far as the result alone shows it."""

    @property
    def measured(self) -> DirectionResult:
        """Reads and writes together."""
        return total_result((self.read, self.write))

    @property
    def write_share(self) -> float:
        """Share of writes in the requests; 0 without requests."""
        return self.write.requests / max(1, self.measured.requests)

    @property
    def mean_inflight(self) -> float:
        """Requests in flight on average: as counted, else rate times latency (Little's law).

        It is `inflight` where the latency is unknown too. It is less if the load did not fill its
        queue: at a fixed rate, with pauses in between. The latency of fio may contain time in its
        own queue.
        """
        if self.counted_inflight is not None:
            return self.counted_inflight
        measured = self.measured
        if measured.mean_latency_s is None:
            return self.inflight
        return min(self.inflight, measured.iops * measured.mean_latency_s)


def not_judged(name: str, tool: str, problem: str) -> Measurement:
    """Return a load that cannot be judged."""
    return Measurement(
        name=name, tool=tool, pattern="randrw", request_bytes=1, inflight=1, problem=problem
    )


def measurement_of(job: FioJob, result: FioResult) -> Measurement:
    """Return the measurement of a job that only reads or only writes."""
    measured = result.write if job.writes else result.read
    return Measurement(
        name=job.name,
        tool=result.version,
        pattern=job.pattern,
        request_bytes=job.request_bytes,
        inflight=job.queue_depth * job.workers,
        read=NOTHING if job.writes else measured,
        write=measured if job.writes else NOTHING,
        percentiles=percentiles_of(measured.bins),
        rate_iops=job.rate_iops,
    )


def counted_inflight(load: Measurement, disks: Sequence[UsedDisk]) -> float | None:
    """Return the requests in flight of a load that fio ran alone, as the kernel counted them.

    None if its requests are not in the counts of one disk. Where that did more (a ramp, parts of
    large requests, flushes, other programs), the load has its share.
    """
    used = [disk for disk in disks if disk.is_used]
    measured = load.measured
    if len(used) != 1 or not measured.requests:
        return None
    [disk] = used
    done = disk.read_ios + disk.write_ios + disk.read_merges + disk.write_merges
    ticks_s = (disk.read_ticks + disk.write_ticks) / 1000
    if done < _LEAST_COUNTED_SHARE * measured.requests or ticks_s <= 0:
        return None
    return ticks_s / measured.runtime_s * min(1.0, measured.requests / done)


def at_the_same_time(parts: Sequence[Measurement]) -> Measurement:
    """Return the measurements of jobs that ran at the same time as that of one load."""
    if len(parts) == 1:
        return parts[0]
    read, write = (
        total_result([part.read for part in parts]),
        total_result([part.write for part in parts]),
    )
    sizes = {part.request_bytes for part in parts}
    rates = [part.rate_iops for part in parts if part.rate_iops is not None]
    directness = {part.is_direct for part in parts}
    return Measurement(
        name=" + ".join(dict.fromkeys(part.name for part in parts)),
        tool=parts[0].tool,
        pattern=_pattern_of({part.pattern for part in parts}),
        request_bytes=sizes.pop() if len(sizes) == 1 else mean_request_bytes(read, write),
        inflight=sum(part.inflight for part in parts),
        read=read,
        write=write,
        rate_iops=sum(rates) if len(rates) == len(parts) else None,
        is_direct=False if False in directness else None if None in directness else True,
        waits=next((part.waits for part in parts if part.waits), ""),
        is_paced=any(part.is_paced for part in parts),
        targets=tuple(sorted({target for part in parts for target in part.targets})),
        problem=next((part.problem for part in parts if part.problem), ""),
    )


def mean_request_bytes(read: DirectionResult, write: DirectionResult) -> int:
    """Return the mean size of the requests; 1 without requests."""
    return max(1, round((read.bytes + write.bytes) / max(1, read.requests + write.requests)))


def _pattern_of(patterns: set[Pattern]) -> Pattern:
    """Return the pattern of jobs together: random if one is, mixed if they are not the same."""
    if len(patterns) == 1:
        return patterns.pop()
    directions = {pattern.removeprefix("rand") for pattern in patterns}
    if directions in ({"read"}, {"write"}):
        return "randread" if directions == {"read"} else "randwrite"
    return "randrw" if any(pattern.startswith("rand") for pattern in patterns) else "rw"


def percentiles_of(bins: tuple[LatencyBin, ...]) -> tuple[Percentile, ...]:
    """Return the percentiles for reports; none without requests."""
    if not any(each.requests for each in bins):
        return ()
    return tuple(Percentile(share, quantile_s(bins, share)) for share in SHOWN_SHARES)


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a value of fio's options `filename` and `directory`."""
    return tuple(name.replace("\\:", ":") for name in _NAME.findall(text))


def windows_place(path: str) -> str | None:
    """Return the drive, volume or share of a path of Windows; None for other paths."""
    found = _WINDOWS.match(path)
    return None if found is None else found[1].upper()


def places_of(filename: str, directory: str) -> frozenset[str]:
    """Return the disks and directories in which a job of fio has its files."""
    directories = names_in(directory) or ("",)
    names = names_in(filename) or ("file",)
    return frozenset(_place(place, name) for place in directories for name in names)


def is_device(place: str) -> bool:
    """Return whether a place is a disk, and not a directory."""
    return place.startswith("/dev/") or windows_place(place) is not None


def disks_used(places: Iterable[str], disks: Sequence[UsedDisk]) -> set[str]:
    """Return the disks of a load, or its directories if they may be on several.

    A device that fio does not list is a disk of its own. What /dev/mapper/data is, is not known.
    """
    found = {disk.name for disk in disks if disk.is_used}
    known = tuple(disk.name for disk in disks if disk.is_used or disk.aggr_read_ios is not None)
    named = {place for place in places if is_device(place)}
    if not found:
        several = set(places)
        return several if len(several) > 1 else named
    others = {
        place
        for place in named
        if _parent(place) == "/dev" and not place.removeprefix("/dev/").startswith(known)
    }
    return found | others


def _place(directory: str, name: str) -> str:
    path = name if name.startswith(("/", "\\")) or not directory else f"{directory}/{name}"
    return windows_place(path) or (path if path.startswith("/dev/") else _parent(path))


def _parent(path: str) -> str:
    before, slash, _ = path.rpartition("/")
    return before or slash or "."
