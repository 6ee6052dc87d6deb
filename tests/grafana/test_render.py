"""grafana/out is up to date, and settings of a site are applied."""

import subprocess
import sys
from pathlib import Path

import pytest

from grafana.promtool import check_rules, needs_promtool
from render import HERE, OUT, evaluate, rendered, write


def committed() -> dict[str, str]:
    return {
        str(path.relative_to(OUT)): path.read_text(encoding="utf-8")
        for path in OUT.rglob("*")
        if path.is_file()
    }


def test_rendered_files_are_up_to_date() -> None:
    assert rendered() == committed(), "out of date: make mixin"


@pytest.mark.nightly
def test_setting_is_overridden() -> None:
    overridden = rendered("""{ diskslaSelector: 'job="other"' }""")
    assert overridden == {
        name: text.replace('job="disksla"', 'job="other"').replace(
            'job=\\"disksla\\"', 'job=\\"other\\"'
        )
        for name, text in rendered().items()
    }


def test_error_in_settings_names_the_cause() -> None:
    with pytest.raises(RuntimeError, match="Unknown variable: nonsense"):
        evaluate("prometheusAlerts", "{ diskslaSelector: nonsense }")


@pytest.mark.nightly
@needs_promtool
@pytest.mark.parametrize(
    "config",
    [
        "{ hostLabels: ['region', 'job', 'instance'] }",
        "{ diskslaSelector: '' }",
        """{ diskslaSelector: 'job=~"disksla-.+", team="db"' }""",
        "{ rateWindow: '2m', stepWindow: '10m', ruleInterval: '30s', throttledWindow: '1h' }",
        "{ belowShare: 0.01, latencyLoadRatio: '0.9', latencyFactor: 1 }",
    ],
)
def test_promtool_accepts_rules_with_other_settings(config: str, tmp_path: Path) -> None:
    write(rendered(config), tmp_path)
    for file in ("prometheus_rules.yaml", "prometheus_alerts.yaml"):
        check_rules(tmp_path / file)


@pytest.mark.nightly
def test_command_writes_to_the_out_directory(tmp_path: Path) -> None:
    config = tmp_path / "mine.libsonnet"
    config.write_text("{ stalledSeconds: 77 }", encoding="utf-8")
    command = [sys.executable, str(HERE / "render.py"), "--config", str(config)]
    subprocess.run([*command, "--out", str(tmp_path / "out")], check=True)
    alerts = (tmp_path / "out" / "prometheus_alerts.yaml").read_text(encoding="utf-8")
    assert alerts == rendered("{ stalledSeconds: 77 }")["prometheus_alerts.yaml"]
    assert "> 77" in alerts


def test_write_removes_old_dashboards(tmp_path: Path) -> None:
    write({"dashboards/old.json": "{}\n", "rules.yaml": ""}, tmp_path)
    write({"dashboards/new.json": "{}\n", "rules.yaml": ""}, tmp_path)
    assert [path.name for path in (tmp_path / "dashboards").iterdir()] == ["new.json"]


def unsorted_keys(content: object) -> list[list[str]]:
    if isinstance(content, dict):
        here = [] if list(content) == sorted(content) else [list(content)]
        return here + [found for value in content.values() for found in unsorted_keys(value)]
    if isinstance(content, list):
        return [found for value in content for found in unsorted_keys(value)]
    return []
