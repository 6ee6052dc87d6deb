"""Every alert fires on the series of its case, with the expected text, and at no other time.

Each case has a host of its own, so that promtool evaluates the rules once for all of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pytest
import yaml

from disksla.promise.configuration.settings import Profile
from disksla.serve.metrics.collector import PROFILES
from grafana.alert_cases import CASES, DOWN, Case
from grafana.alert_series import BREAK_MINUTE, EVAL_AT, EVAL_MINUTE, HOST, World
from grafana.metric_names import is_published
from grafana.promtool import (
    ALERTS,
    RECORDING_RULES,
    Expected,
    RuleTest,
    expect_alerts,
    expect_samples,
    needs_promtool,
    run_rule_tests,
)

pytestmark = needs_promtool

AFTER_THE_BREAK = [f"{minute}m" for minute in range(BREAK_MINUTE, EVAL_MINUTE + 1)]
HostSeries = tuple[Case, str, World]
"""A case, the name of its host, and the series of this host."""


def good_hosts() -> Iterator[HostSeries]:
    return ((case, f"{case.name} good", case.good) for case in CASES)


def also_good_hosts() -> Iterator[HostSeries]:
    for case in CASES:
        for what, world in case.also_good.items():
            yield case, f"{case.name} good {what}", world


def also_bad_hosts() -> Iterator[HostSeries]:
    for case in CASES:
        for what, firing in case.also_bad.items():
            yield case, f"{case.name} bad {what}", firing.world


def bad_hosts(cases: Iterable[Case] = CASES) -> Iterator[HostSeries]:
    return ((case, f"{case.name} bad", case.bad.world) for case in cases)


def input_series(hosts: Iterable[HostSeries], pattern: str) -> dict[str, str]:
    """Return the series of all hosts, with values of a pattern (`steady`, ...)."""
    return {
        name.replace(HOST["instance"], host): str(getattr(values, pattern)())
        for _, host, world in hosts
        for name, values in world.items()
    }


def published(series: Mapping[str, str], profile: Profile) -> dict[str, str]:
    return {name: values for name, values in series.items() if is_published(name, profile)}


def silent(hosts: Iterable[HostSeries], *times: str) -> list[Expected]:
    return [expect_samples(firing(case, host), at, {}) for case, host, _ in hosts for at in times]


def fires(hosts: Iterable[HostSeries], at: str) -> list[Expected]:
    return [
        expect_samples(f"count({firing(case, host)})", at, {"{}": 1}) for case, host, _ in hosts
    ]


def firing(case: Case, host: str) -> str:
    return f'ALERTS{{alertname="{case.name}", instance="{host}", alertstate="firing"}}'


def every_alert_with_its_text() -> list[RuleTest]:
    """Expect exactly the alerts of the cases, with all labels and annotations."""
    series: dict[str, str] = {}
    expected: list[Expected] = []
    for case in CASES:
        firings = {f"{case.name} bad": case.bad} | {
            f"{case.name} bad {what}": firing for what, firing in case.also_bad.items()
        }
        for host, each in firings.items():
            series |= input_series([(case, host, each.world)], "steady")
        alerts = [case.alert(each, host) for host, each in firings.items()]
        expected.append(expect_alerts(case.name, EVAL_AT, alerts))
    return [RuleTest(series, [*expected, *fires(bad_hosts(), EVAL_AT)])]


def same_alerts_in_each_profile() -> list[RuleTest]:
    """They differ in what the text adds, such as the observed ceiling."""
    bad = [*bad_hosts(), *also_bad_hosts()]
    good = [*good_hosts(), *also_good_hosts()]
    expected = fires(bad, EVAL_AT) + silent(good, EVAL_AT)
    series = input_series([*bad, *good], "steady")
    return [RuleTest(published(series, profile), expected) for profile in PROFILES]


def daemon_restarts() -> list[RuleTest]:
    hosts = list(good_hosts())
    return [RuleTest(input_series(hosts, "restarted"), silent(hosts, *AFTER_THE_BREAK))]


def missed_scrapes() -> list[RuleTest]:
    """A restart during one scrape ends no alert."""
    hosts = [each for each in bad_hosts() if each[0] is not DOWN]
    minutes = range(EVAL_MINUTE, EVAL_MINUTE + 7)
    expected = [sample for minute in minutes for sample in fires(hosts, f"{minute}m")]
    return [RuleTest(input_series(hosts, "missed"), expected)]


def missing_series() -> list[RuleTest]:
    hosts = list(bad_hosts())
    expected = silent(hosts, EVAL_AT)
    return [RuleTest(input_series(hosts, "ended"), expected), RuleTest({}, expected)]


RULE_TESTS: Mapping[str, Sequence[RuleTest]] = {
    function.__name__: function()
    for function in (
        every_alert_with_its_text,
        same_alerts_in_each_profile,
        daemon_restarts,
        missed_scrapes,
        missing_series,
    )
}


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    rule_files = [RECORDING_RULES, ALERTS]
    return run_rule_tests(RULE_TESTS, tmp_path_factory.mktemp("rules"), rule_files)


@pytest.mark.parametrize("name", RULE_TESTS)
def test_alerts(name: str, failures: dict[str, str]) -> None:
    assert failures.get(name, "") == ""


def test_every_alert_has_a_case() -> None:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    alerts = [rule["alert"] for group in groups for rule in group["rules"]]
    assert alerts == [case.name for case in CASES]
