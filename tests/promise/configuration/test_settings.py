"""The records of the configuration, read from nodes."""

import re
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.schema.reader import Node, Problem, read_record
from disksla.base.schema.yaml_file import parse_record
from disksla.promise.catalogue.limits import Bucket, Burst, Conditions, Limits, Rates, build_limits
from disksla.promise.configuration.custom_terms import (
    SeparateTerms,
    TimeSharedTerms,
    custom_limits,
)
from disksla.promise.configuration.settings import DevicePattern, DiskEntry, ProbeEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from support.schema_nodes import node


def read(value: Any) -> Settings:
    settings, problems = read_record(node(value), Settings)
    assert problems == ()
    assert settings is not None
    return settings


def problems_of(value: Any) -> dict[str, str]:
    """Return the texts of all problems by their paths."""
    settings, problems = read_record(node(value), Settings)
    assert settings is None
    assert problems
    return {problem.path: problem.text for problem in problems}


def read_custom_limits(**terms: Any) -> Limits:
    (entry,) = read({"disks": [{"match": {"device": "vda"}, "terms": terms}]}).disks
    assert not isinstance(entry.terms, str)
    return custom_limits(entry.terms)


def test_settings_default() -> None:
    assert read({}) == Settings()
    assert read({"sampling": None, "disks": None, "state": {}}) == Settings()


def test_dashboard_is_a_web_address() -> None:
    address = "https://grafana.example.com/d/disksla-disk?var-instance=db-1:10056"
    assert read({"pages": {"dashboard": address}}).pages.dashboard == address
    for other in ("grafana.example.com", "javascript:alert(1)", "https://g/#x", "https://a b"):
        assert (
            "such as https://" in problems_of({"pages": {"dashboard": other}})["pages.dashboard"]
        )


def test_settings_are_read_in_base_units() -> None:
    settings = read(
        {
            "sampling": {"interval": "250ms"},
            "disks": [
                {"match": {"device": "/dev/vda"}, "terms": "a.b", "size": "1.5TB", "iops": "3000"}
            ],
            "probes": [{"kind": "write-latency", "disks": ["/dev/vdb", "vdc"], "every": "1h"}],
            "state": {"directory": "/srv"},
        }
    )
    assert settings.sampling.interval_s == 0.25
    assert settings.disks == (
        DiskEntry(match=DiskMatch(device="vda"), terms="a.b", size="1.5TB", iops=3000.0),
    )
    assert settings.probes == (
        ProbeEntry(kind="write-latency", disks=("vdb", "vdc"), every_s=3600.0),
    )
    assert settings.state.directory == "/srv"


def test_problems_are_listed_at_once() -> None:
    problems = problems_of(
        {
            "sampling": {"interval": "100"},
            "discovery": {"include": ["^vd", "("]},
            "disks": [
                {"match": {"device": "vda"}, "terms": {"budget": "sum", "iops": "many"}},
                {"match": {}, "size": "5"},
            ],
            "extra": "1",
        }
    )
    assert set(problems) == {
        "sampling.interval",
        "discovery.include[1]",
        "disks[0].terms.iops",
        "disks[1].match",
        "disks[1].terms",
        "disks[1].size",
        "extra",
    }


def test_problems_are_sorted_by_line() -> None:
    root = Node(1, {"zoo": Node(3, "x"), "state": Node(2, "y"), "ape": Node(1, "z")})
    _, problems = read_record(root, Settings)
    assert [problem.line for problem in problems] == [1, 2, 3]


def test_problem_does_not_quote_long_text() -> None:
    problems = problems_of({"discovery": {"include": ["x" * 10_000]}})
    assert "10000 characters" in problems["discovery.include[0]"]
    assert all(len(text) < 200 for text in problems.values())


def test_problem_is_one_printable_line() -> None:
    line = Problem(7, "a\nb", "found '\x1b[31m'").as_line()
    assert line == r"7: a\nb: found '\x1b[31m'"


def test_problem_names_budgets_of_a_key() -> None:
    problems = problems_of(
        {"disks": [{"match": {"device": "a"}, "terms": {"budget": "sum", "read_iops": "5"}}]}
    )
    assert "only with separate or time_shared" in problems["disks[0].terms.read_iops"]


