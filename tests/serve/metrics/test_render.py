"""Rendered metrics pages, read back by the parsers of the client library."""

import gzip
import math
import resource
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric as Family
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from disksla.base.text import escape_bytes
from disksla.serve.http_server import Reply
from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline.snapshot import Snapshot
from support.examples import scaled
from support.snapshots import (
    ABOUT,
    BURST_LIMITS,
    BYTE_CREDITS,
    changed,
    disk_view,
    probed_disk_view,
    view,
    views,
)

OPENMETRICS = "application/openmetrics-text"


# What Prometheus 3 sends, and what 2.42 sends.
ACCEPT_OF_PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


ACCEPT_OF_PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def registry_of(shown: Snapshot) -> CollectorRegistry:
    registry = make_registry(SnapshotCollector(lambda: shown, lambda: ABOUT))
    ProcessCollector(registry=registry)
    return registry


def page_of(
    shown: Snapshot, accept: str = "", accept_encoding: str = "", names: Sequence[str] = ()
) -> Reply:
    return render_metrics(registry_of(shown), accept, accept_encoding, names)


def rendered(shown: Snapshot, accept: str = "") -> str:
    return page_of(shown, accept).body.decode()


def parsed(shown: Snapshot, accept: str) -> list[Family]:
    parse = parse_openmetrics if accept else parse_text
    return list(parse(rendered(shown, accept)))


def series(families: list[Family]) -> Series:
    """Return all disksla series; fail if one of them is there twice."""
    samples = [sample for family in families for sample in family.samples]
    found = {(one.name, frozenset(one.labels.items())): one.value for one in samples}
    assert len(found) == len(samples)
    return {key: value for key, value in found.items() if key[0].startswith("disksla_")}


@scaled(60)
@given(views)
def test_both_formats_have_the_same_series(shown: Snapshot) -> None:
    text = series(parsed(shown, ""))
    assert text == series(parsed(shown, OPENMETRICS))
    for disk in shown.disks:
        device = frozenset({("device", escape_bytes(disk.disk.name))})
        assert text["disksla_disk_size_bytes", device] == disk.disk.size_bytes
        peak = None if disk.counters is None else disk.peak.read_iops
        assert text.get(("disksla_peak_read_iops", device)) == peak
        limit = disk.assignment.limits.rates.read_iops
        assert text.get(("disksla_limit_read_iops", device)) == limit
        assert text.get(("disksla_inflight", device)) == disk.inflight


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_exhaustion_of_lasting_credits_is_infinite(accept: str) -> None:
    lasting = changed(disk_view(), credits=(BYTE_CREDITS,))
    labels = 'device="vdb",resource="bytes"'
    line = f"disksla_burst_exhaustion_seconds{{{labels}}} +Inf"
    assert line in rendered(view(lasting), accept).splitlines()
    found = series(parsed(view(lasting), accept))
    key = frozenset({("device", "vdb"), ("resource", "bytes")})
    assert found["disksla_burst_exhaustion_seconds", key] == math.inf
    assert found["disksla_burst_credits_upper_bound", key] == BYTE_CREDITS.upper_credits


@scaled(60)
@given(views)
def test_label_values_round_trip(shown: Snapshot) -> None:
    found = series(parsed(shown, OPENMETRICS))
    info = {
        dict(labels)["device"]: dict(labels)
        for name, labels in found
        if name == "disksla_disk_info"
    }
    mounts = {
        tuple(dict(labels).values()) for name, labels in found if name == "disksla_mount_info"
    }
    assert len(info) == len(shown.disks)
    for disk in shown.disks:
        labels = info[escape_bytes(disk.disk.name)]
        assert labels["serial"] == escape_bytes(disk.disk.serial or "")
        for point in disk.disk.file_system_mounts:
            assert {escape_bytes(disk.disk.name), escape_bytes(point)} in map(set, mounts)
        assert labels["terms"] == escape_bytes(disk.assignment.terms)


