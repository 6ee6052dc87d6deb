"""Rows of the metric tables."""

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from disksla.histogram import Histogram
from disksla.limits.derive import derive_limits
from disksla.limits.limits import Limits, Rates, build_limits
from disksla.limits.machine import SharedLimits
from disksla.limits.terms import Terms
from disksla.metrics.disk_metrics import DISK_METRICS
from disksla.metrics.machine_metrics import MACHINE_METRICS
from disksla.metrics.metric import Labelled, Metric, Value
from disksla.metrics.probe_metrics import PROBE_METRICS
from disksla.metrics.provider_metrics import PROVIDER_METRICS
from disksla.metrics.self_metrics import BUILD_METRICS, SAMPLER_METRICS
from disksla.metrics.verification_metrics import VERIFICATION_METRICS
from disksla.pipeline.totals import VerdictTotals
from disksla.procfs.diskstats import Counters
from disksla.procfs.iowait import HostWait
from disksla.provider_count.agreement import Agreement, agreement_of
from disksla.verdict.throttle import LIMIT_KINDS
from disksla.verification.report import VerificationReport
from support.reports import RESULTS, a_report
from support.simulated_host import CATALOG
from support.snapshots import (
    ABOUT,
    BURST_LIMITS,
    BYTE_CREDITS,
    IOPS_CREDITS,
    SAMPLER,
    disk_view,
    group_view,
    probed_disk_view,
    unknown_disk_view,
)

VERIFICATION_RATIOS = ("ratio", "required_ratio", "passed")
DISK_ROWS = {metric.name: metric for metric in (*DISK_METRICS, *PROVIDER_METRICS, *PROBE_METRICS)}
REPORT_ROWS = {metric.name: metric for metric in VERIFICATION_METRICS}
SAMPLER_ROWS = {metric.name: metric for metric in SAMPLER_METRICS}
MACHINE_ROWS = {metric.name: metric for metric in MACHINE_METRICS}
BUILD_ROWS = {metric.name: metric for metric in BUILD_METRICS}
ALL: dict[str, Metric[Any]] = {
    **DISK_ROWS,
    **REPORT_ROWS,
    **SAMPLER_ROWS,
    **BUILD_ROWS,
    **MACHINE_ROWS,
}

# Dashboards and rules use these: none of them may be removed or change its kind.
CONTRACT = {
    "disksla_disk_info": "gauge",
    "disksla_disk_size_bytes": "gauge",
    "disksla_reads_completed_total": "counter",
    "disksla_writes_completed_total": "counter",
    "disksla_data_writes_total": "counter",
    "disksla_read_bytes_total": "counter",
    "disksla_written_bytes_total": "counter",
    "disksla_read_time_seconds_total": "counter",
    "disksla_write_time_seconds_total": "counter",
    "disksla_flushes_completed_total": "counter",
    "disksla_flush_time_seconds_total": "counter",
    "disksla_discards_completed_total": "counter",
    "disksla_discarded_bytes_total": "counter",
    "disksla_inflight": "gauge",
    "disksla_read_latency_seconds": "histogram",
    "disksla_write_latency_seconds": "histogram",
    "disksla_window_load_ratio": "histogram",
    "disksla_peak_read_iops": "gauge",
    "disksla_peak_write_iops": "gauge",
    "disksla_peak_read_bytes_per_second": "gauge",
    "disksla_peak_written_bytes_per_second": "gauge",
    "disksla_limit_read_iops": "gauge",
    "disksla_limit_write_iops": "gauge",
    "disksla_limit_read_bytes_per_second": "gauge",
    "disksla_limit_written_bytes_per_second": "gauge",
    "disksla_verification_ratio": "gauge",
    "disksla_verification_required_ratio": "gauge",
    "disksla_verification_passed": "gauge",
    "disksla_verification_timestamp_seconds": "gauge",
    "disksla_limit_latency_seconds": "gauge",
    "disksla_burst_limit_read_iops": "gauge",
    "disksla_burst_limit_write_iops": "gauge",
    "disksla_burst_limit_read_bytes_per_second": "gauge",
    "disksla_burst_limit_written_bytes_per_second": "gauge",
    "disksla_burst_credits": "gauge",
    "disksla_burst_credits_lower_bound": "gauge",
    "disksla_burst_credits_upper_bound": "gauge",
    "disksla_burst_credits_capacity": "gauge",
    "disksla_burst_exhaustion_seconds": "gauge",
    "disksla_observed_ceiling_iops": "gauge",
    "disksla_observed_ceiling_bytes_per_second": "gauge",
    "disksla_observed_limiter_window_seconds": "gauge",
    "disksla_verdict_seconds_total": "counter",
    "disksla_throttled_seconds_total": "counter",
    "disksla_provider_agreement_seconds_total": "counter",
    "disksla_throttle_wait_seconds_total": "counter",
    "disksla_throttled_iowait_seconds_total": "counter",
    "disksla_throttled_pressure_seconds_total": "counter",
    "disksla_sampler_ticks_total": "counter",
    "disksla_sampler_missed_ticks_total": "counter",
    "disksla_sampler_lateness_seconds": "histogram",
    "disksla_gaps_total": "counter",
    "disksla_probe_read_latency_seconds": "histogram",
    "disksla_probe_write_latency_seconds": "histogram",
    "disksla_probe_success": "gauge",
    "disksla_probe_last_run_timestamp_seconds": "gauge",
    "disksla_probe_target_iops": "gauge",
    "disksla_probe_achieved_iops": "gauge",
    "disksla_probe_duration_seconds": "gauge",
    "disksla_probe_runs_total": "counter",
    "disksla_probe_failures_total": "counter",
    "disksla_probe_skipped_total": "counter",
    "disksla_probe_ios_total": "counter",
    "disksla_collector_success": "gauge",
    "disksla_errors_total": "counter",
    "disksla_build_info": "gauge",
    "disksla_machine_info": "gauge",
    "disksla_machine_disk_info": "gauge",
    "disksla_machine_limit_iops": "gauge",
    "disksla_machine_limit_bytes_per_second": "gauge",
    "disksla_machine_burst_limit_iops": "gauge",
    "disksla_machine_burst_limit_bytes_per_second": "gauge",
    "disksla_machine_load_ratio": "histogram",
    "disksla_machine_throttled_seconds_total": "counter",
    "disksla_machine_burst_credits": "gauge",
    "disksla_machine_burst_credits_lower_bound": "gauge",
    "disksla_machine_burst_credits_upper_bound": "gauge",
    "disksla_machine_burst_credits_capacity": "gauge",
    "disksla_machine_burst_exhaustion_seconds": "gauge",
    "disksla_config_last_reload_successful": "gauge",
    "disksla_config_last_reload_success_timestamp_seconds": "gauge",
}


