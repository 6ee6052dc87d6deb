"""Answers of queries, and how those of two stores differ."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from support.monitoring_stack import Prometheus

Labels = frozenset[tuple[str, str]]
Answer = Mapping[Labels, Mapping[float, float]]
"""Values by Unix time, of each series."""


class Difference(NamedTuple):
    """A sample that differs; None where there is none."""

    labels: Labels
    time_s: float
    expected: float | None
    found: float | None

    def __str__(self) -> str:
        """Return it in one line."""
        labels = ", ".join(f'{name}="{value}"' for name, value in sorted(self.labels))
        return f"{{{labels}}} at {self.time_s:.0f}: found {self.found}; expected {self.expected}"


def query_range(store: Prometheus, expression: str, times: range, **options: str) -> Answer:
    """Ask a store for the values of an expression at Unix times in seconds."""
    span = {"start": str(times.start), "end": str(times[-1]), "step": str(times.step)}
    return answer_of(store.get("/api/v1/query_range", query=expression, **span, **options))


def answer_of(response: Mapping[str, Any]) -> Answer:
    """Return the answer in a response of the API of Prometheus, to an instant or range query.

    NaN is no sample, which VictoriaMetrics never returns, and an empty label is none.
    """
    data = response["data"]
    if data["resultType"] == "scalar":
        data = {"result": [{"metric": {}, "value": data["result"]}]}
    answer: dict[Labels, dict[float, float]] = {}
    for one in data["result"]:
        samples = one["values"] if "values" in one else [one["value"]]
        values = {float(time_s): float(text) for time_s, text in samples}
        if kept := {time_s: value for time_s, value in values.items() if not math.isnan(value)}:
            answer[frozenset(pair for pair in one["metric"].items() if pair[1])] = kept
    return answer


def differences(
    expected: Answer, found: Answer, is_near: Callable[[float, float], bool]
) -> list[Difference]:
    """Return all samples that one answer has and the other has not, or that are not near."""
    return [
        Difference(labels, time_s, left, right)
        for labels in sorted(set(expected) | set(found), key=sorted)
        for time_s in sorted(set(expected.get(labels, {})) | set(found.get(labels, {})))
        for left, right in [
            (expected.get(labels, {}).get(time_s), found.get(labels, {}).get(time_s))
        ]
        if left is None or right is None or not is_near(left, right)
    ]


def sorted_values(answer: Answer) -> dict[float, list[float]]:
    """Return the values at each time, without their labels."""
    found: dict[float, list[float]] = {}
    for values in answer.values():
        for time_s, value in values.items():
            found.setdefault(time_s, []).append(value)
    return {time_s: sorted(values) for time_s, values in sorted(found.items())}


def within(relative: float, absolute: float = 0.0) -> Callable[[float, float], bool]:
    """Return whether two values are as near as this."""
    return lambda left, right: math.isclose(left, right, rel_tol=relative, abs_tol=absolute)
