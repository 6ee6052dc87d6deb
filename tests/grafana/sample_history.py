"""An hour of scraped samples of a small fleet, in which each disk is in another state."""

import math
from collections.abc import Iterator
from itertools import chain

import msgspec
from prometheus_client.core import Metric as Family

from disksla.kernel.consumers.consumer_totals import ConsumerSums, ConsumerTotals
from disksla.kernel.disks.disk import disk_key
from disksla.kernel.procfs.iowait import HostWait
from disksla.promise.catalogue.limits import Limits
from disksla.serve.metrics.collector import Reports, SnapshotCollector
from disksla.state.pipeline.slow import SlowTotals
from disksla.state.pipeline.snapshot import DiskSnapshot, GroupSnapshot, Snapshot
from disksla.state.pipeline.totals import VerdictTotals
from disksla.verdict.credits.account import CreditLevel
from disksla.verdict.throttling.throttle import LIMIT_KINDS, MACHINE_LIMITS
from disksla.verdict.throttling.verdict import VERDICTS
from support.reports import RESULTS, a_report
from support.snapshots import (
    ABOUT,
    BURST_LIMITS,
    IOPS_CREDITS,
    SEPARATE_LIMITS,
    changed,
    disk_view,
    group_view,
    probed_disk_view,
    unknown_disk_view,
    view,
)

HOUR_S = 3600
STEP_S = 15
JOB = "disksla"
EMPTY = CreditLevel("iops", 8000.0, 0.0, 0.0, 0.0, 0.0)
FULL = CreditLevel("iops", 8000.0, 8000.0, 8000.0, 8000.0, math.inf)


def make_disk(
    name: str,
    limits: Limits = SEPARATE_LIMITS,
    credits_: tuple[CreditLevel, ...] = (),
    limit: str = "iops",
    groups: tuple[str, ...] = (),
    **shares: float,
) -> DiskSnapshot:
    """Return a disk after an hour with these shares of verdicts; the rest was idle."""
    seconds = {verdict: HOUR_S * shares.get(verdict, 0.0) for verdict in VERDICTS}
    seconds["idle"] = HOUR_S * (1 - sum(shares.values()))
    throttled_s = seconds["throttled"]
    disk = disk_view(name, limits)
    return changed(
        disk,
        disk=msgspec.structs.replace(disk.disk, serial=f"serial of {name}"),
        credits=credits_,
        groups=groups,
        consumers=ConsumerTotals(
            watched_s=throttled_s,
            requests=ConsumerSums({("a.service", "postgres"): 9e5, ("kernel", ""): 1e5}),
            bytes=ConsumerSums({("a.service", ""): 9e9, ("b.service", ""): 1e9}),
        ),
        verdict_totals=VerdictTotals(
            seconds=tuple(seconds.values()),
            throttled_s=tuple(throttled_s * (kind == limit) for kind in LIMIT_KINDS),
            wait_s=31 * throttled_s,
            host=HostWait(throttled_s, throttled_s / 2, throttled_s / 4),
        ),
    )


def claimed(disk: DiskSnapshot, claim: str) -> DiskSnapshot:
    """Return the disk as the volume of a claim in the namespace `db`."""
    volume = msgspec.structs.replace(
        disk.disk,
        csi_driver="ebs.csi.aws.com",
        volume_handle=f"vol-{claim}",
        claim=claim,
        namespace="db",
    )
    return changed(disk, disk=volume)


def probed(disk: DiskSnapshot) -> DiskSnapshot:
    """Return the disk with results of probes."""
    probes = probed_disk_view().probes
    written = msgspec.structs.replace(
        probes["read-latency"], skips=probes["write-latency"].skips, failures={"timeout": 3}
    )
    both = {**probes, "write-latency": written}
    return changed(disk, probes=both)


def slow(disk: DiskSnapshot) -> DiskSnapshot:
    """Return the disk after an hour in which it was slow for a third of the time."""
    totals = SlowTotals(above_promise_s=HOUR_S / 12, above_usual_s=HOUR_S / 4)
    return changed(disk, slow=totals)