def labelled(value: Value) -> Labelled:
    assert value is not None
    assert not isinstance(value, float | int | Histogram)
    return value


@pytest.mark.parametrize(("name", "kind"), CONTRACT.items())
def test_metric_exists_with_its_kind(name: str, kind: str) -> None:
    assert ALL[name].kind == kind


def test_metrics_of_a_group() -> None:
    group = group_view()
    values = {name: row.value(group) for name, row in MACHINE_ROWS.items()}
    title = "all EBS volumes of the instance together"
    assert values == {
        "disksla_machine_info": {("m5.large", title, "sum"): 1},
        "disksla_machine_disk_info": {("vdb",): 1, ("vdc",): 1},
        "disksla_machine_limit_iops": {("read",): 3600.0, ("write",): 3600.0},
        "disksla_machine_limit_bytes_per_second": {("read",): 81.25e6, ("write",): 81.25e6},
        "disksla_machine_burst_limit_iops": {("read",): 18_750.0, ("write",): 18_750.0},
        "disksla_machine_burst_limit_bytes_per_second": {
            ("read",): 593.75e6,
            ("write",): 593.75e6,
        },
        "disksla_machine_load_ratio": group.load,
        "disksla_machine_throttled_seconds_total": {("iops",): 40.0, ("bandwidth",): 2.0},
        "disksla_machine_burst_credits": {("iops",): 2500.0},
        "disksla_machine_burst_credits_lower_bound": {("iops",): 1250.5},
        "disksla_machine_burst_credits_upper_bound": {("iops",): 4000.0},
        "disksla_machine_burst_credits_capacity": {("iops",): 8000.0},
        "disksla_machine_burst_exhaustion_seconds": {("iops",): 1.5},
    }


def test_group_without_limits_of_a_kind_has_no_sample_of_it() -> None:
    shared = SharedLimits("configuration", "all", "", build_limits(Rates(read_iops=300.0), "sum"))
    group = msgspec.structs.replace(group_view(), shared=shared, credits=())
    assert MACHINE_ROWS["disksla_machine_limit_iops"].value(group) == {("read",): 300.0}
    assert MACHINE_ROWS["disksla_machine_limit_bytes_per_second"].value(group) is None
    assert MACHINE_ROWS["disksla_machine_burst_credits"].value(group) is None
    assert MACHINE_ROWS["disksla_machine_burst_limit_iops"].value(group) is None


