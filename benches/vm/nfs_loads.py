"""Loads of fio on an NFS mount that is throttled, and the truth about them."""

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lab.options import write
from vm.limits import QemuLimits
from vm.nfs_guest import SERIAL, NfsGuest, Seen
from vm.truth import Wait, own_lines, read_trace, windows_of

WARM_S = 10
_MEASURE_S = 20
POINTS = 0.08
"""By which shares of time may differ."""


class Via(NamedTuple):
    """What throttles a mount: QEMU (`iops`, `bps`), or the proxy (`requests`, `bytes`)."""

    kind: str
    rate: int

    @property
    def is_disk(self) -> bool:
        """Whether QEMU does."""
        return self.kind in {"iops", "bps"}

    @property
    def terms(self) -> dict[str, object]:
        """The limit, as terms of the mount."""
        is_bandwidth = self.kind in {"bytes", "bps"}
        limit = {"bandwidth": f"{self.rate}B/s"} if is_bandwidth else {"iops": self.rate}
        return {"budget": "sum", **limit}


class Load(NamedTuple):
    """A load of fio on a mount."""

    name: str
    via: Via
    fio: str | None
    """Its options; None for PostgreSQL under pgbench."""
    is_known: bool = True
    """Whether the limit is in the configuration."""
    is_exact: bool = True
    """Whether throttled seconds are to be those of the truth, and not just no more."""


READ = "--direct=1 --bs=4k --rw=randread"
DEEP = "--ioengine=libaio --iodepth=8"
_URING = "--ioengine=io_uring --iodepth=8"
_DISK, _REQUEST_LIMIT = Via("iops", 60), Via("requests", 60)
LOADS = (
    Load("disk, psync", Via("iops", 40), f"{READ} --ioengine=psync"),
    Load("disk, libaio", _DISK, f"{READ} {DEEP}"),
    Load("disk, io_uring", _DISK, f"{READ} {_URING}"),
    Load("disk, no terms", _DISK, f"{READ} {DEEP}", is_known=False, is_exact=False),
    Load("disk, half the limit", _DISK, f"{READ} {DEEP} --rate_iops=30"),
    Load(
        "disk, written back",
        Via("bps", 2_000_000),
        "--bs=64k --rw=write --fsync=8",
        is_exact=False,
    ),
    Load("proxy, psync", Via("requests", 40), f"{READ} --ioengine=psync"),
    Load("proxy, libaio", _REQUEST_LIMIT, f"{READ} {DEEP}"),
    Load("proxy, writes", _REQUEST_LIMIT, f"{READ} {DEEP} --rw=randwrite"),
    Load("proxy, half the limit", _REQUEST_LIMIT, f"{READ} {DEEP} --rate_iops=30"),
    Load("proxy, PostgreSQL", _REQUEST_LIMIT, None, is_exact=False),
    Load("disk, PostgreSQL", _DISK, None, is_exact=False),
    Load("proxy, bytes", Via("bytes", 2_000_000), f"--direct=1 --bs=64k --rw=read {DEEP}"),
)


def waited_s(waits: Iterable[tuple[float, float]], begun_s: float, ended_s: float) -> float:
    """Return the time between two times in which anything waited."""
    found = [
        Wait(max(begun_s, begin_s), min(ended_s, end_s))
        for begin_s, end_s in waits
        if begin_s < ended_s and end_s > begun_s
    ]
    return sum(window.throttled_s for window in windows_of(found, [], begun_s, ended_s))


def unlike_truth(load: Load, throttled: float, truth: float) -> Iterator[str]:
    """Yield how the share of throttled time differs from the truth; both are of the time."""
    if throttled > truth + POINTS or (load.is_exact and throttled < truth - POINTS):
        yield f"{load.name}: {throttled:.0%} throttled; expected {truth:.0%}"


def under(nfs: NfsGuest, version: str, load: Load) -> Iterator[str]:
    """Yield how throttled time differs from the truth while a load runs."""
    if load.via.is_disk:
        nfs.machine.throttle(SERIAL, QemuLimits(**{load.via.kind: load.via.rate}))
    else:
        nfs.proxy(load.via.kind, load.via.rate)
    nfs.mount(version, proxied=not load.via.is_disk)
    nfs.configure(load.via.terms if load.is_known else None)
    if load.fio is None:
        nfs.begin_postgresql()
    else:
        nfs.begin(load.fio)
    time.sleep(WARM_S)
    before = nfs.seen()
    time.sleep(_MEASURE_S)
    after = nfs.seen()
    seconds = after.uptime_s - before.uptime_s
    truth = _true_s(nfs, load.via, before, after) / seconds
    throttled = after.since(before, "throttled") / seconds
    ticks = after.ticks_per_second(before)
    write(
        f"  v{version}, {load.name}: {throttled:.1%} throttled (true: {truth:.1%});"
        f" {ticks:.1f} ticks/s"
    )
    write(f"    {nfs.explained()}")
    yield from unlike_truth(load, throttled, truth)


def _true_s(nfs: NfsGuest, via: Via, before: Seen, after: Seen) -> float:
    """Return for how long requests waited for the limit."""
    if via.is_disk:
        trace = read_trace(own_lines(nfs.machine.trace_since(0)))
        waits = [
            (each.arrived_s, each.admitted_s or after.host_s)
            for each in trace.admissions
            if each.waited
        ]
        return waited_s(waits, before.host_s, after.host_s)
    lines = nfs.run("cat /run/proxy.log").splitlines()
    logged = [(float(begin), float(end)) for begin, end in map(str.split, lines)]
    return waited_s(logged, before.uptime_s, after.uptime_s)
