"""Rows of the metric tables, and the line of `systemctl status`."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from prometheus_client import ProcessCollector

from disksla.base.histogram import Histogram
from disksla.clouds.ebs_statistics import Reading
from disksla.clouds.ebs_statistics.statistics_page import parse
from disksla.kernel.consumers import NO_CONSUMERS, Consumption
from disksla.kernel.disks.disk import Disk
from disksla.kernel.nfs.mountstats import MountReading
from disksla.kernel.procfs.iowait import HostWait
from disksla.promise.catalogue.derive import derive_limits
from disksla.promise.catalogue.limits import Limits, Rates, build_limits
from disksla.promise.catalogue.machine import SharedLimits
from disksla.promise.configuration import UnusedEntry
from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.limit_metrics import LAW_OF_DISKS
from disksla.serve.metrics.metric import Labelled, Metric, Value
from disksla.serve.metrics.render import render_metrics
from disksla.serve.metrics.self_metrics import status_line
from disksla.state.pipeline.probe_results import ProbeResult
from disksla.state.pipeline.snapshot import DiskSnapshot, SamplerStats, Snapshot, TermsSnapshot
from disksla.state.pipeline.totals import VerdictTotals
from disksla.state.provider_count import ProviderState
from disksla.verdict.throttling import Ceiling, Throttle
from disksla.verdict.throttling.verdict import Verdict
from metrics_page import METRICS, OF_DISKS, OF_THE_MACHINE, PAGE, documented
from support.ebs_pages import Page
from support.reports import RESULTS, a_report
from support.simulated_host import CATALOG
from support.snapshots import (
    ABOUT,
    BURST_LIMITS,
    BYTE_CREDITS,
    IOPS_CREDITS,
    SAMPLER,
    KnownSnapshot,
    changed,
    disk_view,
    group_view,
    probed_disk_view,
    unknown_disk_view,
    view,
    views,
)

DISK_ROWS = {metric.name: metric for metric in OF_DISKS}
MOST_OF_HELP = 130
"""Characters of a line of the page."""
MACHINE_ROWS = {metric.name: metric for metric in OF_THE_MACHINE}
ALL: dict[str, Metric[Any]] = {metric.name: metric for metric in METRICS}


def labelled(value: Value) -> Labelled:
    assert value is not None
    assert not isinstance(value, float | int | Histogram)
    return value


def test_group_without_limits_of_a_kind_has_no_sample_of_it() -> None:
    shared = SharedLimits("configuration", "all", "", build_limits(Rates(read_iops=300.0), "sum"))
    group = changed(group_view(), shared=shared, credits=())
    assert MACHINE_ROWS["disksla_machine_limit_iops"].value(group) == {("read",): 300.0}
    assert MACHINE_ROWS["disksla_machine_limit_bytes_per_second"].value(group) is None
    assert MACHINE_ROWS["disksla_machine_burst_credits"].value(group) is None
    assert MACHINE_ROWS["disksla_machine_burst_limit_iops"].value(group) is None


def test_names_are_unique() -> None:
    assert len(ALL) == len(METRICS)


CONSUMPTION = Consumption("vdc", "postgresql.service", "postgres", requests=9, bytes=36864)


def everything() -> Snapshot:
    """Return a disk with burst credits, a known one, an unknown one, a mount and a group."""
    bursting = changed(
        disk_view(limits=BURST_LIMITS), credits=(IOPS_CREDITS, BYTE_CREDITS), groups=("ebs",)
    )
    probed = probed_disk_view()
    page = Reading("vdc", "judged", 5.0, parse(Page().written()))
    failed = ProbeResult(
        device="vdc", kind="write-latency", timestamp_s=1764000000.0, failure="timeout"
    )
    volume = {"csi_driver": "csi", "volume_handle": "handle", "persistent_volume": "pvc-1"}
    volume |= {"claim": "data", "namespace": "db", "storage_class": "fast"}
    known = changed(
        probed,
        disk=msgspec.structs.replace(probed.disk, name="vdc", serial="judged", **volume),
        probes={**probed.probes, "write-latency": probed.probes["write-latency"].plus(failed)},
        ceiling=Ceiling(Throttle("base", "iops"), 300.0, 300.0 * 4096, 0.1),
        provider=ProviderState(failures={"reset": 1}).after([page], 5.0),
        provider_is_current=True,
        data_writes=7,
        usual_latency_s={"read": 0.002},
        consumers=NO_CONSUMERS.plus(
            (0.0, 1.0), [CONSUMPTION], is_throttled=True, may_be_named=None
        ),
    )
    terms = TermsSnapshot(
        as_of_timestamp_s={"api": 1763900000.0},
        expiry_timestamp_s={"api": 1764100000.0},
        unused=(UnusedEntry("file", "terms.d/a.yml: line 3", "unmatched", "serial: x"),),
        failures={("api", "denied"): 1},
    )
    mount = changed(
        unknown_disk_view(),
        disk=Disk("fs1.example:/export", 0, 50, 0, kind="nfs"),
        mount=MountReading(
            reads=1,
            writes=2,
            read_bytes=4096,
            written_bytes=8192,
            read_ms=3,
            write_ms=4,
            commits=5,
            others=6,
            queue_ms=1000,
            rtt_ms=6000,
        ),
    )
    shown = view(bursting, known, unknown_disk_view(), mount, groups=(group_view(),))
    return changed(shown, profile="full", terms=terms)


def page_of_everything() -> list[str]:
    reports = {"serial:judged": a_report(*RESULTS)}
    registry = make_registry(SnapshotCollector(everything, lambda: ABOUT, lambda: reports))
    ProcessCollector(registry=registry)
    return render_metrics(registry).body.decode().splitlines()


def test_page_of_every_kind_of_disk(golden: Callable[[Path, str], None]) -> None:
    samples = (line for line in page_of_everything() if not line.startswith(("#", "process_")))
    short = [line for line in samples if "_bucket{" not in line]
    golden(Path(__file__).parent / "page.prom", "\n".join(short) + "\n")


def test_documented_metrics_are_those_that_are_published() -> None:
    """One that is gone is gone from the queries of users: docs/metrics.md is what they rely on."""
    published = {line.split()[2] for line in page_of_everything() if line.startswith("# TYPE ")}
    of_files = {row.name for row in LAW_OF_DISKS}
    assert published | of_files == documented(PAGE.read_text(encoding="utf-8"))


def test_rows_follow_naming_rules() -> None:
    for name, row in ALL.items():
        assert re.fullmatch(r"disksla_[a-z]+(_[a-z]+)*", row.name)
        assert not (row.is_histogram and row.name.endswith("_total")), name
        assert not re.search(r"(_bucket|_count|_sum|_created|_ms|_percent)$", row.name), name
        assert re.fullmatch(r"[A-Z](?!.*  ).*\.", row.help), name
        assert row.help.startswith(row.first_sentence), name
        assert len(row.first_sentence) < MOST_OF_HELP, name
        assert "device" not in row.labels or name in MACHINE_ROWS, name


def test_budget_is_empty_without_limits_only() -> None:
    """Alerts read it instead of the limits."""
    for row in CATALOG.rows:
        limits = derive_limits(row, row.examples[0].size_bytes, row.examples[0].provisioned)
        assert budget_label(limits) == (limits.budget.kind if limits.budget else ""), row.id
        assert bool(budget_label(limits)) == (limits.rates != Rates()), row.id


@pytest.mark.parametrize("rate", Rates.__struct_fields__)
def test_any_limit_has_a_budget(rate: str) -> None:
    assert budget_label(build_limits(Rates(**{rate: 300.0}), "sum")) == "sum"
    assert budget_label(build_limits(Rates(), "sum")) == ""


def budget_label(limits: Limits) -> str:
    row = DISK_ROWS["disksla_disk_info"]
    (values,) = labelled(row.value(disk_view(limits=limits)))
    return dict(zip(row.labels, values, strict=True))["budget"]


def test_observed_ceiling_is_the_last_one_that_was_certain() -> None:
    row = DISK_ROWS["disksla_observed_ceiling_iops"]
    for iops, before, shown in ((300.0, 250.0, 300.0), (None, 250.0, 250.0), (None, None, None)):
        ceiling = Ceiling(Throttle("base", "iops"), iops, 4e5, before_iops=before)
        assert row.value(changed(disk_view(), ceiling=ceiling)) == shown


def test_kubernetes_volume_info() -> None:
    row = DISK_ROWS["disksla_kubernetes_volume_info"]
    before = disk_view()
    assert row.value(before) is None
    for name in ("csi_driver", "persistent_volume"):
        disk = msgspec.structs.replace(before.disk, **{name: "known"})
        (values,) = labelled(row.value(changed(before, disk=disk)))
        assert set(values) == {"known", ""}


def test_missing_pressure_is_absent() -> None:
    totals = VerdictTotals(host=HostWait(1.0, None, None))
    disk = changed(disk_view(), verdict_totals=totals)
    assert DISK_ROWS["disksla_throttled_pressure_seconds_total"].value(disk) is None
    assert DISK_ROWS["disksla_throttled_iowait_seconds_total"].value(disk) == 1.0


HEALTHY = msgspec.structs.replace(SAMPLER, problems={})


def line(*disks: DiskSnapshot, sampler: SamplerStats = HEALTHY) -> str:
    return status_line(KnownSnapshot(disks, sampler), ABOUT)


def disk(name: str, verdict: Verdict | None = None, *credit_shares: float) -> DiskSnapshot:
    levels = [
        msgspec.structs.replace(IOPS_CREDITS, estimate_credits=8000.0 * share)
        for share in credit_shares
    ]
    unknown = unknown_disk_view(name)
    return changed(unknown, verdict=verdict, credits=tuple(levels))


def test_number_of_monitored_disks() -> None:
    assert line() == "0 disks monitored"
    assert line(disk("vda")) == "1 disk monitored"
    assert line(disk("vda", "idle"), disk("vdb", "met")) == "2 disks monitored"


def test_problems_are_counted() -> None:
    text = line(
        *(disk("vda", "below"), disk("vdb", "throttled"), disk("vdc", "throttled")),
        *(disk("vdd", "stalled"), disk("vde", "unproven")),
    )
    assert text == "5 disks monitored, 2 throttled now, 1 below its promise now, 1 stalled now"


def test_lowest_credits_are_named() -> None:
    text = line(disk("vda", "met", 0.5), disk("vdb", "met", 0.9, 0.125), disk("vdc", "met"))
    assert text == "3 disks monitored, lowest burst credits: 12% on vdb"


def test_unreadable_sources_and_failed_reload() -> None:
    about = msgspec.structs.replace(ABOUT, reload_successful=False)
    assert status_line(view(), about) == (
        "0 disks monitored; cannot read: inflight;"
        " configuration reload failed, previous configuration in effect"
    )


@given(views)
def test_status_line_of_any_snapshot(arbitrary: Snapshot) -> None:
    text = status_line(arbitrary, ABOUT)
    assert text.startswith(f"{len(arbitrary.disks)} disk")
    unreadable = [name for name, works in arbitrary.sampler.collectors.items() if not works]
    assert all(name in text for name in unreadable)