def test_limits_of_the_machine_are_counted_where_they_apply() -> None:
    row = DISK_ROWS["disksla_throttled_seconds_total"]
    in_group = msgspec.structs.replace(disk_view(), groups=("ebs",))
    assert labelled(row.value(in_group)).keys() == {(limit,) for limit in LIMIT_KINDS}
    assert ("machine_iops",) not in labelled(row.value(disk_view()))


def test_names_are_unique() -> None:
    tables = (
        DISK_METRICS,
        PROVIDER_METRICS,
        PROBE_METRICS,
        VERIFICATION_METRICS,
        SAMPLER_METRICS,
        BUILD_METRICS,
        MACHINE_METRICS,
    )
    assert len(ALL) == sum(map(len, tables))


@pytest.mark.parametrize("name", ALL)
def test_row_follows_naming_rules(name: str) -> None:
    row = ALL[name]
    assert re.fullmatch(r"disksla_[a-z]+(_[a-z]+)*", row.name)
    assert row.name.endswith("_total") == (row.kind == "counter")
    assert not re.search(r"(_bucket|_count|_sum|_created|_ms|_percent)$", row.name)
    assert row.help[0].isupper()
    assert row.help.endswith(".")
    assert "  " not in row.help
    assert "device" not in row.labels or name in MACHINE_ROWS


def test_counters_are_in_base_units() -> None:
    disk = disk_view()
    assert DISK_ROWS["disksla_read_bytes_total"].value(disk) == 98_765_432 * 512
    assert DISK_ROWS["disksla_discarded_bytes_total"].value(disk) == 88_080_384 * 512
    assert DISK_ROWS["disksla_read_time_seconds_total"].value(disk) == 456.789
    assert DISK_ROWS["disksla_flush_time_seconds_total"].value(disk) == 20.601


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("disksla_reads_completed_total", "reads"),
        ("disksla_writes_completed_total", "writes"),
        ("disksla_read_bytes_total", "read_sectors"),
        ("disksla_written_bytes_total", "written_sectors"),
        ("disksla_read_time_seconds_total", "read_ms"),
        ("disksla_write_time_seconds_total", "write_ms"),
        ("disksla_flushes_completed_total", "flushes"),
        ("disksla_flush_time_seconds_total", "flush_ms"),
        ("disksla_discards_completed_total", "discards"),
        ("disksla_discarded_bytes_total", "discarded_sectors"),
    ],
)
def test_counter_is_read_from_its_field(name: str, field: str) -> None:
    nothing = Counters(*[None] * len(Counters._fields))
    absent = disk_view(totals=nothing)
    present = disk_view(totals=nothing._replace(**{field: 1000}))
    assert DISK_ROWS[name].value(absent) is None
    assert DISK_ROWS[name].value(present) in {1000, 1, 512_000}


def test_data_writes_are_absent_unless_counted() -> None:
    row = DISK_ROWS["disksla_data_writes_total"]
    assert row.value(disk_view()) is None
    assert row.value(msgspec.structs.replace(disk_view(), data_writes=0)) == 0


def test_unknown_values_are_absent() -> None:
    disk = unknown_disk_view()
    with_value = {
        name for name, metric in DISK_ROWS.items() if metric.value(disk) not in (None, {})
    }
    assert with_value == {"disksla_disk_info", "disksla_disk_size_bytes"}


def test_limits_and_burst_limits() -> None:
    disk = disk_view(limits=BURST_LIMITS)
    assert DISK_ROWS["disksla_limit_write_iops"].value(disk) == 300
    assert DISK_ROWS["disksla_burst_limit_write_iops"].value(disk) == 2000
    assert DISK_ROWS["disksla_limit_written_bytes_per_second"].value(disk) == 30e6
    assert DISK_ROWS["disksla_burst_limit_written_bytes_per_second"].value(disk) == 60e6
    assert DISK_ROWS["disksla_limit_latency_seconds"].value(disk) == 0.02


def test_disk_info_labels() -> None:
    row = DISK_ROWS["disksla_disk_info"]
    (values,) = labelled(row.value(disk_view()))
    assert dict(zip(row.labels, values, strict=True)) == {
        "serial": "6ea73b81-555e-4a74-9",
        "wwn": "",
        "model": "Virtual Disk",
        "provider": "vk",
        "terms": "vk.high-iops",
        "budget": "separate",
        "latency_kind": "guaranteed",
        "rotational": "false",
        "terms_source": "none",
        "machine_type": "",
    }
    (unknown,) = labelled(row.value(unknown_disk_view()))
    assert dict(zip(row.labels, unknown, strict=True))["rotational"] == ""


