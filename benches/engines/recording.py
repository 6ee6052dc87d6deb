"""Recorded series of a history, as Prometheus records them, written to several stores."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from engines.answers import query_range
from engines.remote_write import STALE, Sample, Series, send
from grafana.promql import seconds_of
from render import OUT
from support.monitoring_stack import Prometheus

_FIRST_SECOND = 50
"""Of a minute, at which the first group is evaluated; each other group follows a second later, so
that no sample is at the boundary of a range."""


def record(source: Prometheus, write_urls: Sequence[str], start_s: int, end_s: int) -> None:
    """Evaluate the recording rules on one store, rule by rule, and write the series to all."""
    rules = yaml.safe_load((OUT / "prometheus_rules.yaml").read_text(encoding="utf-8"))
    for number, group in enumerate(rules["groups"]):
        second = _FIRST_SECOND + number
        for rule in group["rules"]:
            series = list(_recorded(source, rule, start_s + second, end_s, group["interval"]))
            for url in write_urls:
                send(url, series)


def _recorded(
    source: Prometheus, rule: dict[str, Any], start_s: int, end_s: int, interval: str
) -> Iterator[Series]:
    own = {"__name__": rule["record"], **rule.get("labels", {})}
    step_s = round(seconds_of(interval))
    answer = query_range(source, rule["expr"], range(start_s, end_s, step_s))
    for labels, values in answer.items():
        yield Series({**dict(labels), **own}, _with_ends(values, step_s, end_s))


def _with_ends(values: Mapping[float, float], step_s: int, end_s: int) -> list[Sample]:
    """Return samples, with one that ends the series before each gap, as rules write it."""
    after = {time_s + step_s for time_s in values if time_s + step_s < end_s}
    ends = dict.fromkeys(after - set(values), STALE)
    found = sorted({**values, **ends}.items(), key=lambda sample: sample[0])
    return [Sample(round(time_s * 1000), value) for time_s, value in found]