@pytest.mark.parametrize(
    ("budget", "record"), [("separate", SeparateTerms), ("time_shared", TimeSharedTerms)]
)
def test_custom_terms_by_direction(budget: Any, record: type) -> None:
    terms = {"budget": budget, "read_iops": "500", "write_bandwidth": "40MB", "latency": "1ms"}
    (entry,) = read({"disks": [{"match": {"device": "vda"}, "terms": terms}]}).disks
    assert type(entry.terms) is record
    rates = Rates(read_iops=500.0, write_bytes_per_second=40e6)
    assert read_custom_limits(**terms) == build_limits(rates, budget, 0.001, "guaranteed")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, None),
        ({"queue_depth": "16"}, Conditions(4096, 16)),
        ({"request_size": "16KiB"}, Conditions(16384, None)),
        ({"queue_depth": "8", "request_size": "8KiB"}, Conditions(8192, 8)),
    ],
)
def test_conditions_of_custom_terms(keys: dict[str, str], expected: Conditions | None) -> None:
    limits = read_custom_limits(budget="sum", iops="300", **keys)
    assert limits.iops_conditions == expected
    quick = read_custom_limits(
        budget="sum", iops="300", latency="20ms", latency_kind="indicative", **keys
    )
    assert (quick.latency_s, quick.latency_kind) == (0.02, "indicative")


def test_custom_terms_with_sum_and_burst() -> None:
    limits = read_custom_limits(
        budget="sum",
        iops="300",
        bandwidth="25MB",
        burst={
            "iops": "2000",
            "iops_credits": "8000",
            "bandwidth": "60MB/s",
            "bandwidth_credits": "100MB",
        },
    )
    assert limits.rates == Rates(300, 300, 25e6, 25e6)
    assert limits.burst == Burst(
        Rates(2000, 2000, 60e6, 60e6),
        (Bucket("iops", 8000, 300, 300, 2000), Bucket("bytes", 100e6, 25e6, 25e6, 60e6)),
    )


def test_custom_burst_of_one_resource() -> None:
    limits = read_custom_limits(
        budget="sum", iops="300", bandwidth="1MB", burst={"iops": "301", "iops_credits": "1"}
    )
    assert limits.burst == Burst(Rates(301, 301), (Bucket("iops", 1, 300, 300, 301),))
    burst = {"bandwidth": "2MB", "bandwidth_credits": "5MB"}
    limits = read_custom_limits(budget="sum", bandwidth="1MB", burst=burst)
    bucket = Bucket("bytes", 5e6, 1e6, 1e6, 2e6)
    assert limits.burst == Burst(Rates(None, None, 2e6, 2e6), (bucket,))


def read_probe(**keys: str) -> ProbeEntry:
    (entry,) = read({"probes": [{"kind": "read-latency", **keys}]}).probes
    return entry


def test_probe_defaults() -> None:
    entry = read_probe()
    assert (entry.period_s, entry.spread_s) == (600.0, 600.0)
    assert (entry.rate_iops, entry.runtime_s) == (20.0, 5.0)
    assert (entry.busy_share, entry.credits_share) == (0.8, 0.05)
    assert not entry.uses_file
    assert entry.covers("vda")


def test_probe_schedule_by_cron() -> None:
    entry = read_probe(cron="*/15  6-22 * * mon-fri", splay="2m")
    assert entry.cron == "*/15 6-22 * * mon-fri"
    assert entry.spread_s == 120.0
    assert read_probe(cron="0 4 * * *").spread_s == 300.0
    assert read_probe(every="1h", splay="10m").spread_s == 600.0


def test_probe_quantities() -> None:
    entry = read_probe(target="file", file_size="64KiB", busy="50%", credits="0%", daily="1GB")
    assert entry.uses_file
    assert entry.file_size_bytes == 65536
    assert (entry.busy_share, entry.credits_share, entry.daily_bytes) == (0.5, 0.0, 10**9)


def test_probe_covers_only_listed_disks() -> None:
    entry = ProbeEntry(kind="write-latency", disks=("vda",))
    assert entry.covers("vda")
    assert not entry.covers("vdb")
    assert entry.uses_file


def test_probes_of_disk_have_shortest_interval() -> None:
    hourly = ProbeEntry(kind="read-latency", every_s=3600.0)
    nightly = ProbeEntry(kind="read-latency", cron="0 4 * * *")
    usual = ProbeEntry(kind="read-latency", disks=("vda",))
    writes = ProbeEntry(kind="write-latency", disks=("vdb",), cron="0 4 * * *")
    for probes in permutations((hourly, nightly, usual, writes)):
        settings = Settings(probes=probes)
        assert settings.probes_of("vda") == {"read-latency": 600.0}
        assert settings.probes_of("vdb") == {"read-latency": 3600.0, "write-latency": None}
    assert Settings().probes_of("vda") == {}