@pytest.mark.parametrize("row", CATALOG.rows, ids=lambda row: row.id)
def test_budget_is_empty_without_limits_only(row: Terms) -> None:
    """Alerts read it instead of the limits."""
    limits = derive_limits(row, row.examples[0].size_bytes, row.examples[0].provisioned)
    assert budget_label(limits) == (limits.budget.kind if limits.budget else "")
    assert bool(budget_label(limits)) == (limits.rates != Rates())


@pytest.mark.parametrize("rate", Rates.__struct_fields__)
def test_any_limit_has_a_budget(rate: str) -> None:
    assert budget_label(build_limits(Rates(**{rate: 300.0}), "sum")) == "sum"
    assert budget_label(build_limits(Rates(), "sum")) == ""


def budget_label(limits: Limits) -> str:
    row = DISK_ROWS["disksla_disk_info"]
    (values,) = labelled(row.value(disk_view(limits=limits)))
    return dict(zip(row.labels, values, strict=True))["budget"]


def test_mount_info() -> None:
    row = DISK_ROWS["disksla_mount_info"]
    assert row.value(unknown_disk_view()) == {}
    before = disk_view()
    moved = msgspec.structs.replace(
        before.disk, mount_points=("/a", "/b", "/pods/1/a"), file_system_mounts=("/a", "/b")
    )
    found = labelled(row.value(msgspec.structs.replace(before, disk=moved)))
    assert found == {("/a",): 1, ("/b",): 1}


def test_disk_holder_info() -> None:
    assert labelled(DISK_ROWS["disksla_disk_holder_info"].value(disk_view())) == {("dm-0",): 1}


def test_kubernetes_volume_info() -> None:
    row = DISK_ROWS["disksla_kubernetes_volume_info"]
    before = disk_view()
    assert row.value(before) is None
    known = {
        "csi_driver": "disk.csi.azure.com",
        "volume_handle": "/subscriptions/s/disks/d",
        "persistent_volume": "pvc-1",
        "claim": "data-pg-0",
        "namespace": "db",
        "storage_class": "fast",
    }
    disk = msgspec.structs.replace(before.disk, **known)
    (values,) = labelled(row.value(msgspec.structs.replace(before, disk=disk)))
    assert values == tuple(known.values())
    for name in ("csi_driver", "persistent_volume"):
        disk = msgspec.structs.replace(before.disk, **{name: known[name]})
        (values,) = labelled(row.value(msgspec.structs.replace(before, disk=disk)))
        assert set(values) == {known[name], ""}


def test_verdicts_throttling_and_ceiling() -> None:
    disk = disk_view()
    assert labelled(DISK_ROWS["disksla_verdict_seconds_total"].value(disk)) == {
        ("idle",): 1800.5,
        ("unproven",): 3600.0,
        ("met",): 12.0,
        ("throttled",): 42.3,
        ("below",): 0.0,
        ("stalled",): 1.5,
    }
    assert labelled(DISK_ROWS["disksla_throttled_seconds_total"].value(disk)) == {
        ("iops",): 40.0,
        ("bandwidth",): 2.3,
        ("unknown",): 0.0,
    }
    assert labelled(DISK_ROWS["disksla_throttled_pressure_seconds_total"].value(disk)) == {
        ("some",): 29.0,
        ("full",): 27.25,
    }
    assert DISK_ROWS["disksla_throttled_iowait_seconds_total"].value(disk) == 31.5
    assert DISK_ROWS["disksla_observed_ceiling_iops"].value(disk) == 300.0
    assert DISK_ROWS["disksla_observed_ceiling_iops"].value(unknown_disk_view()) is None


def test_agreement_with_the_provider() -> None:
    agreement = DISK_ROWS["disksla_provider_agreement_seconds_total"].value
    disk = disk_view()
    assert agreement(disk) is None
    disk = msgspec.structs.replace(disk, agreement=Agreement())
    assert agreement(disk) is None
    disk = msgspec.structs.replace(disk, provider_is_current=True)
    assert labelled(agreement(disk)) == {("none", "none"): 0.0}
    compared = agreement_of(10.0, (4.0, 0, 0, 0, 0), (3.0, 0, 0, 2.0))
    disk = msgspec.structs.replace(disk, agreement=compared)
    assert labelled(agreement(disk)) == pytest.approx(
        {
            ("none", "none"): 5.0,
            ("iops", "iops"): 3.0,
            ("iops", "machine_bandwidth"): 1.0,
            ("none", "machine_bandwidth"): 1.0,
        }
    )