def make_group(*devices: str, name: str = "ebs", **shares: float) -> GroupSnapshot:
    """Return a group after an hour, in which it was at its limits for these shares of the time."""
    group = group_view()
    return changed(
        group,
        shared=msgspec.structs.replace(group.shared, name=name),
        devices=devices,
        throttled_s={limit: HOUR_S * shares.get(limit, 0.0) for limit in MACHINE_LIMITS},
    )


FLEET: dict[str, Snapshot] = {
    "db-1:10056": view(
        claimed(probed(make_disk("vda", met=0.2, throttled=0.1, below=0.3)), "data-pg-0"),
        make_disk("vdb", BURST_LIMITS, (EMPTY,), throttled=0.8, met=0.1),
        make_disk("vdc", throttled=0.4, unproven=0.5),
        claimed(make_disk("vdd", met=0.1, stalled=0.2), "data-pg-1"),
    ),
    "db-2:10056": view(
        claimed(
            make_disk("vda", BURST_LIMITS, (IOPS_CREDITS,), groups=("ebs",), unproven=0.5),
            "data-pg-0",
        ),
        make_disk("vdb", BURST_LIMITS, (FULL,), limit="unknown", throttled=0.5),
        make_disk("vdc"),
        make_disk(
            "vdd", limit="machine_iops", groups=("ebs",), throttled=0.6, met=0.06, below=0.04
        ),
        slow(make_disk("vde", unproven=0.5)),
        unknown_disk_view("sda"),
        groups=(
            make_group("vda", "vdd", iops=0.6),
            make_group("vdc", name="local", bandwidth=0.02),
        ),
    ),
}
REPORTS = {"db-1:10056": {disk_key(FLEET["db-1:10056"].disks[0].disk) or "": a_report(*RESULTS)}}
"""The first disk failed its acceptance test."""
STATES = {
    ("db-1:10056", "vda"): 7,
    ("db-1:10056", "vdb"): 4,
    ("db-1:10056", "vdc"): 3,
    ("db-1:10056", "vdd"): 8,
    ("db-2:10056", "vda"): 1,
    ("db-2:10056", "vdb"): 2,
    ("db-2:10056", "vdc"): 0,
    ("db-2:10056", "vdd"): 5,
    ("db-2:10056", "vde"): 6,
}
"""Expected state of each disk (grafana/state.libsonnet); sda was not assessed and has none."""


def openmetrics(end_s: int) -> str:
    """Return the hour before `end_s` for `promtool tsdb create-blocks-from openmetrics`.

    Counters grow evenly from 0 to the values of the snapshots; gauges are constant.
    """
    return "".join(chain.from_iterable(_families(end_s))) + "# EOF\n"


def _families(end_s: int) -> Iterator[Iterator[str]]:
    for instance, snapshot in FLEET.items():
        everything = changed(snapshot, profile="full")
        yield _samples(end_s, "up", {"instance": instance}, 1.0, rises=False)
        for family in _collect(everything, REPORTS.get(instance, {})):
            yield from _family_samples(end_s, instance, family)


def _collect(snapshot: Snapshot, reports: Reports) -> Iterator[Family]:
    return SnapshotCollector(lambda: snapshot, lambda: ABOUT, lambda: reports).collect()


def _family_samples(end_s: int, instance: str, family: Family) -> Iterator[Iterator[str]]:
    for sample in family.samples:
        labels = {**sample.labels, "instance": instance}
        rises = family.type in {"counter", "histogram"}
        yield _samples(end_s, sample.name, labels, sample.value, rises=rises)


def _samples(
    end_s: int, name: str, labels: dict[str, str], value: float, *, rises: bool
) -> Iterator[str]:
    printed = ",".join(f'{key}="{text}"' for key, text in labels.items())
    series = f'{name}{{job="{JOB}",{printed}}}'
    for ago_s in range(HOUR_S, -1, -STEP_S):
        sampled = value * (1 - ago_s / HOUR_S) if rises else value
        yield f"{series} {_number(sampled)} {end_s - ago_s}\n"


def _number(value: float) -> str:
    return "+Inf" if math.isinf(value) else repr(float(value))
