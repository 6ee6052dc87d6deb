"""What is asked of the past: reports, advice, and recording rules that vmalert replays."""

import contextlib
import datetime as dt
import io
import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from disksla.commands.cli import main
from engines.answers import differences, query_range, within
from engines.history import RESTARTED_AFTER_S, RESTARTED_HOST
from engines.programs import local, needs_engines
from engines.stores import Stores
from fleet.schedule import host_name
from grafana.promql import seconds_of
from render import OUT
from support.waiting import eventually

pytestmark = [needs_engines, pytest.mark.alone]

RULES = OUT / "prometheus_rules.yaml"
HISTORY_S = RESTARTED_AFTER_S + 2 * 3600
REPLAYED_S = 2 * 3600
PATIENCE_S = 30.0
RESTARTED = host_name(RESTARTED_HOST)


@pytest.fixture(scope="module")
def stores(make_stores: Callable[[int, str], Stores]) -> Stores:
    return make_stores(HISTORY_S, "60s")


def moment(time_s: float) -> str:
    return f"{dt.datetime.fromtimestamp(time_s, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"


def printed(command: list[str]) -> dict[str, Any]:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert main([*command, "--json"]) in {0, 1}
    found: dict[str, Any] = json.loads(output.getvalue())
    return found


def asked(stores: Stores, engine: str, *command: str) -> dict[str, Any]:
    """Return what a command prints of the history until now."""
    api = {
        "prometheus": stores.prometheus.api,
        "thanos": stores.thanos,
        "victoria": stores.victoria.api,
    }[engine]
    ends_s = stores.start_s + 600, int(time.time()) // 3600 * 3600
    start, end = (
        f"{dt.datetime.fromtimestamp(each_s, dt.UTC):%Y-%m-%dT%H:%M:%SZ}" for each_s in ends_s
    )
    return printed(
        [*command, "--prometheus", f"http://{api.address}", "--from", start, "--to", end]
    )


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Return all values of a document that are no object and no list, by where they are."""
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return {
            name: each for key, part in parts for name, each in flat(part, f"{path}/{key}").items()
        }
    return {path: value}


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """VictoriaMetrics stores fewer digits of large counters."""
    left, right = flat(found), flat(expected)
    assert left.keys() == right.keys()
    for path, value in right.items():
        near = value if not isinstance(value, float) else pytest.approx(value, rel=1e-6, abs=1e-4)
        assert left[path] == near, path


@pytest.mark.parametrize("engine", ["thanos", "victoria"])
def test_the_same_report(stores: Stores, engine: str) -> None:
    command = ("report", "--disk", f"{RESTARTED}:*")
    expected = asked(stores, "prometheus", *command)
    assert len(expected["disks"]) == 10
    assert any(gap["reason"] == "daemon restarted" for gap in expected["disks"][0]["gaps"])
    assert_same(asked(stores, engine, *command), expected)


@pytest.mark.parametrize("engine", ["thanos", "victoria"])
def test_the_same_advice(stores: Stores, engine: str) -> None:
    reported = asked(stores, "prometheus", "report", "--disk", f"{RESTARTED}:*")
    device = next(
        disk["labels"]["device"]
        for disk in reported["disks"]
        if disk["totals"]["verdict_seconds"]["throttled"]
    )
    command = ("advise", f"{RESTARTED}:{device}", "--terms", "aws.gp3", "--size", "100GiB")
    expected = asked(stores, "prometheus", *command)
    assert_same(asked(stores, engine, *command), expected)


@pytest.fixture(scope="module")
def replayed(stores: Stores) -> range:
    """Replay the rules over a part of the history, and return its times, minute by minute."""
    end_s = int(time.time()) // 3600 * 3600
    times = range(end_s - REPLAYED_S, end_s, 60)
    victoria = f"http://{stores.victoria.api.address}"
    command = [
        "vmalert",
        f"-rule={RULES}",
        f"-datasource.url={victoria}",
        f"-remoteWrite.url={victoria}",
        f"-replay.timeFrom={moment(times[0])}",
        f"-replay.timeTo={moment(times[-1])}",
        "-datasource.queryStep=0s",
        f"-httpListenAddr={local()}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return times


def first_rules() -> list[Any]:
    """Return the rules that read scraped series only, with the seconds of their interval."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [
        pytest.param(rule, round(seconds_of(group["interval"])), id=rule["record"])
        for group in groups
        for rule in group["rules"]
        if "instance_device:" not in rule["expr"] and "provider_terms" not in rule["expr"]
    ]


@pytest.mark.parametrize(("rule", "interval_s"), first_rules())
def test_vmalert_records_the_past_at_the_interval_of_each_rule(
    stores: Stores, replayed: range, rule: dict[str, str], interval_s: int
) -> None:
    times = range(replayed.start, replayed.stop, interval_s)
    api, name = stores.victoria.api, rule["record"]
    expected = {
        labels | {("__name__", name)}: values
        for labels, values in query_range(api, f"({rule['expr']}) * 1", times, nocache="1").items()
    }
    assert expected

    def found() -> list[Any]:
        recorded = f"last_over_time({name}[{interval_s}s])"
        answer = query_range(api, recorded, times, nocache="1")
        return differences(expected, answer, within(1e-9))

    assert eventually(lambda: not found(), PATIENCE_S, 1.0), found()[:3]
