"""Recorded series have the right values, and no samples where there is nothing to measure."""

from collections.abc import Mapping, Sequence

import pytest

from grafana.alert_series import (
    DISK,
    HOST,
    Counter,
    Gauge,
    World,
    info,
    of_disk,
    series,
    throttled_by,
    verdicts,
)
from grafana.promtool import (
    ALERTS,
    RECORDING_RULES,
    Expected,
    RuleTest,
    expect_samples,
    needs_promtool,
    run_rule_tests,
)

pytestmark = needs_promtool

TERMS = "vk.ef-nvme"
OTHER_TERMS = "vk.ceph-hdd"
WINDOWS = ("1h", "1d", "30d")
AT = "80m"
SHARE = "disksla_verdict_seconds_per_assessed_second:ratio_rate5m"
BELOW = of_disk("verdict_seconds_total", verdict="below")
MET = of_disk("verdict_seconds_total", verdict="met")
IDLE = of_disk("verdict_seconds_total", verdict="idle")
THROTTLED = of_disk("verdict_seconds_total", verdict="throttled")
AT_IOPS = of_disk("throttled_seconds_total", limit="iops")
AT_MACHINE = of_disk("throttled_seconds_total", limit="machine_iops")
Input = dict[str, str]


def steady(world: World, minutes: int = 100) -> Input:
    return {name: values.steady().replace("x100", f"x{minutes}") for name, values in world.items()}


def renamed(given: Input, host: str = "db1", device: str = "vdb", terms: str = TERMS) -> Input:
    """Return the same series of another disk."""
    return {
        name.replace('"vdb"', f'"{device}"').replace("db1:", f"{host}:").replace(TERMS, terms): x
        for name, x in given.items()
    }


def disk_sample(record: str, value: float, at: str = AT, **labels: str) -> Expected:
    name = "" if is_computed(record) else record
    return expect_samples(record, at, {series(name, {**DISK, **labels}): value})


def no_samples(record: str, at: str = AT) -> Expected:
    return expect_samples(record, at, {})


def of_terms(record: str, value: float, at: str = AT, **labels: str) -> Expected:
    return expect_samples(record, at, {series(record, terms_labels(**labels)): value})


def terms_labels(terms: str = TERMS, **labels: str) -> dict[str, str]:
    return {"job": "disksla", "provider": "vk", "terms": terms, **labels}


def compliance(window: str, level: str = "instance_device") -> str:
    """Return the recorded compliance, or the expression with which it is queried."""
    if (window, level) == ("1h", "instance_device"):
        noncompliant = sum_of_hour("disksla_noncompliant_seconds")
        return f"(1 - {noncompliant} / ({sum_of_hour('disksla_proven_seconds')} > 0))"
    return f"{level}:disksla_sla_compliance:ratio{window}"


def sum_of_hour(metric: str) -> str:
    return f"sum_over_time(instance_device:{metric}:increase5m[1h])"


def is_computed(record: str) -> bool:
    """Return whether it is an expression, whose result has no name."""
    return "(" in record


def shares_are_of_assessed_seconds() -> list[RuleTest]:
    """Half of the time is in gaps; the shares still add up to one."""
    scraped = steady({**verdicts(idle=16, throttled=12, below=4), info(): Gauge(1)})
    shares = {"idle": 0.5, "throttled": 0.375, "below": 0.125, "met": 0}
    of_verdict = f"provider_terms_verdict:{SHARE}"
    expected = [
        expect_samples(
            f'{of_verdict}{{verdict="{verdict}"}}',
            AT,
            {series(of_verdict, terms_labels(verdict=verdict)): value},
        )
        for verdict, value in shares.items()
    ]
    expected.append(expect_samples(f"sum({of_verdict})", AT, {"{}": 1}))
    return [RuleTest(scraped, expected)]


def slow(**per_minute: float) -> World:
    return {
        of_disk("slow_seconds_total", than=than): Counter(seconds)
        for than, seconds in per_minute.items()
    }


def state_is_the_worst_of_five_minutes() -> list[RuleTest]:
    """Each host is in another state; the fraction is the share of the time."""
    credits_left = {"burst_credits_upper_bound": 0.0, "burst_credits_capacity": 8000.0}
    no_credits: World = {
        of_disk(name, resource="iops"): Gauge(value) for name, value in credits_left.items()
    }
    hosts: dict[str, tuple[World, float]] = {
        "idle": (verdicts(idle=60), 0),
        "ok": (verdicts(idle=45, unproven=12, throttled=3), 1.25),
        "unknown": ({**verdicts(idle=45, throttled=15), **throttled_by(iops=0, unknown=15)}, 2.25),
        "throttled": (verdicts(idle=45, throttled=15), 3.25),
        "out-of-credits": ({**verdicts(idle=45, throttled=15), **no_credits}, 4.25),
        "machine": (verdicts(by_machine=9, idle=45, throttled=15), 5.25),
        "less-by-machine": (verdicts(by_machine=6, idle=45, throttled=15), 3.25),
        "slow": (
            {**verdicts(idle=30, unproven=21, throttled=9), **slow(promise=3, usual=12)},
            6.25,
        ),
        "slow-for-a-moment": ({**verdicts(idle=45, unproven=15), **slow(usual=2)}, 1.25),
        "below": ({**verdicts(below=6, throttled=51, met=3), **slow(usual=3)}, 7.1),
        "stalled": (verdicts(stalled=60), 8.99),
    }
    not_assessed = {**verdicts(), info(): Gauge(1)}
    scraped = renamed(steady(not_assessed), host="not-assessed")
    for host, (world, _) in hosts.items():
        scraped |= renamed(steady({**world, info(): Gauge(1)}), host=host)
    states = {of_host(host): state for host, (_, state) in hosts.items()}
    return [
        RuleTest(
            scraped,
            [expect_samples("round(instance_device:disksla_state:worst5m, 0.001)", AT, states)],
        )
    ]


