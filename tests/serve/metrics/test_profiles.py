"""What each profile publishes."""

from collections.abc import Iterator

import pytest
from hypothesis import given

from disksla.kernel.procfs.diskstats import Counters
from disksla.promise.configuration.settings import Profile
from disksla.serve.metrics.collector import PROFILES, SnapshotCollector, rows_by_profile, rows_of
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.totals import DiskTotals, LatencyMeter
from metrics_page import METRICS, OF_DISKS
from support.examples import scaled
from support.snapshots import ABOUT, changed, disk_view, group_view, probed_disk_view, view, views

Series = tuple[str, frozenset[tuple[str, str]]]


def series(shown: Snapshot, profile: Profile) -> dict[Series, float]:
    shown = changed(shown, profile=profile)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in SnapshotCollector(lambda: shown, lambda: ABOUT).collect()
        for sample in family.samples
    }


def names(shown: Snapshot, profile: Profile) -> set[str]:
    return {name for name, _ in series(shown, profile)}


@scaled(40)
@given(views)
def test_a_smaller_profile_has_fewer_series_with_the_same_values(shown: Snapshot) -> None:
    lean, default, full = (series(shown, profile).items() for profile in PROFILES)
    assert lean <= default <= full


def test_rows_say_what_smaller_profiles_have() -> None:
    assert rows_of(OF_DISKS, "full") == OF_DISKS
    assert set(rows_by_profile()) == set(PROFILES)
    for metric in METRICS:
        for profile, buckets in metric.buckets.items():
            assert metric.kind == "histogram"
            assert PROFILES.index(profile) >= PROFILES.index(metric.profile)
            assert list(buckets.bounds) == sorted(buckets.bounds)
        lean, default = (metric.buckets.get(profile) for profile in ("lean", "default"))
        assert lean is None or (default is not None and {*lean.bounds} <= {*default.bounds})


def test_flushes_are_absent_until_there_are_some() -> None:
    name = "disksla_flushes_completed_total"
    none = view(disk_view(totals=Counters(*[0] * len(Counters._fields))))
    assert name not in names(none, "default")
    assert name in names(none, "full")
    assert name in names(view(disk_view()), "default")
    assert name not in names(view(disk_view()), "lean")


def test_counters_of_verdicts_are_there_from_the_start() -> None:
    """Alerts on them must not miss the first increase."""
    new = view(disk_view(totals=Counters(*[0] * len(Counters._fields))))
    for profile in PROFILES:
        found = {labels for name, labels in series(new, profile) if "verdict_seconds" in name}
        assert len(found) == 6


def test_pressure_on_all_tasks_is_in_full_only() -> None:
    def kinds(profile: Profile) -> Iterator[str]:
        for name, labels in series(view(disk_view()), profile):
            if name == "disksla_throttled_pressure_seconds_total":
                yield dict(labels)["kind"]

    assert [sorted(kinds(profile)) for profile in PROFILES] == [
        ["some"],
        ["some"],
        ["full", "some"],
    ]


def test_sum_and_count_come_together() -> None:
    """As OpenMetrics requires; the bucket +Inf is always there. OpenTelemetry needs the count."""
    shown = view(probed_disk_view(), groups=(group_view(),))
    for profile in PROFILES:
        found = names(shown, profile)
        for metric in METRICS:
            if metric.kind == "histogram":
                present = [f"{metric.name}_{each}" in found for each in ("sum", "count", "bucket")]
                assert present in ([True] * 3, [False] * 3) or (
                    (metric.name, profile) == ("disksla_window_load_ratio", "lean")
                    and present == [False, False, True]
                )


@pytest.mark.parametrize("latency_ms", [0.4, 2, 7, 15, 21, 80, 150, 400])
def test_quantiles_of_latency_are_right_within_a_factor(latency_ms: float) -> None:
    """As histogram_quantile() computes the median of reads that all take the same."""
    reads = LatencyMeter().plus([(100, round(100 * latency_ms), 1.0)] * 2)
    shown = view(changed(disk_view(), totals=DiskTotals(read_latency=reads)))
    found = {
        float(dict(labels)["le"]): count
        for (name, labels), count in series(shown, "default").items()
        if name == "disksla_read_latency_seconds_bucket"
    }
    upper_s = min(bound for bound, count in found.items() if count)
    lower_s = max((bound for bound, count in found.items() if not count), default=0.0)
    assert lower_s < latency_ms / 1000 <= upper_s
    assert upper_s <= max(3.4 * lower_s, 0.0005)
