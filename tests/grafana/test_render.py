"""What is committed under grafana/out is what the jsonnet beside it says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from grafana.promtool import check_rules, needs_promtool
from render import HERE, OUT, evaluate, rendered, write


def committed() -> dict[str, str]:
    return {
        str(path.relative_to(OUT)): path.read_text(encoding="utf-8")
        for path in OUT.rglob("*")
        if path.is_file()
    }


def test_rendering_again_changes_nothing() -> None:
    assert rendered() == committed(), "out of date: make mixin"


def test_an_entry_of_the_configuration_is_replaced() -> None:
    ours, theirs = rendered(), rendered("""{ diskslaSelector: 'job="ours"' }""")
    assert theirs == {
        name: text.replace('job="disksla"', 'job="ours"').replace(
            'job=\\"disksla\\"', 'job=\\"ours\\"'
        )
        for name, text in ours.items()
    }


def test_an_alert_that_could_never_fire_is_not_rendered() -> None:
    with pytest.raises(RuntimeError, match=r"quantiles: DiskLatencyAbovePromise needs 0\.99"):
        evaluate("prometheusAlerts", "{ quantiles: ['0.5'] }")


def test_a_mistake_in_the_configuration_is_told_with_its_place() -> None:
    with pytest.raises(RuntimeError, match="Unknown variable: nonsense"):
        evaluate("prometheusAlerts", "{ diskslaSelector: nonsense }")


@needs_promtool
@pytest.mark.parametrize(
    "config",
    [
        "{ hostLabels: ['cluster', 'job', 'instance'] }",
        "{ diskslaSelector: '' }",
        """{ diskslaSelector: 'job=~"disksla-.+", team="db"' }""",
        "{ rateWindow: '2m', stepWindow: '10m', ruleInterval: '30s', throttledWindow: '1h' }",
        "{ belowShare: 0.01, quantiles: ['0.5', '0.9', '0.99', '0.999'], latencyFactor: 1 }",
    ],
)
def test_a_site_gets_rules_that_prometheus_takes(config: str, tmp_path: Path) -> None:
    write(rendered(config), tmp_path)
    for file in ("prometheus_rules.yaml", "prometheus_alerts.yaml"):
        check_rules(tmp_path / file)


def test_the_command_writes_where_it_is_told(tmp_path: Path) -> None:
    config = tmp_path / "mine.libsonnet"
    config.write_text("{ stalledSeconds: 77 }", encoding="utf-8")
    command = [sys.executable, str(HERE / "render.py"), "--config", str(config)]
    subprocess.run([*command, "--out", str(tmp_path / "out")], check=True)
    alerts = (tmp_path / "out" / "prometheus_alerts.yaml").read_text(encoding="utf-8")
    assert alerts == rendered("{ stalledSeconds: 77 }")["prometheus_alerts.yaml"]
    assert "> 77" in alerts


def test_a_dashboard_that_is_no_more_is_taken_away(tmp_path: Path) -> None:
    write({"dashboards/old.json": "{}\n", "rules.yaml": ""}, tmp_path)
    write({"dashboards/new.json": "{}\n", "rules.yaml": ""}, tmp_path)
    assert [path.name for path in (tmp_path / "dashboards").iterdir()] == ["new.json"]


def test_keys_are_sorted_so_that_differences_stay_small() -> None:
    for name, text in committed().items():
        content = json.loads(text) if name.endswith(".json") else yaml.safe_load(text)
        assert list(keys_unsorted(content)) == [], name


def keys_unsorted(content: object) -> list[list[str]]:
    if isinstance(content, dict):
        here = [] if list(content) == sorted(content) else [list(content)]
        return here + [found for value in content.values() for found in keys_unsorted(value)]
    if isinstance(content, list):
        return [found for value in content for found in keys_unsorted(value)]
    return []