def compliance_of_an_hour_ends_after_an_hour() -> list[RuleTest]:
    """Tested for an hour, a quarter of it below; then idle."""
    scraped = {
        BELOW: "0+15x60 900x120",
        MET: "0+45x60 2700x120",
        AT_IOPS: "0x180",
        IDLE: "0x60 60+60x119",
        info(): "1x180",
    }
    expected = [
        disk_sample(compliance("1h"), 0.75, "50m"),
        no_samples(compliance("1h"), "130m"),
        disk_sample(compliance("1d"), 0.75, "130m"),
        disk_sample(compliance("30d"), 0.75, "130m"),
    ]
    return [RuleTest(scraped, expected)]


def time_throttled_by_the_machine_is_not_tested() -> list[RuleTest]:
    """Each host has other verdicts, with or without limits of the machine.

    The last number is that of tested seconds in five minutes.
    """
    at = "130m"
    hosts: dict[str, tuple[World, float | None, float]] = {
        "only-below": (verdicts(by_machine=40, throttled=40, below=10, met=10), 0.5, 100),
        "throttled-too": (verdicts(by_machine=20, throttled=50, below=10), 0.75, 200),
        "never-below": (verdicts(by_machine=50, throttled=51, idle=9), 1.0, 5),
        "only-by-machine": (verdicts(by_machine=60, throttled=60), None, 0),
        "not-by-machine": (verdicts(by_machine=0, throttled=45, below=15), 0.75, 300),
        "at-an-unknown-limit": (
            {**verdicts(throttled=45, below=10, met=5), **throttled_by(iops=5, unknown=40)},
            0.5,
            100,
        ),
        "only-at-an-unknown-limit": (
            {**verdicts(throttled=60), **throttled_by(iops=0, unknown=60)},
            None,
            0,
        ),
        "of-the-version-before": (verdicts(throttled=45, below=15), 0.75, 300),
        "met": (verdicts(met=60), 1.0, 300),
        "below-for-a-second": (verdicts(idle=58, below=1, met=1), 0.5, 10),
        "stalled": (verdicts(idle=15, stalled=45), 0.0, 225),
        "stalled-and-below": (verdicts(stalled=10, below=5, met=45), 0.75, 300),
        "not-tested": (verdicts(unproven=30, idle=30), None, 0),
    }
    scraped: Input = {}
    for host, (world, _, _) in hosts.items():
        scraped |= renamed(steady({**world, info(): Gauge(1)}, 140), host=host, terms=host)
    ratios = {host: ratio for host, (_, ratio, _) in hosts.items() if ratio is not None}
    tested = {host: seconds for host, (_, _, seconds) in hosts.items()}
    expected = [
        expect_samples(f"{compliance(window, level)} + 0", at, samples)
        for window in WINDOWS
        for level, samples in (
            ("instance_device", {of_host(host): ratio for host, ratio in ratios.items()}),
            (
                "provider_terms",
                {series("", terms_labels(host)): ratio for host, ratio in ratios.items()},
            ),
        )
    ]
    proven = "round(instance_device:disksla_proven_seconds:increase5m, 0.001)"
    expected += [
        expect_samples(proven, at, {of_host(host): seconds for host, seconds in tested.items()}),
        # At most eight for each disk; without compliance if nothing was tested.
        expect_samples(
            'count by (job, instance, device) ({__name__=~"instance_device.*"})',
            at,
            {of_host(host): 8 if host in ratios else 6 for host in hosts},
        ),
    ]
    return [RuleTest(scraped, expected)]


def time_throttled_by_the_machine_is_exactly_none() -> list[RuleTest]:
    """Counters with fractions that no sum of floating-point numbers has exactly."""
    scraped = {
        THROTTLED: "1000.1+0.7x100",
        AT_IOPS: "999.3+0x100",
        AT_MACHINE: "0.8+0.7x100",
        BELOW: "7.7+0x100",
        MET: "3.3+0x100",
        info(): "1x100",
    }
    expected: list[Expected] = [no_samples(compliance(window)) for window in WINDOWS]
    expected.append(disk_sample(sum_of_hour("disksla_proven_seconds"), 0))
    return [RuleTest(scraped, expected)]


