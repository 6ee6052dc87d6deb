"""Pages of metrics as the real program makes them, of a machine that has everything.

A disk with burst credits is throttled by a limiter, others are below their promise, slow and
stalled, two share a limit of the machine, and there is an NFS mount. The first is a volume of
Kubernetes, has flushes, probes, a verification, consumers and a statistics page. Whoever reads
series is tested with these pages: what is not on them does not exist.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import count

import msgspec
from prometheus_client import ProcessCollector
from prometheus_client.core import Sample
from prometheus_client.parser import text_string_to_metric_families

from disksla.base.units import GIB, KIB
from disksla.clouds.ebs_statistics.reading import Failure, Reading
from disksla.clouds.ebs_statistics.statistics_page import parse
from disksla.kernel.consumers.consumption import ConsumerReading, Consumption
from disksla.kernel.disks.disk import Disk, disk_key, nfs_disks
from disksla.kernel.nfs.mountstats import parse_mountstats
from disksla.kernel.procfs.iowait import HostWait
from disksla.kernel.procfs.mountinfo import parse_mountinfo
from disksla.measure.fio.result import LatencyBin
from disksla.measure.prometheus.query import Series
from disksla.promise.catalogue.limits import TermsSource
from disksla.promise.configuration.settings import PROBE_KINDS, Profile
from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.probe_results import ProbeResult
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick
from support.ebs_pages import Page
from support.machine_facts import configuration_of, terms_file
from support.nfs_client import Export, NfsClient
from support.reports import RESULTS, a_report
from support.scenarios import SCENARIOS
from support.simulated_limiter import DEVICE, Closed, Limiter, Scenario, run, summed
from support.snapshots import ABOUT, changed

TARGET = {"job": "disksla", "instance": "db-1:10056"}
THROTTLED, BELOW, SLOW, STALLED, SHARED, MOUNT = (
    *("vda", "vdb", "vdc", "vdd"), ("vde", "vdf"), "fs1.example:/export",
)  # fmt: skip
_SCENARIOS: Mapping[str, Scenario] = {
    THROTTLED: Scenario(
        limiter=Limiter(buckets=summed(300)), loads=(Closed(depth=8, write_share=0.5),)
    ),
    BELOW: SCENARIOS["below-60-of-100"],
    SLOW: SCENARIOS["unlimited-slow"],
    STALLED: SCENARIOS["unlimited-stalled"],
    **dict.fromkeys(SHARED, SCENARIOS["iops-300-deep"]),
}
_CONFIGURATION = f"""
disks:
  - match: {{device: {THROTTLED}}}
    terms:
      budget: sum
      iops: 300
      bandwidth: 60MB
      latency: 1ms
      burst: {{iops: 2000, iops_credits: 1000, bandwidth: 80MB, bandwidth_credits: 1GB}}
  - {{match: {{device: {BELOW}}}, terms: {{budget: sum, iops: 100}}}}
  - {{match: {{device: {SLOW}}}, terms: {{budget: sum, iops: 1000, latency: 1ms}}}}
  - match: {{device: {STALLED}}}
    terms: {{budget: sum, iops: 2000, burst: {{iops: 10000, iops_credits: 10000000}}}}
  - {{match: {{device: {SHARED[0]}}}, terms: aws.gp3}}
  - {{match: {{device: {SHARED[1]}}}, terms: aws.gp3}}
  - {{match: {{device: '{MOUNT}'}}, terms: {{budget: sum, iops: 1000}}}}
  - {{match: {{device: none}}, terms: aws.gp3}}
machine:
  limits:
    budget: sum
    iops: 590
    bandwidth: 100MB
    burst: {{iops: 2000, iops_credits: 1000, bandwidth: 200MB, bandwidth_credits: 1GB}}
  exclude: ['^vd[a-d]', '^fs1']
probes:
  - {{disks: [{THROTTLED}], kind: read-latency, every: 10m}}
  - {{disks: [{THROTTLED}], kind: write-latency, every: 60m}}
