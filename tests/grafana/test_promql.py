"""Metrics, calls, ranges and matchers are found in PromQL expressions."""

from grafana.promql import calls_in, matchers_in, metrics_in, ranges_in, seconds_of


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


def test_ranges_matchers_and_durations() -> None:
    assert ranges_in("rate(a[5m]) + max_over_time(b[1h30m:1m])") == ["5m", "1h30m"]
    assert matchers_in('a{b="c", d=~"e|f"}') == [("b", "=", "c"), ("d", "=~", "e|f")]
    assert seconds_of("1h30m") == 5400
    assert seconds_of("1500s") == 1500