def resets_do_not_count_time_throttled_by_the_machine() -> list[RuleTest]:
    """A quarter of the tested time is below; as much again is at a limit of the machine."""
    reset = "500+{0}x40 0+{0}x60"
    restarted = "500+{0}x40 stale _x20 0+{0}x40"
    upgraded = "_x62 0+{0}x40"
    not_scraped = "500+{0}x40 _x20 10000+{0}x40"
    scraped: Input = {}
    for host, values, of_machine in (
        ("reset", reset, reset),
        ("restarted", restarted, restarted),
        ("upgraded", restarted, upgraded),
        ("prometheus-down", not_scraped, not_scraped),
    ):
        counters = {BELOW: 15, MET: 15, AT_IOPS: 30, THROTTLED: 90}
        own = {name: values.format(number) for name, number in counters.items()}
        scraped |= renamed(
            {**own, AT_MACHINE: of_machine.format(60), info(): "1x40 _x20 1x40"}, host=host
        )
    hosts = ("reset", "restarted", "upgraded", "prometheus-down")
    samples = {of_host(host): 0.75 for host in hosts}
    expected = [
        expect_samples(f"round({compliance(window)}, 0.001)", at, samples)
        for window in WINDOWS
        for at in ("70m", "95m")
    ]
    return [RuleTest(scraped, expected)]


def of_host(host: str) -> str:
    return series("", {**DISK, "instance": f"{host}:10056"})


def untested_disks_do_not_raise_compliance_of_terms() -> list[RuleTest]:
    scraped = {
        **steady({**verdicts(below=30, met=30), info(): Gauge(1)}),
        **renamed(steady({**verdicts(idle=60), info(): Gauge(1)}), device="vdc"),
    }
    expected = [of_terms(compliance(window, "provider_terms"), 0.5) for window in WINDOWS]
    expected.append(of_terms("provider_terms:disksla_disks:count", 2))
    return [RuleTest(scraped, expected)]


def sums_by_terms() -> list[RuleTest]:
    reads: World = {of_disk("reads_completed_total"): Counter(6000), info(): Gauge(1)}
    scraped = {
        **steady({**reads, **verdicts(idle=60)}),
        **renamed(steady({**reads, **verdicts(idle=30, throttled=30)}), device="vdc"),
        **renamed(steady(reads), host="db2", terms=OTHER_TERMS),
    }
    rates = "provider_terms:disksla_reads_completed:rate5m"
    expected = [
        expect_samples(
            rates,
            AT,
            {series(rates, terms_labels()): 200, series(rates, terms_labels(OTHER_TERMS)): 100},
        )
    ]
    return [RuleTest(scraped, expected)]


def two_infos_are_one_disk() -> list[RuleTest]:
    """As when a serial becomes known, or two Prometheus servers write to one store."""
    scraped = {
        **steady({**verdicts(below=30, met=30), info(): Gauge(1)}),
        info(serial="2"): "1x100",
        of_disk("reads_completed_total"): "0+6000x100",
    }
    expected = [
        expect_samples("count(instance_device:disksla_disk_info:topk)", AT, {"{}": 1}),
        of_terms("provider_terms:disksla_disks:count", 1),
        of_terms("provider_terms:disksla_reads_completed:rate5m", 100),
        of_terms(compliance("1h", "provider_terms"), 0.5),
        expect_samples('count(ALERTS{alertname="DiskBelowPromise"})', AT, {"{}": 1}),
    ]
    return [RuleTest(scraped, expected)]


def labels_of_a_site_are_kept() -> list[RuleTest]:
    scraped = {
        name.replace(",device", ',cluster="one",device'): values.steady()
        for name, values in {**verdicts(below=30, met=30), info(): Gauge(1)}.items()
    }
    of_disk_ = series(compliance("1d"), {**HOST, "cluster": "one", "device": "vdb"})
    of_all = series(compliance("1h", "provider_terms"), terms_labels(cluster="one"))
    expected = [
        expect_samples(compliance("1d"), AT, {of_disk_: 0.5}),
        expect_samples(compliance("1h", "provider_terms"), AT, {of_all: 0.5}),
    ]
    return [RuleTest(scraped, expected)]


RULE_TESTS: Mapping[str, Sequence[RuleTest]] = {
    function.__name__: function()
    for function in (
        state_is_the_worst_of_five_minutes,
        shares_are_of_assessed_seconds,
        compliance_of_an_hour_ends_after_an_hour,
        time_throttled_by_the_machine_is_not_tested,
        time_throttled_by_the_machine_is_exactly_none,
        resets_do_not_count_time_throttled_by_the_machine,
        untested_disks_do_not_raise_compliance_of_terms,
        sums_by_terms,
        labels_of_a_site_are_kept,
    )
}


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return run_rule_tests(RULE_TESTS, tmp_path_factory.mktemp("rules"), [RECORDING_RULES])


@pytest.mark.parametrize("name", RULE_TESTS)
def test_recording_rules(name: str, failures: dict[str, str]) -> None:
    assert failures.get(name, "") == ""


def test_two_infos_are_one_disk(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("rules")
    rule_files = [RECORDING_RULES, ALERTS]
    assert run_rule_tests({"one": two_infos_are_one_disk()}, directory, rule_files) == {}
