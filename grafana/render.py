"""The files in out/, made from the jsonnet beside this: `make mixin`.

    python grafana/render.py [--config MINE.libsonnet] [--out DIRECTORY]

MINE.libsonnet holds an object with those entries of `_config` (config.libsonnet) that shall be
other than they are, so that a site gets rules and dashboards of its own without a copy of ours.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import _jsonnet
import yaml

HERE = Path(__file__).resolve().parent
OUT = HERE / "out"


class _Dumper(yaml.SafeDumper):
    """YAML as people write it: lines of an expression below each other."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def mixin(config: str = "{}") -> dict[str, Any]:
    """Evaluate the mixin with some entries of `_config` replaced by those of a jsonnet object.

    Raises:
        RuntimeError: The jsonnet is wrong; the text says where.

    """
    program = f"""
        local mixin = (import 'mixin.libsonnet') + {{ _config+:: ({config}) }};
        {{
          rules: mixin.prometheusRules,
          alerts: mixin.prometheusAlerts,
          dashboards: mixin.grafanaDashboards,
        }}
    """
    made = _jsonnet.evaluate_snippet("mixin", program, jpathdir=[str(HERE)])
    parts: dict[str, Any] = json.loads(made)
    return parts


def rendered(config: str = "{}") -> dict[str, str]:
    """Give the text of every file, by its path below out/."""
    parts = mixin(config)
    dashboards = {
        f"dashboards/{name}": json.dumps(board, indent=2, sort_keys=True, ensure_ascii=False)
        + "\n"
        for name, board in parts["dashboards"].items()
    }
    return {
        "prometheus_rules.yaml": _as_yaml(parts["rules"]),
        "prometheus_alerts.yaml": _as_yaml(parts["alerts"]),
        **dashboards,
    }


def _as_yaml(content: object) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=True, width=10**9, allow_unicode=True)


def write(files: Mapping[str, str], out: Path) -> None:
    """Write the files, and take away dashboards that are no more."""
    (out / "dashboards").mkdir(parents=True, exist_ok=True)
    for old in (out / "dashboards").glob("*.json"):
        if f"dashboards/{old.name}" not in files:
            old.unlink()
    for name, text in files.items():
        (out / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Render what the command line asks for."""
    parser = argparse.ArgumentParser(description="make rules, alerts and dashboards from jsonnet")
    parser.add_argument(
        "--config", type=Path, help="a jsonnet object with other entries of _config"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="where to (default: %(default)s)")
    arguments = parser.parse_args()
    config = arguments.config.read_text(encoding="utf-8") if arguments.config else "{}"
    write(rendered(config), arguments.out)


if __name__ == "__main__":
    main()
