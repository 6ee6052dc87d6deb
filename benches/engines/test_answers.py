"""Thanos and VictoriaMetrics answer all expressions of the mixin as Prometheus does.

Thanos returns the same numbers, but for ranges after a restart: its deduplication continues a
counter over the restart, so it does not see the zero at which Prometheus ends its extrapolation.
There, rates differ by up to a tenth, and quantiles by more: the rank may get into another bucket.
VictoriaMetrics computes `rate` and `increase` from the last sample before the range to the last
one in it, without extrapolation; its answers are compared with those of Thanos for `xrate` and
`xincrease`, which do the same except where a series begins.
"""

import re
from collections.abc import Callable
from itertools import product

import pytest

from disksla.state.pipeline.latency import LATENCY_BOUNDS_S
from engines.answers import Answer, Difference, differences, query_range, sorted_values, within
from engines.expressions import Expression, expressions
from engines.history import RESTARTED_AFTER_S, RESTARTED_HOST, events
from engines.programs import needs_engines
from engines.stores import Stores, record_all
from fleet.schedule import host_name
from grafana.promql import ranges_in, seconds_of
from support.monitoring_stack import Prometheus

pytestmark = [needs_engines, pytest.mark.alone]

EXPRESSIONS = [pytest.param(each, id=each.name.replace(" ", "-")) for each in expressions()]
LONGEST_RANGE_S = 3 * 3600
DAY_S = 86_400
STEP_S = 1260
"""A whole number of minutes, so that no query is at the second of a sample: the ranges of
Prometheus 2 include a sample at their start, and those of Thanos and VictoriaMetrics do not."""
SECOND = 29
UNLABELLED = re.compile(r"\b(?:top|bottom)k\(")
"""Which of several equal values these select, is not defined."""
RESTARTED = f"{host_name(RESTARTED_HOST)}:10056"
STALE_S = 300.0
"""For so long, Prometheus shows the last sample."""
NUMBER = re.compile(r"(?<=[<>] )\d[\d.]*")
HISTOGRAM = re.compile(r"histogram_quantile|_bucket")


@pytest.fixture(scope="module")
def stores(make_stores: Callable[[int, str], Stores]) -> Stores:
    filled = make_stores(DAY_S, "60s")
    record_all(filled)
    return filled


@pytest.fixture(scope="module")
def extended(stores: Stores) -> Prometheus:
    """Run Thanos Query with functions that take the sample before a range into account."""
    options = {"--query.promql-engine": "thanos", "--query.enable-x-functions": ""}
    return stores.programs.query("extended", stores.endpoints, options)


def times(stores: Stores) -> range:
    return range(stores.start_s + LONGEST_RANGE_S + 600 + SECOND, stores.end_s - 60, STEP_S)


def as_victoria_computes(expression: str) -> str:
    """Return the expression whose functions see the sample before a range, as all there do."""
    extended = re.sub(r"\b(rate|increase)\(", r"x\1(", expression)
    return re.sub(r"(changes\([^\[]*\[)1h\]", r"\g<1>61m]", extended)


def assert_near(
    expression: Expression, expected: Answer, found: Answer, different: list[Difference]
) -> None:
    """Equal values are at the same times, if it is not defined which series are selected.

    In a range query, VictoriaMetrics counts a series that has no value at a time among the lowest.
    """
    if UNLABELLED.search(expression.text):
        left, right = sorted_values(expected), sorted_values(found)
        shown = {time_s for time_s in left if not allclose(left[time_s], right.get(time_s, []))}
        if "bottomk" in expression.text:
            shown -= {
                time_s
                for time_s in right
                if allclose(left[time_s][: len(right[time_s])], right[time_s])
            }
        different = [each for each in different if each.time_s in shown]
    assert not different, f"{expression.text}\n" + "\n".join(map(str, different[:9]))


def allclose(left: list[float], right: list[float]) -> bool:
    return len(left) == len(right) and all(map(within(1e-6), left, right))


def is_of(difference: Difference, instance: str) -> bool:
    """Return whether the series is of a host, or of all."""
    return dict(difference.labels).get("instance", instance) == instance


def after_restart(stores: Stores, difference: Difference) -> bool:
    restarted_s = stores.start_s + RESTARTED_AFTER_S
    return is_of(difference, RESTARTED) and difference.time_s > restarted_s


def begins(stores: Stores, difference: Difference, range_s: float) -> bool:
    """Return whether the series begins in a range of the expression."""
    return any(
        is_of(difference, event.instance)
        and event.time_s <= difference.time_s <= event.time_s + range_s + 2 * STALE_S
        for event in events(stores.start_s, stores.end_s)
    )


def at_threshold(expression: Expression, difference: Difference) -> bool:
    """Return whether a value equals a number of the expression; rounding decides over `> 0.2`."""
    numbers = map(float, NUMBER.findall(expression.text))
    values = (difference.expected, difference.found)
    return None in values and any(
        within(1e-9)(value, number)
        for value, number in product(values, numbers)
        if value is not None
    )


def at_bound(expression: Expression, difference: Difference) -> bool:
    """Return whether the rank of a quantile is exactly where a bucket ends.

    Rounding decides whether the quantile is there or where the next bucket with requests ends.
    """
    values = (difference.expected, difference.found)
    return "histogram_quantile" in expression.text and all(
        value is not None and any(within(1e-6)(value, bound) for bound in LATENCY_BOUNDS_S)
        for value in values
    )


@pytest.mark.parametrize("engine", ["prometheus", "thanos"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_thanos_answers_the_same(stores: Stores, expression: Expression, engine: str) -> None:
    expected = query_range(stores.prometheus.api, expression.text, times(stores))
    found = query_range(stores.thanos, expression.text, times(stores), engine=engine)
    different = [
        each
        for each in differences(expected, found, within(1e-9, 1e-12))
        if not after_restart(stores, each)
    ]
    assert_near(expression, expected, found, different)
    restarted = [
        each
        for each in differences(expected, found, within(0.1, 1e-12))
        if after_restart(stores, each) and "histogram_quantile" not in expression.text
    ]
    assert_near(expression, expected, found, restarted)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_victoria_answers_the_same_but_for_extrapolation(
    stores: Stores, extended: Prometheus, expression: Expression
) -> None:
    text = as_victoria_computes(expression.text)
    expected = query_range(extended, text, times(stores))
    found = query_range(stores.victoria.api, expression.text, times(stores), nocache="1")
    relative = 0.005 if HISTOGRAM.search(expression.text) else 1e-6
    range_s = max(map(seconds_of, ranges_in(expression.text)), default=0.0)
    different = [
        each
        for each in differences(expected, found, within(relative, 1e-6))
        if not begins(stores, each, range_s)
        and not at_threshold(expression, each)
        and not at_bound(expression, each)
    ]
    assert_near(expression, expected, found, different)


def test_most_expressions_have_answers(stores: Stores) -> None:
    """An alert that does not fire on this day is compared, but proves little."""
    empty = [
        each.name
        for each in expressions()
        if not query_range(stores.prometheus.api, each.text, times(stores))
    ]
    assert len(empty) < 10, empty
