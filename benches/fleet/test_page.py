"""Properties of the pages of simulated hosts: counters, verdicts, buckets, credits, history."""

import math
import operator
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from fleet.models import models
from fleet.page import page_at, samples_at
from fleet.schedule import DAY_S, DAYS, DISKS_PER_HOST, disks_of, model_of, progress_of
from metrics_page import OF_DISKS, OF_THE_DAEMON, OF_THE_MACHINE
from support.examples import scaled

SEED = 1
START_S = 1_800_000_000.0
CUMULATIVE = ("_total", "_bucket", "_count", "_sum")

hosts = st.integers(0, 50)
moments = st.floats(START_S - DAY_S, START_S + DAY_S)
Series = tuple[str, tuple[tuple[str, str], ...]]


def families(host: int, now_s: float) -> list[Metric]:
    page = page_at(SEED, host, START_S, now_s)
    return list(text_string_to_metric_families(page))  # type: ignore[no-untyped-call]


def samples(host: int, now_s: float) -> dict[Series, float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families(host, now_s)
        for sample in family.samples
    }


@scaled(25)
@given(hosts, moments, st.floats(0, 7200))
def test_counters_never_decrease(host: int, now_s: float, later_s: float) -> None:
    before, after = samples(host, now_s), samples(host, now_s + later_s)
    summed = {series for series in before if series[0].endswith(CUMULATIVE)}
    assert summed <= after.keys()
    assert {series for series in summed if after[series] < before[series]} == set()


@given(st.integers(0, 10**6), st.integers(1, 100), st.data())
def test_increases_never_fall_by_rounding(frame: int, ulps: int, data: st.DataObject) -> None:
    """At the ends of frames and of rounds, fractions would lose their last digit."""
    model = models()[data.draw(st.sampled_from(sorted(models())))]
    playback = model.playbacks[data.draw(st.sampled_from(sorted(model.playbacks)))]
    end_s = frame * playback.seconds / (len(playback.frames) - 1)
    before, after = playback.increases(end_s), playback.increases(end_s + ulps * math.ulp(end_s))
    earlier = playback.increases(max(0.0, end_s - ulps * math.ulp(end_s)))
    assert all(map(operator.le, before, after))
    assert all(map(operator.le, earlier, before))


@scaled(25)
@given(hosts, moments)
def test_verdict_seconds_add_up_to_the_age(host: int, now_s: float) -> None:
    verdict_s: dict[str, float] = defaultdict(float)
    for (name, labels), value in samples(host, now_s).items():
        if name == "disksla_verdict_seconds_total":
            verdict_s[dict(labels)["device"]] += value
    for disk in disks_of(SEED, host, START_S):
        assert verdict_s[disk.device] == pytest.approx(now_s - disk.born_s, rel=0.01)


@scaled(25)
@given(hosts, moments)
def test_buckets_are_cumulative(host: int, now_s: float) -> None:
    values_of = samples(host, now_s)
    buckets: dict[Series, list[float]] = defaultdict(list)
    for (name, labels), value in values_of.items():
        if name.endswith("_bucket"):
            others = tuple(each for each in labels if each[0] != "le")
            buckets[name.removesuffix("_bucket"), others].append(value)
    counts = {(f"{name}_count", labels): values[-1] for (name, labels), values in buckets.items()}
    assert counts.keys() & values_of.keys(), "most histograms have no count"
    assert all(values_of.get(series, count) == count for series, count in counts.items())
    assert all(values == sorted(values) for values in buckets.values())


@scaled(25)
@given(hosts, moments)
def test_credits_are_within_their_bounds(host: int, now_s: float) -> None:
    values_of = samples(host, now_s)
    for (name, labels), value in values_of.items():
        if name == "disksla_burst_credits":
            assert 0 <= values_of[f"{name}_lower_bound", labels] <= value
            assert value <= values_of[f"{name}_upper_bound", labels]
            assert value <= values_of[f"{name}_capacity", labels]


def test_page_depends_on_seed_host_and_time() -> None:
    assert page_at(SEED, 3, START_S, START_S) == page_at(SEED, 3, START_S, START_S)
    others = {page_at(SEED, 4, START_S, START_S), page_at(SEED + 1, 3, START_S, START_S)}
    assert page_at(SEED, 3, START_S, START_S) not in others
    assert len(others) == 2


def test_pages_have_only_metrics_of_the_daemon() -> None:
    tables = (OF_DISKS, OF_THE_MACHINE, OF_THE_DAEMON)
    known = {row.name for table in tables for row in table}
    names = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in families(1, START_S)
    }
    assert {name for name in names if not name.startswith("process_")} <= known


def test_fleet_has_every_day() -> None:
    disks = [disk for host in range(200) for disk in disks_of(SEED, host, START_S)]
    assert len(disks) == 200 * DISKS_PER_HOST
    assert len({disk.serial for disk in disks}) == len(disks)
    assert {disk.day for disk in disks} == set(DAYS)
    for disk in disks:
        assert set(DAYS[disk.day]) <= set(model_of(disk).playbacks)


@given(st.integers(0, 300), st.integers(0, 30 * DAY_S))
def test_played_time_is_the_age_of_the_disk(host: int, age_s: int) -> None:
    for disk in disks_of(SEED, host, START_S):
        played_s = progress_of(disk, disk.born_s + age_s).played_s
        assert sum(played_s.values()) == age_s


def test_history_has_the_labels_of_a_scrape() -> None:
    lines = samples_at(SEED, 7, START_S, START_S + 60)
    labels = 'job="disksla",instance="host-0007:10056"'
    assert lines[0] == f"up{{{labels}}} 1 1800000060\n"
    assert all(labels in line and line.endswith(" 1800000060\n") for line in lines)
    page = page_at(SEED, 7, START_S, START_S + 60).splitlines()
    assert len(lines) == 1 + sum(not line.startswith("#") for line in page)


@scaled(25)
@given(st.integers(0, 12), moments, st.floats(0, 1))
def test_series_of_a_machine_are_those_of_its_disks(
    number: int, now_s: float, part: float
) -> None:
    """They are there once, and the disks are throttled while the machine is."""
    later_s = now_s + 7200 * part
    before, after = samples(4 * number, now_s), samples(4 * number, later_s)
    devices = {disk.device for disk in disks_of(SEED, 4 * number, START_S)[:2]}
    members = {
        dict(labels)["device"]
        for name, labels in after
        if name.endswith("_disk_info") and "machine" in name
    }
    assert members == devices
    infos = [labels for name, labels in after if name == "disksla_machine_info"]
    assert [dict(labels)["machine"] for labels in infos] == ["m5.example"]

    def rise(name: str, **wanted: str) -> list[float]:
        return [
            after[series] - before[series]
            for series in after
            if series[0] == name and wanted.items() <= dict(series[1]).items()
        ]

    [together] = rise("disksla_machine_throttled_seconds_total", limit="iops")
    alone = rise("disksla_throttled_seconds_total", limit="machine_iops")
    assert 0 <= together <= 1.02 * 7200 * part + 1
    assert max(alone) <= together * 1.02 + 1
    assert sum(1 for each in alone if each > 0.5 * together - 1) >= len(devices)


def test_hosts_without_a_limit_of_the_machine_have_no_series_of_one() -> None:
    assert not [name for name, _ in samples(1, START_S) if name.startswith("disksla_machine_")]
