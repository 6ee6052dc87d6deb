"""VictoriaMetrics and vmalert say what Prometheus says, of the same history by the same rules.

Intervals of the rules and the durations in `for` are thirtieths of those in the files; the
expressions are not changed. Values are not compared: VictoriaMetrics does not extrapolate.
"""

import contextlib
import datetime as dt
import io
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from disksla.commands.cli import main
from engines.expressions import Expression, expressions
from engines.programs import Stores, missing, stores_in
from grafana.metric_names import recorded
from grafana.promql import seconds_of
from grafana.sample_history import HOUR_S
from render import OUT
from support.monitoring_stack import Prometheus, Service
from support.waiting import eventually

REASON = missing()
pytestmark = [pytest.mark.skipif(REASON is not None, reason=str(REASON)), pytest.mark.alone]

COMMITTED = [OUT / "prometheus_rules.yaml", OUT / "prometheus_alerts.yaml"]
FASTER, INTERVAL, SETTLED_S, PATIENCE_S = 30, "2s", 60, 200
NUMBER = re.compile(r"-?\d[\d.]*[^\s,:]*")
EXPRESSIONS = [pytest.param(each, id=each.name.replace(" ", "-")) for each in expressions()]
Series = frozenset[tuple[str, str]]


def faster(home: Path) -> list[Path]:
    """Write the rules with short intervals."""
    files = []
    for committed in COMMITTED:
        content = yaml.safe_load(committed.read_text(encoding="utf-8"))
        for group in content["groups"]:
            group["interval"] = INTERVAL
            for rule in group["rules"]:
                if "for" in rule:
                    rule["for"] = f"{seconds_of(rule['for']) / FASTER:.0f}s"
        files.append(home / committed.name)
        files[-1].write_text(yaml.safe_dump(content), encoding="utf-8")
    return files


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    home = tmp_path_factory.mktemp("engines")
    with stores_in(home, faster(home)) as made:
        time.sleep(SETTLED_S)
        yield made


def series_of(store: Prometheus, expression: str, at_s: float | None = None) -> set[Series]:
    """Return the labels of the answer; an empty label is none, and NaN is no sample."""
    at = {} if at_s is None else {"time": str(at_s)}
    data = store.get("/api/v1/query", query=expression, **at)["data"]
    found = data["result"] if data["resultType"] == "vector" else [{"metric": {}}]
    return {
        frozenset(pair for pair in one["metric"].items() if pair[1])
        for one in found
        if one.get("value", (0, ""))[1] != "NaN"
    }


def test_vmalert_accepts_the_committed_rules() -> None:
    rules = [f"-rule={file}" for file in COMMITTED]
    done = subprocess.run(
        ["vmalert", "-dryRun", *rules], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_has_the_same_series(stores: Stores, expression: Expression) -> None:
    """`topk` and `bottomk` may select other ones of equal values, but as many."""
    expected, found = (
        series_of(store, expression.text, stores.end_s)
        for store in (stores.prometheus, stores.victoria)
    )
    if re.search(r"\b(?:top|bottom)k\(", expression.text):
        assert len(found) == len(expected)
    else:
        assert found == expected


@pytest.mark.parametrize("name", sorted(recorded()))
def test_recorded_series_are_the_same(stores: Stores, name: str) -> None:
    def are_same() -> bool:
        prometheus = series_of(stores.prometheus, name)
        return bool(prometheus) and prometheus == series_of(stores.victoria, name)

    assert eventually(are_same, PATIENCE_S, 1.0)


def firing(ruler: Service) -> dict[Series, dict[str, str]]:
    """Return the annotations of firing alerts by labels; numbers in them differ in time."""
    return {
        frozenset(alert["labels"].items()): {
            name: NUMBER.sub("#", text) for name, text in alert["annotations"].items()
        }
        for alert in ruler.get("/api/v1/alerts")["data"]["alerts"] or ()
        if alert["state"] == "firing"
    }


def test_the_same_alerts_fire(stores: Stores) -> None:
    assert eventually(
        lambda: firing(stores.vmalert) == firing(stores.prometheus), PATIENCE_S, 1.0
    ), (firing(stores.prometheus), firing(stores.vmalert))
    assert len({dict(labels)["alertname"] for labels in firing(stores.vmalert)}) > 8


def test_alertmanager_gets_one_alert_of_all_rulers(stores: Stores) -> None:
    """Of Prometheus and two vmalert: none adds labels of its own."""

    def labels() -> set[Series]:
        alerts = stores.alertmanager.get("/api/v2/alerts")
        return {frozenset(alert["labels"].items()) for alert in alerts}

    assert eventually(lambda: labels() == firing(stores.prometheus).keys(), PATIENCE_S, 1.0)


def asked(stores: Stores, api: Prometheus, *command: str) -> Any:
    """Return what a command prints of the history until now."""
    times = (stores.end_s - HOUR_S + 60, int(time.time()) // 60 * 60)
    start, end = (f"{dt.datetime.fromtimestamp(each, dt.UTC):%Y-%m-%dT%H:%MZ}" for each in times)
    period = ("--from", start, "--to", end)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        address = f"http://{api.address}"
        assert main([*command, *period, "--prometheus", address, "--json"]) in {0, 1}
    return json.loads(output.getvalue())


def near(value: Any) -> Any:
    """Return a document to compare with: VictoriaMetrics stores fewer digits."""
    if isinstance(value, dict):
        return {name: near(each) for name, each in value.items()}
    if isinstance(value, list):
        return [near(each) for each in value]
    return pytest.approx(value, rel=1e-6, abs=1e-4) if isinstance(value, float) else value


@pytest.mark.parametrize(
    "command",
    [("report",), ("advise", "db-1:10056:vdb", "--terms", "aws.gp3", "--size", "100GiB")],
    ids=["report", "advise"],
)
def test_the_same_report_and_advice(stores: Stores, command: tuple[str, ...]) -> None:
    expected = asked(stores, stores.prometheus, *command)
    assert len(expected.get("disks", ())) > 1
    assert asked(stores, stores.victoria, *command) == near(expected)