@scaled(60)
@given(views)
def test_buckets_are_cumulative(shown: Snapshot) -> None:
    shown = changed(shown, profile="full")
    families = {family.name: family for family in parsed(shown, OPENMETRICS)}
    for disk in shown.disks:
        if disk.counters is None:
            continue
        device = escape_bytes(disk.disk.name)
        samples = [
            sample
            for sample in families["disksla_read_latency_seconds"].samples
            if sample.labels["device"] == device
        ]
        buckets = [one for one in samples if one.name.endswith("_bucket")]
        bounds = [float(one.labels["le"]) for one in buckets]
        counts = [one.value for one in buckets]
        assert bounds == [*disk.totals.read_latency.histogram.bounds, math.inf]
        assert counts == sorted(counts)
        (count,) = [one.value for one in samples if one.name.endswith("_count")]
        (total,) = [one.value for one in samples if one.name.endswith("_sum")]
        assert counts[-1] == count == disk.totals.read_latency.histogram.count
        assert total == disk.totals.read_latency.histogram.total


def test_disk_has_less_than_a_hundred_series() -> None:
    with_and_without = [
        len(series(parsed(view(*disks), ""))) for disks in ((disk_view(limits=BURST_LIMITS),), ())
    ]
    assert with_and_without[0] - with_and_without[1] < 100


def test_probe_kind_has_less_than_fifty_series() -> None:
    probed, plain = (
        len(series(parsed(view(disk), ""))) for disk in (probed_disk_view(), disk_view())
    )
    assert probed - plain < 2 * 50
    assert "disksla_probe" not in rendered(view(disk_view()))


@pytest.mark.parametrize(
    "accept",
    [
        ACCEPT_OF_PROMETHEUS_3,
        ACCEPT_OF_PROMETHEUS_2,
        OPENMETRICS,
        f"text/html, {OPENMETRICS}; version=1.0.0 ; charset=utf-8",
    ],
)
def test_accept_of_openmetrics(accept: str) -> None:
    page = page_of(view(disk_view()), accept)
    headers = dict(page.headers)
    assert headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert page.body.endswith(b"# EOF\n")


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "text/plain",
        f"{OPENMETRICS};version=abc",
        f"{OPENMETRICS};version=2.0.0",
        f"{OPENMETRICS};q=0, text/plain",
        f"{OPENMETRICS};version=1.0.0;q=0.0",
        f"text/plain;version=0.0.4;q=0.6, {OPENMETRICS};version=1.0.0;q=0.5",
        ";,=;",
    ],
)
def test_accept_of_other_clients_gets_text_format(accept: str) -> None:
    page = page_of(view(disk_view()), accept)
    assert dict(page.headers)["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b"# TYPE disksla_reads_completed_total counter\n" in page.body


def test_long_label_values_are_cut_and_no_series_is_there_twice() -> None:
    disk = disk_view()
    paths = tuple(f"/{'x' * 300}/{number}" for number in range(3))
    long = changed(
        disk,
        disk=msgspec.structs.replace(
            disk.disk, file_system_mounts=(*paths, "/data"), wwn="w" * 999
        ),
    )
    found = series(parsed(view(long), OPENMETRICS))
    assert {len(value) <= 256 for _, labels in found for _, value in labels} == {True}
    mounts = {dict(labels)["mountpoint"] for name, labels in found if name == "disksla_mount_info"}
    assert mounts == {"/" + 255 * "x", "/data"}


def test_page_is_compressed_if_accepted() -> None:
    shown, names = view(disk_view()), ["disksla_reads_completed_total"]
    plain = page_of(shown, names=names)
    compressed = page_of(shown, accept_encoding="br, gzip;q=0.5", names=names)
    assert dict(compressed.headers)["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in dict(plain.headers)
    assert gzip.decompress(compressed.body) == plain.body


def test_page_of_selected_names() -> None:
    names = ["disksla_inflight", "process_open_fds", "no_such_name"]
    body = page_of(view(disk_view()), names=names).body.decode()
    lines = [line for line in body.splitlines() if not line.startswith("#")]
    assert sorted(line.split("{")[0].split(" ")[0] for line in lines) == [
        "disksla_inflight",
        "process_open_fds",
    ]


def test_page_has_process_but_no_python_metrics() -> None:
    body = rendered(view())
    assert "process_resident_memory_bytes" in body
    assert "python_gc" not in body
    assert "python_info" not in body


def test_page_has_no_process_metrics_while_no_file_can_be_opened() -> None:
    registry = registry_of(view(disk_view()))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        body = render_metrics(registry).body
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert b'\ndisksla_inflight{device="vdb"} 5.0\n' in body
    assert b"\nprocess_" not in body
    assert b"\nprocess_open_fds " in render_metrics(registry).body
