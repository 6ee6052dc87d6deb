"""Unit tests of rules: `promtool test rules` over series that the tests define."""

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from render import OUT

RECORDING_RULES = OUT / "prometheus_rules.yaml"
ALERTS = OUT / "prometheus_alerts.yaml"
Series = Mapping[str, str]
"""Values in promtool's notation (`0+60x10`: 0 and ten times 60 more), by series."""

needs_promtool = pytest.mark.skipif(
    not shutil.which("promtool"), reason="NOT TESTED: promtool is not installed (prometheus)"
)


Expected = dict[str, Any]
"""What rules must make of series, as promtool reads it."""


class RuleTest(NamedTuple):
    """Input series, and what the rules must make of them."""

    series: Series
    expected: Sequence[Expected]


def expect_alerts(
    name: str, at: str, alerts: Iterable[tuple[Mapping[str, str], Mapping[str, str]]]
) -> Expected:
    """Expect that these alerts with a name fire at a time, with all labels and annotations."""
    fired = [
        {"exp_labels": dict(labels), "exp_annotations": dict(texts)} for labels, texts in alerts
    ]
    return {"alertname": name, "eval_time": at, "exp_alerts": fired}


def expect_samples(expression: str, at: str, samples: Mapping[str, float]) -> Expected:
    """Expect the result of an expression at a time, by series."""
    found = [{"labels": series, "value": value} for series, value in samples.items()]
    return {"expr": expression, "eval_time": at, "exp_samples": found}


def run_rule_tests(
    tests: Mapping[str, Sequence[RuleTest]], directory: Path, rule_files: Sequence[Path]
) -> dict[str, str]:
    """Return the output of promtool for each failed test, by its name.

    One process runs all tests. It evaluates every group once a minute and ignores its interval.
    """
    files = {name: directory / f"{number}.yaml" for number, name in enumerate(tests)}
    for name, file in files.items():
        content = {
            "rule_files": [str(path) for path in rule_files],
            "evaluation_interval": "1m",
            "tests": [_to_yaml(test) for test in tests[name]],
        }
        file.write_text(yaml.safe_dump(content, width=10**9), encoding="utf-8")
    done = subprocess.run(
        ["promtool", "test", "rules", *files.values()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    section = r"^Unit Testing: +(\S+)\n(.*?)(?=^Unit Testing: |\Z)"
    sections = dict(re.findall(section, done.stdout, flags=re.DOTALL | re.MULTILINE))
    results = {name: sections.get(str(file), done.stdout) for name, file in files.items()}
    failures = {name: text for name, text in results.items() if text.strip() != "SUCCESS"}
    assert bool(failures) == bool(done.returncode), done.stdout
    return failures


def check_rules(file: Path) -> None:
    """Check a file of rules with promtool, and fail with its output."""
    command = ["promtool", "check", "rules", "--lint=all", "--lint-fatal", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _to_yaml(test: RuleTest) -> dict[str, Any]:
    return {
        "interval": "1m",
        "input_series": [
            {"series": series, "values": values} for series, values in test.series.items()
        ],
        "promql_expr_test": [each for each in test.expected if "expr" in each],
        "alert_rule_test": [each for each in test.expected if "alertname" in each],
    }
