"""Every alert fires when it should, to the letter, and at no other time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.promtool import Alert, Fires, Trial, must_hold, needs_promtool
from grafana.trials import (
    AT,
    BROKEN_OFF_AFTER,
    CASES,
    LOOKED_AT_MINUTE,
    Case,
    Course,
    World,
)
from render import OUT

pytestmark = needs_promtool

EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
AFTER_THE_BREAK = [f"{minute}m" for minute in range(BROKEN_OFF_AFTER, LOOKED_AT_MINUTE + 1)]


def scraped(world: World, course: Callable[[Course], str]) -> dict[str, str]:
    return {name: course(values) for name, values in world.items()}


def trial(case: Case, world: World, *alerts: Alert) -> Trial:
    return Trial(scraped(world, lambda values: values.steady()), [Fires(case.name, AT, alerts)])


def silent(case: Case, series: dict[str, str]) -> Trial:
    return Trial(series, [Fires(case.name, at) for at in AFTER_THE_BREAK])


@EVERY_CASE
def test_it_fires_and_tells_what_and_whose(case: Case, tmp_path: Path) -> None:
    must_hold([trial(case, case.bad, case.alert())], tmp_path)


@EVERY_CASE
def test_it_is_silent_just_below(case: Case, tmp_path: Path) -> None:
    must_hold([trial(case, case.good)], tmp_path)


def variations(of: str) -> list[Any]:
    return [
        pytest.param(case, what, id=f"{case.name} {what}")
        for case in CASES
        for what in getattr(case, of)
    ]


@pytest.mark.parametrize(("case", "what"), variations("also_bad"))
def test_it_also_fires(case: Case, what: str, tmp_path: Path) -> None:
    world, alert = case.also_bad[what]
    must_hold([trial(case, world, alert)], tmp_path)


@pytest.mark.parametrize(("case", "what"), variations("also_good"))
def test_it_is_also_silent(case: Case, what: str, tmp_path: Path) -> None:
    must_hold([trial(case, case.also_good[what])], tmp_path)


@EVERY_CASE
def test_it_is_silent_when_counters_begin_again(case: Case, tmp_path: Path) -> None:
    must_hold([silent(case, scraped(case.good, lambda values: values.reset()))], tmp_path)


@EVERY_CASE
def test_it_is_silent_when_the_daemon_is_restarted(case: Case, tmp_path: Path) -> None:
    must_hold([silent(case, scraped(case.good, lambda values: values.restarted()))], tmp_path)


@EVERY_CASE
def test_it_is_silent_without_series(case: Case, tmp_path: Path) -> None:
    gone = scraped(case.bad, lambda values: values.gone())
    must_hold([trial(case, {}), Trial(gone, [Fires(case.name, AT)])], tmp_path)


def test_every_alert_is_on_trial() -> None:
    groups = yaml.safe_load((OUT / "prometheus_alerts.yaml").read_text(encoding="utf-8"))["groups"]
    alerts = [rule["alert"] for group in groups for rule in group["rules"]]
    assert alerts == [case.name for case in CASES]
