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


def must_hold(trials: Sequence[Trial], directory: Path) -> None:
    """Fail with what promtool says unless all is as expected.

    It evaluates every group once a minute, whatever the group's own interval.
    """
    content = {
        "rule_files": [str(path) for path in RULES],
        "evaluation_interval": "1m",
        "tests": [_as_test(trial) for trial in trials],
    }
    file = directory / "trial.test.yaml"
    file.write_text(yaml.safe_dump(content, width=10**9), encoding="utf-8")
    judged = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr


def check_rules(file: Path) -> None:
    """Fail with what promtool has against a file of rules."""
    command = ["promtool", "check", "rules", "--lint=all", "--lint-fatal", str(file)]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout + check.stderr


def _as_test(trial: Trial) -> dict[str, Any]:
    shown = [one for one in trial.expected if isinstance(one, Shows)]
    fired = [one for one in trial.expected if isinstance(one, Fires)]
    return {
        "interval": "1m",
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
