"""Render the files in out/ from the jsonnet sources: `make mixin`.

    python grafana/render.py [--config FILE] [--out DIRECTORY]

FILE holds a jsonnet object whose entries replace those of `_config` in config.libsonnet, so that a
site can change thresholds and selectors without copying the sources.
"""

import argparse
import configparser
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import _jsonnet
import yaml

HERE = Path(__file__).resolve().parent
OUT = HERE / "out"
SETUP = HERE.parent / "setup.cfg"


class _Dumper(yaml.SafeDumper):
    """Write texts of several lines as literal blocks."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def project_url(setup: Path = SETUP) -> str:
    """Return the public address of the project, `url` in setup.cfg; empty if it has none."""
    parser = configparser.ConfigParser()
    parser.read(setup, encoding="utf-8")
    return parser.get("metadata", "url", fallback="")


def evaluate(part: str, config: str = "{}") -> Any:
    """Evaluate one part of the mixin, such as `prometheusRules`, with overrides of `_config`.

    Raises:
        RuntimeError: jsonnet found an error; the text names the place.

    """
    program = f"""
        ((import 'mixin.libsonnet')
         + {{ _config+:: {{ projectUrl: {json.dumps(project_url())} }} }}
         + {{ _config+:: ({config}
) }}).{part}
    """
    return json.loads(_jsonnet.evaluate_snippet("mixin", program, jpathdir=[str(HERE)]))


def render_rules(config: str = "{}") -> dict[str, str]:
    """Return the files of Prometheus: recording rules and alerts, by path below out/."""
    return {
        "prometheus_rules.yaml": _to_yaml(evaluate("prometheusRules", config)),
        "prometheus_alerts.yaml": _to_yaml(evaluate("prometheusAlerts", config)),
        "node_exporter_rules.yaml": _to_yaml(evaluate("nodeExporterRules", config)),
    }


def render_dashboards(config: str = "{}") -> dict[str, str]:
    """Return the files of Grafana, by path below out/."""
    return {
        f"dashboards/{name}": json.dumps(board, indent=2, sort_keys=True, ensure_ascii=False)
        + "\n"
        for name, board in evaluate("grafanaDashboards", config).items()
    }


def rendered(config: str = "{}") -> dict[str, str]:
    """Return all files, by path below out/."""
    return render_rules(config) | render_dashboards(config)


def _to_yaml(content: object) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=True, width=10**9, allow_unicode=True)


def write(files: Mapping[str, str], out: Path) -> None:
    """Write files below a directory, and remove dashboards that are not among them."""
    (out / "dashboards").mkdir(parents=True, exist_ok=True)
    for old in (out / "dashboards").glob("*.json"):
        if f"dashboards/{old.name}" not in files:
            old.unlink()
    for name, text in files.items():
        (out / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Render to the directory that the command line names."""
    parser = argparse.ArgumentParser(
        description="render rules, alerts and dashboards from jsonnet"
    )
    parser.add_argument("--config", type=Path, help="jsonnet object that overrides _config")
    parser.add_argument(
        "--out", type=Path, default=OUT, help="output directory (default: %(default)s)"
    )
    arguments = parser.parse_args()
    config = arguments.config.read_text(encoding="utf-8") if arguments.config else "{}"
    write(rendered(config), arguments.out)


if __name__ == "__main__":
    main()