"""
_API = "{source: api, as_of: 2027-01-15T07:50:00Z, max_age: 2h, disks: []}"
_CLAIM = {
    "csi_driver": "ebs.csi.aws.com",
    "volume_handle": "vol-0a1b",
    "persistent_volume": "pvc-1",
    "claim": "data-pg-0",
    "namespace": "db",
    "storage_class": "fast",
}


def machine_states(seconds: float) -> Iterator[State]:
    """Yield the state after each tick of so many seconds."""
    runs = {name: run(replace(each, seconds=seconds)).ticks for name, each in _SCENARIOS.items()}
    state = State(configuration_of(_CONFIGURATION, terms_file(_API)))
    export = Export()
    client = NfsClient(export)
    inventory = (*_disks(), *nfs_disks(parse_mountinfo(client.mountinfo())))
    for number, ticks in enumerate(zip(*runs.values(), strict=True)):
        by_name = dict(zip(runs, ticks, strict=True))
        export.does("READ", 10, 64 * KIB, took_ms=20)
        export.does("COMMIT", 1)
        tick = msgspec.structs.replace(
            ticks[0],
            diskstats="".join(map(_line, by_name, ticks, count())),
            inflight={name: one.inflight[DEVICE] for name, one in by_name.items() if one.inflight},
            close={name: one.close[DEVICE] for name, one in by_name.items() if one.close},
            mounts=parse_mountstats(client.mountstats(), {export.point: MOUNT}).readings,
            host=HostWait(0.05 * number, 0.05 * number, 0.02 * number),
            data_writes={THROTTLED: (1, number)},
            disks=None if number else inventory,
            cpus=None if number else 2,
        )
        state = advance(state, tick if number % 10 else _with_events(tick, number // 10))
        yield state


def _disks() -> Iterator[Disk]:
    for minor, name in enumerate(_SCENARIOS):
        disk = Disk(
            name,
            254,
            minor,
            size_bytes=100 * GIB,
            serial=f"vol-{name}",
            model="QEMU",
            rotational=False,
            write_back=name == THROTTLED,
            mount_points=(f"/srv/{name}",),
            file_system_mounts=(f"/srv/{name}",),
            holders=("dm-0",),
        )
        yield msgspec.structs.replace(disk, **(_CLAIM if name in {THROTTLED, BELOW} else {}))


def _line(name: str, tick: Tick, minor: int) -> str:
    """Return the line of a disk in /proc/diskstats; a tenth of the writes are flushes."""
    numbers = [int(field) for field in (tick.diskstats or "").split()[3:]]
    if name == THROTTLED:
        numbers[15], numbers[16] = numbers[4] // 10, numbers[4]
    return f"254 {minor} {name} {' '.join(map(str, numbers))}\n"


def _with_events(tick: Tick, second: int) -> Tick:
    """Return a tick with what happens once a second."""
    now_s = tick.clocks.monotonic_s
    page = Page(
        queue_length=3,
        volume_exceeded_iops_us=900_000 * second,
        instance_exceeded_iops_us=100_000 * second,
    )
    unit = "postgresql@15-main.service"
    consumers = (
        Consumption(THROTTLED, unit, "postgres", requests=250.0),
        Consumption(THROTTLED, unit, bytes=1e6),
        Consumption(THROTTLED, "kernel", requests=50.0, bytes=2e5),
    )
    probes = [
        ProbeResult(
            device=THROTTLED,
            kind=kind,
            requests=100,
            achieved_iops=19.9,
            bins=(LatencyBin(0.0007, 99), LatencyBin(0.12, 1)),
            failure="timeout" if second % 5 == 3 else None,
            skipped="busy" if second % 5 == 4 else None,
            timestamp_s=tick.clocks.realtime_s,
            target_iops=20.0,
            duration_s=5.0,
        )
        for kind in PROBE_KINDS
    ]
    reading = Reading(THROTTLED, f"vol-{THROTTLED}", now_s, parse(page.written()))
    return msgspec.structs.replace(
        tick, provider=(Failure(THROTTLED, "status"), reading), probes=tuple(probes)
    ).with_readings([ConsumerReading({THROTTLED: (now_s - 1, now_s)}, consumers)])


@cache
def snapshots(seconds: int = 12, every_s: int = 4) -> Sequence[tuple[int, Snapshot]]:
    """Return what was scraped in so many seconds, with the seconds since the begin."""
    failed: Mapping[tuple[TermsSource, str], int] = {("api", "denied"): 1}
    return [
        (number // 10, Snapshot(state, terms_failures=failed))
        for number, state in enumerate(machine_states(seconds))
        if number and number % (10 * every_s) == 0
    ]


@cache
def page(after_s: int, profile: Profile = "default") -> str:
    """Return the page of one of the first snapshots, scraped after so many seconds."""
    return page_of(dict(snapshots())[after_s], profile)


def page_of(snapshot: Snapshot, profile: Profile = "default") -> str:
    """Return the page of a snapshot."""
    snapshot = changed(snapshot, profile=profile)
    disks = [each.disk for each in snapshot.disks if each.disk.name == THROTTLED]
    reports = {disk_key(disk) or "": a_report(*RESULTS) for disk in disks}
    registry = make_registry(SnapshotCollector(lambda: snapshot, lambda: ABOUT, lambda: reports))
    ProcessCollector(registry=registry)
    return render_metrics(registry).body.decode()


def samples_of(text: str) -> Iterator[Sample]:
    """Yield the samples of a page with the labels of the target, as Prometheus has them."""
    yield Sample("up", TARGET, 1.0)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield Sample(sample.name, {**TARGET, **sample.labels}, sample.value)


@cache
def labels_by_name(profile: Profile = "default") -> Mapping[str, list[Mapping[str, str]]]:
    """Return the labels of all series of the last page, by name."""
    found: defaultdict[str, list[Mapping[str, str]]] = defaultdict(list)
    for sample in samples_of(page(snapshots()[-1][0], profile)):
        found[sample.name].append(sample.labels)
    return found


def series(start_s: float) -> list[Series]:
    """Return the series of the first pages, which are scraped from this time on."""
    samples: defaultdict[tuple[tuple[str, str], ...], list[tuple[float, str]]] = defaultdict(list)
    for after_s, _ in snapshots():
        for each in samples_of(page(after_s)):
            key = (("__name__", each.name), *sorted(each.labels.items()))
            samples[key].append((start_s + after_s, repr(each.value)))
    return [Series(dict(key), values) for key, values in samples.items()]


def matching(
    name: str, matchers: Iterable[tuple[str, str, str]], profile: Profile = "default"
) -> list[Mapping[str, str]]:
    """Return the labels of the series of the last page that a selector of PromQL finds."""
    return [
        labels
        for labels in labels_by_name(profile).get(name, ())
        if all(_fits(labels.get(label, ""), *how) for label, *how in matchers)
    ]


def _fits(found: str, operator: str, value: str) -> bool:
    is_equal = bool(re.fullmatch(value, found)) if "~" in operator else found == value
    return is_equal is (operator in {"=", "=~"})