@pytest.mark.parametrize(
    "keys",
    [
        {"every": "10m", "cron": "0 4 * * *"},
        {"every": "10s", "runtime": "10s"},
        {"every": "10m", "splay": "11m"},
        {"daily": "400KB"},
        {"daily": "1MiB", "target": "file"},
        {"kind": "write-latency", "target": "device"},
    ],
)
def test_probe_rejects_contradictions(keys: dict[str, str]) -> None:
    assert "probes[0]" in problems_of({"probes": [{"kind": "read-latency", **keys}]})


data = st.recursive(
    st.none() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["sampling", "interval", "disks", "match", "device", "terms", "budget", "iops"]
            )
            | st.text(max_size=6),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    data
    | st.text().map(lambda text: {"discovery": {"include": [text]}})
    | st.text().map(lambda text: {"probes": [{"kind": "read-latency", "cron": text}]})
)
def test_settings_from_any_nodes(value: Any) -> None:
    settings, problems = read_record(node(value), Settings)
    assert (settings is None) == bool(problems)


@given(st.text(max_size=20), st.text(max_size=20))
def test_pattern_is_searched_in_name(text: str, name: str) -> None:
    pattern = DevicePattern.parse(re.escape(text))
    assert pattern.is_in(name) == (text in name)
    assert pattern.is_in(name + text)


@pytest.mark.parametrize(
    "pattern", ["(a|a)*b", "(a+)+b", "(a|aa)+$", "(?:a?){99}a{99}$", "(.*)*b"]
)
def test_search_time_is_linear(pattern: str) -> None:
    """Python's `re` takes exponential time for each of these."""
    assert not DevicePattern.parse(pattern).is_in("a" * 255 + "!")


@pytest.mark.parametrize(
    "text", ["(", "[", "*", "(?=a)", r"(a)\1", "a{9999}", "((a{99}){99}){99}"]
)
def test_parse_rejects_invalid_expressions(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"^found '.*'; expected a regular expression \(.+\)$"
    ) as raised:
        DevicePattern.parse(text)
    assert text in str(raised.value)


def test_search_in_name_with_surrogates() -> None:
    assert DevicePattern.parse("^sd.$").is_in("sd\udcff")
    assert not DevicePattern.parse("^sd$").is_in("sd\udcff")


def test_patterns_are_equal_by_text() -> None:
    assert DevicePattern.parse("^vd") == DevicePattern("^vd")


def match_of(key: str, written: str) -> DiskMatch:
    return parse_record(f"{key}: {written}\n".encode(), "f", DiskMatch, {})


@pytest.mark.parametrize(
    ("key", "written", "read"),
    [
        ("mountpoint", "/pgdata/", "/pgdata"),
        ("mountpoint", "//pg//data/./x/..", "/pg/data"),
        ("mountpoint", "/", "/"),
        ("by_id", "virtio-data", "virtio-data"),
        ("by_id", "/dev/disk/by-id/virtio-data", "virtio-data"),
        ("by_id", "/dev/disk/azure/scsi1/lun0", "disk/azure/scsi1/lun0"),
        ("by_id", "disk/by-path/pci-0", "disk/by-path/pci-0"),
        ("device", "/dev/mapper/vg-pg", "mapper/vg-pg"),
        ("device", "/dev/vg/pg", "vg/pg"),
    ],
)
def test_names_are_normalised(key: str, written: str, read: str) -> None:
    assert getattr(match_of(key, written), key) == read


@pytest.mark.parametrize(
    ("key", "written", "problem"),
    [
        ("mountpoint", "pgdata", "found 'pgdata'; expected a path that starts with /"),
        ("by_id", "/dev/vdb/x", "found '/dev/vdb/x'; expected a link such as virtio-data"),
        ("by_id", "disk/azure", "found 'disk/azure'; expected a link"),
        ("device", "/dev/disk/azure/lun0", "expected a kernel name .*use by_id"),
    ],
)
def test_other_names_are_errors(key: str, written: str, problem: str) -> None:
    with pytest.raises(DiskslaError, match=problem):
        match_of(key, written)


@given(st.lists(st.sampled_from(["a", ".", "", "b c"]), max_size=5))
def test_mount_point_is_normalised_once(parts: list[str]) -> None:
    once = match_of("mountpoint", f"'/{'/'.join(parts)}'").mountpoint
    assert match_of("mountpoint", f"'{once}'").mountpoint == once
