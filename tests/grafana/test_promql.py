"""Metrics, calls, ranges and matchers are found in PromQL expressions."""

from grafana.promql import (
    calls_in,
    labels_in,
    matchers_in,
    metrics_in,
    ranges_in,
    seconds_of,
    selectors_in,
)


def test_metrics_in_ignores_labels_strings_and_keywords() -> None:
    expression = """
        sum without (verdict) (rate(a_total{verdict="below", job=~"x{y}|z("}[5m])) > 1.5e3
        and on (job, instance) b:c_seconds:mean5m offset 5m
        unless label_replace(d_info, "name", "$1", "e", "(f)") * on (job) group_left (g) h == +Inf
    """
    assert metrics_in(expression) == {"a_total", "b:c_seconds:mean5m", "d_info", "h"}


def test_calls_in_yields_nested_calls() -> None:
    assert list(calls_in('sum(rate(a{b=")"}[5m]))')) == [
        ("sum", 'rate(a{b=""}[5m])'),
        ("rate", 'a{b=""}[5m]'),
    ]


def test_selectors_have_all_names() -> None:
    expression = 'rate(a_total{b="{c}"}[5m]) / on (d) {__name__=~"e|f", g!=""} + h'
    assert sorted(selectors_in(expression)) == [
        ("a_total", [("b", "=", "{c}")]),
        ("e", [("g", "!=", "")]),
        ("f", [("g", "!=", "")]),
        ("h", []),
    ]


def test_labels_that_a_query_creates_are_not_asked_for() -> None:
    created = 'label_replace(a, "b", "$1", "c", "(.*)") * on (b, d) group_left (e) f'
    assert labels_in(created) == {"d", "e"}


def test_ranges_matchers_and_durations() -> None:
    assert ranges_in("rate(a[5m]) + max_over_time(b[1h30m:1m])") == ["5m", "1h30m"]
    assert matchers_in('a{b="c", d=~"e|f"}') == [("b", "=", "c"), ("d", "=~", "e|f")]
    assert seconds_of("1h30m") == 5400
    assert seconds_of("1500s") == 1500
