"""Configurations of Prometheus and Alertmanager with the rules, at intervals of a test."""

from pathlib import Path

import yaml

from render import HERE, render_rules, write

SHORT = """
{
  projectUrl: 'https://disksla.test',
  ruleInterval: '1s',
  slowRuleInterval: '1s',
  longRuleInterval: '1s',
  rateWindow: '5s',
  stepWindow: '5s',
  belowAtLeastSeconds: 3,
  belowFor: '1s',
  throttledWindow: '5s',
  throttledFor: '1s',
  throttledShare: 0.5,
  nearWindow: '5s',
  nearFor: '6s',
  unexplainedShare: 0.6,
  unexplainedFor: '3s',
  creditsSoonWindow: '5s',
  creditsSoonFor: '1s',
}
"""


def alertmanager_config(receiver: str, directory: Path) -> Path:
    """Write the example configuration, with short intervals and the webhook as receiver."""
    content = yaml.safe_load((HERE / "alertmanager.example.yml").read_text(encoding="utf-8"))
    for entry in content["receivers"]:
        for webhook in entry.get("webhook_configs", []):
            webhook["url"] = f"http://{receiver}/{entry['name']}"
    [parent] = content["route"]["routes"]
    for route in (parent, *parent["routes"]):
        route.update(group_wait="1s", group_interval="1s")
    config = directory / "alertmanager.yml"
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    return config


def prometheus_config(daemon: str, alerting: str, directory: Path) -> Path:
    """Write a configuration that scrapes a daemon, evaluates all rules and sends alerts."""
    write(render_rules(SHORT), directory / "rules")
    content = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(directory / "rules" / "*.yaml")],
        "scrape_configs": [{"job_name": "disksla", "static_configs": [{"targets": [daemon]}]}],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alerting]}]}]},
    }
    config = directory / "prometheus.yml"
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    return config
