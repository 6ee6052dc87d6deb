"""Rules on trial: what Prometheus makes of series that we invent."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from render import OUT

RULES = [OUT / "prometheus_rules.yaml", OUT / "prometheus_alerts.yaml"]
Series = Mapping[str, str]
"""Values in promtool's notation (`0+60x10`: 0 and ten times 60 more), by series."""

needs_promtool = pytest.mark.skipif(
    not shutil.which("promtool"), reason="NOT TESTED: promtool is not installed (prometheus)"
)


class Alert(msgspec.Struct, frozen=True):
    """An alert that fires, to the letter."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Fires(msgspec.Struct, frozen=True):
    """What must fire under a name at a time; nothing, if there are no alerts."""

    name: str
    at: str
    alerts: Sequence[Alert] = ()


class Shows(msgspec.Struct, frozen=True):
    """What an expression must give at a time, by series."""

    expression: str
    at: str
    samples: Mapping[str, float]


class Trial(msgspec.Struct, frozen=True):
    """Series, and what is to be made of them."""

    series: Series
    expected: Sequence[Fires | Shows]
    evaluated_every: str = "1m"
    scraped_every: str = "1m"


def try_out(
    trials: Sequence[Trial], directory: Path, rules: Sequence[Path] = RULES
) -> subprocess.CompletedProcess[str]:
    """Let promtool judge; a trial that fails is told in what it prints."""
    intervals = {trial.evaluated_every for trial in trials}
    assert len(intervals) == 1, "one file has one interval of evaluation"
    content = {
        "rule_files": [str(path) for path in rules],
        "evaluation_interval": intervals.pop(),
        "tests": [_as_test(trial) for trial in trials],
    }
    file = directory / "trial.test.yaml"
    file.write_text(yaml.safe_dump(content, width=10**9), encoding="utf-8")
    return subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )


def must_hold(trials: Sequence[Trial], directory: Path) -> None:
    """Fail with what promtool says unless all is as expected."""
    judged = try_out(trials, directory)
    assert judged.returncode == 0, judged.stdout + judged.stderr


def _as_test(trial: Trial) -> dict[str, Any]:
    shown = [one for one in trial.expected if isinstance(one, Shows)]
    fired = [one for one in trial.expected if isinstance(one, Fires)]
    return {
        "interval": trial.scraped_every,
        "input_series": [
            {"series": series, "values": values} for series, values in trial.series.items()
        ],
        "promql_expr_test": [
            {
                "expr": one.expression,
                "eval_time": one.at,
                "exp_samples": [
                    {"labels": series, "value": value} for series, value in one.samples.items()
                ],
            }
            for one in shown
        ],
        "alert_rule_test": [
            {
                "alertname": one.name,
                "eval_time": one.at,
                "exp_alerts": [
                    {
                        "exp_labels": dict(alert.labels),
                        "exp_annotations": dict(alert.annotations),
                    }
                    for alert in one.alerts
                ],
            }
            for one in fired
        ],
    }
