"""All expressions of the mixin: of rules, of alerts and their annotations, and of dashboards."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from grafana.dashboard_lint import ANY_VALUE, filled_in, targets_of
from grafana.metric_names import queries
from render import OUT

JOB = "disksla"
_EVERY_DISK = {**ANY_VALUE, "$__rate_interval": "4m", "$__range": "3h", "$job": JOB}


class Expression(NamedTuple):
    """An expression with values in place of variables."""

    name: str
    text: str


def expressions() -> list[Expression]:
    """Return all expressions, each once."""
    found = [*_of_rules(), *_of_dashboards()]
    return list({expression.text: expression for expression in found}.values())


def _of_rules() -> Iterator[Expression]:
    for name, text in queries().items():
        of_annotation = "annotation" in name
        yield Expression(name, text.replace('=""', '=~".+"') if of_annotation else text)


def _of_dashboards() -> Iterator[Expression]:
    for path in sorted(OUT.glob("dashboards/*.json")):
        for panel, target in targets_of(json.loads(path.read_text(encoding="utf-8"))):
            name = f"{path.stem}: {panel['title']} {target['refId']}"
            yield Expression(name, filled_in(target["expr"], _EVERY_DISK))
