"""What is recorded is what happened, and nothing where nothing did."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from grafana.promtool import Shows, Trial, must_hold, needs_promtool
from grafana.trials import DISK, HOST, Counter, Gauge, World, info, of_disk, series, verdicts

pytestmark = needs_promtool

OTHER = {**DISK, "device": "vdc"}
VK = {"job": "disksla", "provider": "vk", "terms": "vk.ef-nvme"}
SHARE = "disksla_verdict_seconds_per_assessed_second:ratio_rate5m"
BELOW = of_disk("verdict_seconds_total", verdict="below")
MET = of_disk("verdict_seconds_total", verdict="met")
IDLE = of_disk("verdict_seconds_total", verdict="idle")


def steady(world: World) -> dict[str, str]:
    return {name: course.steady() for name, course in world.items()}


def other(world: World) -> dict[str, str]:
    """Give the same of another disk of the same host."""
    return {name.replace('"vdb"', '"vdc"'): course for name, course in steady(world).items()}


def shows(record: str, value: float, at: str = "80m", **labels: str) -> Shows:
    return Shows(record, at, {series(record, {**DISK, **labels}): value})


def shows_nothing(record: str, at: str = "80m") -> Shows:
    return Shows(record, at, {})


def shows_of_fleet(record: str, value: float, at: str = "80m", **labels: str) -> Shows:
    return Shows(record, at, {series(record, {**VK, **labels}): value})


def compliance(window: str) -> str:
    return f"instance_device:disksla_sla_compliance:ratio{window}"


def of_fleet(window: str) -> str:
    return f"provider_terms:disksla_sla_compliance:ratio{window}"


def rounded(record: str, samples: Mapping[str, float], at: str = "80m") -> Shows:
    return Shows(f"round({record}, 0.001)", at, samples)


def test_rates_and_means(tmp_path: Path) -> None:
    series_scraped = steady(
        {
            of_disk("reads_completed_total"): Counter(6000),
            of_disk("writes_completed_total"): Counter(0),
            of_disk("read_bytes_total"): Counter(60 * 2**20),
            of_disk("written_bytes_total"): Counter(0),
            of_disk("read_time_seconds_total"): Counter(30),
            of_disk("write_time_seconds_total"): Counter(0),
            of_disk("window_load_ratio_sum"): Counter(150),
            of_disk("window_load_ratio_count"): Counter(600),
        }
    )
    expected = [
        shows("instance_device:disksla_reads_completed:rate5m", 100),
        shows("instance_device:disksla_writes_completed:rate5m", 0),
        shows("instance_device:disksla_read_bytes:rate5m", 2**20),
        shows("instance_device:disksla_written_bytes:rate5m", 0),
        shows("instance_device:disksla_read_latency_seconds:mean5m", 0.005),
        shows_nothing("instance_device:disksla_write_latency_seconds:mean5m"),
        shows("instance_device:disksla_window_load_ratio:mean5m", 0.25),
    ]
    must_hold([Trial(series_scraped, expected)], tmp_path)


@pytest.mark.parametrize(
    "metric",
    ["disksla_read_latency_seconds", "disksla_write_latency_seconds", "disksla_window_load_ratio"],
)
def test_quantiles_are_absent_where_nothing_happens(metric: str, tmp_path: Path) -> None:
    record = f"instance_device_quantile:{metric}:histogram_quantile_rate5m"
    bounds = ("0.001", "0.002", "+Inf")

    def scraped(*counts: float) -> dict[str, str]:
        return {
            series(f"{metric}_bucket", {**DISK, "le": bound}): Counter(count).steady()
            for bound, count in zip(bounds, counts, strict=True)
        }

    busy = Shows(
        record,
        "80m",
        {
            series(record, {**DISK, "quantile": "0.5"}): 0.001,
            series(record, {**DISK, "quantile": "0.99"}): 0.00198,
        },
    )
    must_hold(
        [
            Trial(scraped(600, 1200, 1200), [busy]),
            Trial(scraped(0, 0, 0), [shows_nothing(record)]),
        ],
        tmp_path,
    )


def test_shares_are_of_the_seconds_that_were_assessed(tmp_path: Path) -> None:
    """Half of the time is lost in gaps; the shares still add up to one."""
    scraped = steady(
        {
            **verdicts(idle=16, throttled=12, below=4),
            of_disk("throttled_seconds_total", limit="iops"): Counter(8),
            of_disk("throttled_seconds_total", limit="bandwidth"): Counter(4),
            info(): Gauge(1),
        }
    )
    limit_share = "disksla_throttled_seconds_per_assessed_second:ratio_rate5m"
    of_verdict, of_limit = (
        f"instance_device_verdict:{SHARE}",
        f"instance_device_limit:{limit_share}",
    )
    expected = [
        Shows(f'{of_verdict}{{verdict="{verdict}"}}', "80m", {told: value})
        for verdict, value in {"idle": 0.5, "throttled": 0.375, "below": 0.125, "met": 0}.items()
        for told in [series(of_verdict, {**DISK, "verdict": verdict})]
    ]
    expected += [
        Shows(f'{of_limit}{{limit="{limit}"}}', "80m", {told: value})
        for limit, value in {"iops": 0.25, "bandwidth": 0.125}.items()
        for told in [series(of_limit, {**DISK, "limit": limit})]
    ]
    expected.append(Shows(f"sum({of_verdict})", "80m", {"{}": 1}))
    must_hold([Trial(scraped, expected)], tmp_path)


@pytest.mark.parametrize(
    ("below", "met", "throttled", "kept"),
    [(0, 60, 0, 1), (0, 0, 60, 1), (60, 0, 0, 0), (15, 15, 30, 0.75), (1, 1, 0, 0.5)],
)
def test_compliance_is_of_the_time_in_which_it_was_tested(
    below: float, met: float, throttled: float, kept: float, tmp_path: Path
) -> None:
    rest = 60 - below - met - throttled
    scraped = steady(
        {**verdicts(below=below, met=met, throttled=throttled, idle=rest), info(): Gauge(1)}
    )
    at = "130m"
    expected = [shows(compliance(window), kept, at) for window in ("1h", "1d", "30d")]
    expected += [shows_of_fleet(of_fleet(window), kept, at) for window in ("1h", "1d", "30d")]
    longer = {name: f"{values.partition('x')[0]}x140" for name, values in scraped.items()}
    must_hold([Trial(longer, expected)], tmp_path)


@pytest.mark.parametrize("verdict", ["idle", "unproven", "stalled"])
def test_nothing_proven_is_no_compliance_and_never_all_of_it(verdict: str, tmp_path: Path) -> None:
    scraped = steady({**verdicts(**{verdict: 60}), info(): Gauge(1)})
    expected = [
        shows_nothing(record(window)) for record in (compliance, of_fleet) for window in WINDOWS
    ]
    expected.append(shows("instance_device:disksla_proven_seconds:sum1h", 0))
    must_hold([Trial(scraped, expected)], tmp_path)


WINDOWS = ("1h", "1d", "30d")


def test_an_hour_later_the_hour_is_silent_and_the_day_remembers(tmp_path: Path) -> None:
    """Tested for an hour, a quarter of it below; then idle."""
    scraped = {
        BELOW: "0+15x60 900x120",
        MET: "0+45x60 2700x120",
        IDLE: "0x60 60+60x119",
        info(): "1x180",
    }
    expected = [
        shows(compliance("1h"), 0.75, "50m"),
        shows_nothing(compliance("1h"), "130m"),
        shows(compliance("1d"), 0.75, "130m"),
        shows(compliance("30d"), 0.75, "130m"),
    ]
    must_hold([Trial(scraped, expected)], tmp_path)


@pytest.mark.parametrize(
    ("below", "met"),
    [
        ("0+15x40 0+15x60", "0+45x40 0+45x60"),
        ("100+15x40 stale _x20 0+15x40", "700+45x40 stale _x20 0+45x40"),
        ("0+15x40 _x20 915+15x40", "0+45x40 _x20 2745+45x40"),
    ],
    ids=["counters begin again", "the daemon was away", "prometheus was away"],
)
def test_a_gap_or_a_restart_bends_no_compliance(below: str, met: str, tmp_path: Path) -> None:
    scraped = {BELOW: below, MET: met, info(): "1x40 _x20 1x40"}
    kept = series("", DISK)
    expected = [
        rounded(compliance(window), {kept: 0.75}, at)
        for window in WINDOWS
        for at in ("70m", "95m")
    ]
    must_hold([Trial(scraped, expected)], tmp_path)


def test_a_disk_of_which_nothing_is_proven_improves_no_fleet(tmp_path: Path) -> None:
    scraped = {
        **steady({**verdicts(below=30, met=30), info(): Gauge(1)}),
        **other({**verdicts(idle=60), info(): Gauge(1)}),
    }
    expected = [shows_of_fleet(of_fleet(window), 0.5) for window in WINDOWS]
    expected.append(shows_of_fleet("provider_terms:disksla_disks:count", 2))
    must_hold([Trial(scraped, expected)], tmp_path)


def test_a_fleet_is_added_up_by_terms(tmp_path: Path) -> None:
    read: World = {of_disk("reads_completed_total"): Counter(6000), info(): Gauge(1)}
    hdd = {
        name.replace("vk.ef-nvme", "vk.ceph-hdd"): course
        for name, course in steady(read).items()
        if "disk_info" in name
    }
    scraped = {
        **steady({**read, **verdicts(idle=60)}),
        **other({**read, **verdicts(idle=30, throttled=30)}),
        **{name.replace("db1", "db2"): values for name, values in (steady(read) | hdd).items()},
    }
    del scraped[info().replace("db1", "db2")]
    rates = "provider_terms:disksla_reads_completed:rate5m"
    of_verdict = f"provider_terms_verdict:{SHARE}"
    expected = [
        Shows(
            rates,
            "80m",
            {series(rates, VK): 200, series(rates, {**VK, "terms": "vk.ceph-hdd"}): 100},
        ),
        Shows(
            f'{of_verdict}{{verdict="throttled"}}',
            "80m",
            {series(of_verdict, {**VK, "verdict": "throttled"}): 0.25},
        ),
    ]
    must_hold([Trial(scraped, expected)], tmp_path)


def test_a_disk_with_two_infos_is_still_one_disk(tmp_path: Path) -> None:
    """As when a mount point changes, or two Prometheus write into one store."""
    scraped = {
        **steady({**verdicts(below=30, met=30), info(): Gauge(1)}),
        info(mountpoint="/srv"): "1x100",
        of_disk("reads_completed_total"): "0+6000x100",
    }
    expected = [
        Shows("count(instance_device:disksla_disk_info:topk)", "80m", {"{}": 1}),
        shows_of_fleet("provider_terms:disksla_disks:count", 1),
        shows_of_fleet("provider_terms:disksla_reads_completed:rate5m", 100),
        shows_of_fleet(of_fleet("1h"), 0.5),
        Shows('count(ALERTS{alertname="DiskBelowPromise"})', "80m", {"{}": 1}),
    ]
    must_hold([Trial(scraped, expected)], tmp_path)


def test_what_a_site_adds_to_its_targets_survives(tmp_path: Path) -> None:
    at_home = {**HOST, "cluster": "one"}
    scraped = {
        name.replace(",device", ',cluster="one",device'): course.steady()
        for name, course in {**verdicts(below=30, met=30), info(): Gauge(1)}.items()
    }
    told = series(compliance("1h"), {**at_home, "device": "vdb"})
    of_all = series(of_fleet("1h"), {**VK, "cluster": "one"})
    expected = [
        Shows(compliance("1h"), "80m", {told: 0.5}),
        Shows(of_fleet("1h"), "80m", {of_all: 0.5}),
    ]
    must_hold([Trial(scraped, expected)], tmp_path)
