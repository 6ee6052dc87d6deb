"""Every alert fires when it should, to the letter, and at no other time."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.promtool import Alert, Fires, Shows, Trial, must_hold, needs_promtool
from grafana.trials import (
    AT,
    BROKEN_OFF_AFTER,
    CASES,
    HOST,
    LOOKED_AT_MINUTE,
    OF_COUNTERS,
    Case,
    Course,
    World,
)
from render import OUT

pytestmark = needs_promtool

AFTER_THE_BREAK = [f"{minute}m" for minute in range(BROKEN_OFF_AFTER, LOOKED_AT_MINUTE + 1)]


def scraped(world: World, course: Callable[[Course], str]) -> dict[str, str]:
    return {name: course(values) for name, values in world.items()}


def fires(case: Case, world: World, alert: Alert) -> Trial:
    series = scraped(world, lambda values: values.steady())
    return Trial(series, [Fires(case.name, AT, [alert])])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_fires_and_tells_what_and_whose(case: Case, tmp_path: Path) -> None:
    must_hold([fires(case, case.bad, case.alert())], tmp_path)


def variations() -> list[Any]:
    return [
        pytest.param(case, what, id=f"{case.name} {what}")
        for case in CASES
        for what in case.also_bad
    ]


@pytest.mark.parametrize(("case", "what"), variations())
def test_it_also_fires(case: Case, what: str, tmp_path: Path) -> None:
    world, alert = case.also_bad[what]
    must_hold([fires(case, world, alert)], tmp_path)


def silent(worlds: Iterable[tuple[Case, str, dict[str, str]]], *times: str) -> Trial:
    """Give every alert a host of its own, and expect none of it: one evaluation for all."""
    series: dict[str, str] = {}
    expected: list[Shows] = []
    for case, what, of_case in worlds:
        host = f"{case.name} {what}".strip()
        series |= {name.replace(HOST["instance"], host): told for name, told in of_case.items()}
        firing = f'alertname="{case.name}", instance="{host}", alertstate="firing"'
        expected += [Shows(f"ALERTS{{{firing}}}", at, {}) for at in times]
    return Trial(series, expected)


def every_good(course: Callable[[Course], str]) -> Iterator[tuple[Case, str, dict[str, str]]]:
    return ((case, "", scraped(case.good, course)) for case in CASES)


def test_they_are_silent_just_below(tmp_path: Path) -> None:
    must_hold([silent(every_good(lambda values: values.steady()), AT)], tmp_path)


def test_they_are_silent_where_there_is_a_reason(tmp_path: Path) -> None:
    worlds = [
        (case, what, scraped(world, lambda values: values.steady()))
        for case in CASES
        for what, world in case.also_good.items()
    ]
    must_hold([silent(worlds, AT)], tmp_path)


def test_they_are_silent_when_counters_begin_again(tmp_path: Path) -> None:
    worlds = every_good(lambda values: values.reset())
    must_hold([silent(worlds, *AFTER_THE_BREAK)], tmp_path)


def test_they_are_silent_when_the_daemon_is_restarted(tmp_path: Path) -> None:
    worlds = every_good(lambda values: values.restarted())
    must_hold([silent(worlds, *AFTER_THE_BREAK)], tmp_path)


def test_they_are_silent_without_series(tmp_path: Path) -> None:
    gone = [(case, "", scraped(case.bad, lambda values: values.gone())) for case in CASES]
    nothing = [(case, "", dict[str, str]()) for case in CASES]
    must_hold([silent(gone, AT), silent(nothing, AT)], tmp_path)


def firing(worlds: Iterable[tuple[Case, str, dict[str, str]]], at: str) -> Trial:
    """Look as `silent` looks, and see every one of them."""
    looked = silent(worlds, at)
    asked = [one.expression for one in looked.expected if isinstance(one, Shows)]
    return Trial(looked.series, [Shows(f"count({one})", at, {"{}": 1}) for one in asked])


def test_silence_can_be_broken(tmp_path: Path) -> None:
    bad = [(case, "", scraped(case.bad, lambda values: values.steady())) for case in CASES]
    must_hold([firing(bad, AT)], tmp_path)


def test_nothing_is_hidden_by_counters_that_begin_again(tmp_path: Path) -> None:
    bad = [(case, "", scraped(case.bad, lambda values: values.reset())) for case in OF_COUNTERS]
    must_hold([firing(bad, f"{BROKEN_OFF_AFTER + 3}m")], tmp_path)


def test_every_alert_is_on_trial() -> None:
    groups = yaml.safe_load((OUT / "prometheus_alerts.yaml").read_text(encoding="utf-8"))["groups"]
    alerts = [rule["alert"] for group in groups for rule in group["rules"]]
    assert alerts == [case.name for case in CASES]