@pytest.mark.parametrize(
    ("name", "of_iops", "of_bytes"),
    [
        ("disksla_burst_credits", 2500.0, 32e6),
        ("disksla_burst_credits_lower_bound", 1250.5, 0.0),
        ("disksla_burst_credits_upper_bound", 4000.0, 64e6),
        ("disksla_burst_credits_capacity", 8000.0, 64e6),
        ("disksla_burst_exhaustion_seconds", 1.5, math.inf),
    ],
)
def test_credits_by_resource(name: str, of_iops: float, of_bytes: float) -> None:
    row = DISK_ROWS[name]
    assert row.labels == ("resource",)
    both = msgspec.structs.replace(disk_view(), credits=(IOPS_CREDITS, BYTE_CREDITS))
    assert row.value(both) == {("iops",): of_iops, ("bytes",): of_bytes}
    assert row.value(unknown_disk_view()) is None


def test_missing_pressure_is_absent() -> None:
    totals = VerdictTotals(host=HostWait(1.0, None, None))
    disk = msgspec.structs.replace(disk_view(), verdict_totals=totals)
    assert DISK_ROWS["disksla_throttled_pressure_seconds_total"].value(disk) is None
    assert DISK_ROWS["disksla_throttled_iowait_seconds_total"].value(disk) == 1.0


def test_verification_by_test() -> None:
    report = a_report(*RESULTS)
    values = {
        name: value_of(f"disksla_verification_{name}", report) for name in VERIFICATION_RATIOS
    }
    judged = {("randread-4k",), ("randread-8k",), ("read-1m",), ("latency-randread-4k",)}
    assert set(values["ratio"]) == set(values["required_ratio"]) == judged
    assert (values["ratio"]["randread-8k",], values["required_ratio"]["randread-8k",]) == (
        0.7,
        0.75,
    )
    assert values["passed"] == {("randread-4k",): 1, ("randread-8k",): 0, ("read-1m",): 1}
    assert REPORT_ROWS["disksla_verification_timestamp_seconds"].value(report) == 1.7e9 + 300.5


def value_of(name: str, report: VerificationReport) -> Labelled:
    value = REPORT_ROWS[name].value(report)
    assert isinstance(value, Mapping)
    return value


def test_sampler_and_build_rows() -> None:
    assert SAMPLER_ROWS["disksla_gaps_total"].value(SAMPLER) == {
        ("late",): 3,
        ("reset",): 0,
        ("swapped",): 1,
    }
    assert SAMPLER_ROWS["disksla_collector_success"].value(SAMPLER) == {
        ("diskstats",): True,
        ("inflight",): False,
    }
    assert BUILD_ROWS["disksla_build_info"].value(ABOUT) == {
        ("0.1.0", "3.11.7", "6.1.0-26-amd64"): 1
    }


def test_probe_rows_by_kind() -> None:
    disk = probed_disk_view()
    latency = DISK_ROWS["disksla_probe_read_latency_seconds"].value(disk)
    assert isinstance(latency, Histogram)
    assert latency.count == 100
    not_run = DISK_ROWS["disksla_probe_write_latency_seconds"].value(disk)
    assert isinstance(not_run, Histogram)
    assert not_run.count == 0
    read_values = {
        "success": 1,
        "last_run_timestamp_seconds": 1764000000.0,
        "duration_seconds": 5.375,
        "target_iops": 20.0,
        "achieved_iops": 19.9,
    }
    for name, value in read_values.items():
        assert DISK_ROWS[f"disksla_probe_{name}"].value(disk) == {("read-latency",): value}
    for name, counts in (("runs", (1, 0)), ("ios", (100, 0)), ("bytes", (409_600, 0))):
        assert DISK_ROWS[f"disksla_probe_{name}_total"].value(disk) == {
            ("read-latency",): counts[0],
            ("write-latency",): counts[1],
        }
    skips = DISK_ROWS["disksla_probe_skipped_total"].value(disk)
    assert skips == {("write-latency", "busy"): 1}
    assert DISK_ROWS["disksla_probe_failures_total"].value(disk) is None


def test_probe_rows_are_absent_without_probes() -> None:
    rows = [row for name, row in DISK_ROWS.items() if name.startswith("disksla_probe_")]
    assert len(rows) == 14
    assert all(row.value(disk_view()) is None for row in rows)
