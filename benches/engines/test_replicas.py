"""Two scrapers of each disk: every engine has one answer, with one of them dead as well."""

import time
from collections.abc import Callable
from subprocess import Popen

import pytest

from engines.answers import answer_of
from engines.live import DISKS, INTERVAL_S, scrape
from engines.programs import Programs, needs_engines
from support.monitoring_stack import Prometheus
from support.waiting import eventually

pytestmark = [needs_engines, pytest.mark.alone]

COUNT = "count(disksla_disk_info)"
ASSESSED = "sum(rate(disksla_verdict_seconds_total[20s]))"
COMPLIANCE = (
    '1 - sum(increase(disksla_verdict_seconds_total{verdict=~"below|stalled"}[20s]))'
    ' / sum(increase(disksla_verdict_seconds_total{verdict=~"met|throttled|below|stalled"}[20s]))'
)
SAMPLES = "max(count_over_time(up[20s]))"
SCRAPED_S = 40.0
WITHIN_S = 30.0


def value(api: Prometheus, expression: str, **options: str) -> float | None:
    """Return the only value of an expression."""
    answer = answer_of(api.get("/api/v1/query", query=expression, **options))
    return next((found for values in answer.values() for found in values.values()), None)


def kill(process: Popen[bytes]) -> None:
    process.kill()
    process.wait()


def test_thanos_answers_once_for_two_prometheus_with_sidecars(
    programs: Programs, fleet: str
) -> None:
    replicas = [programs.prometheus(name, scrape(fleet, replica=name)) for name in ("a", "b")]
    sidecars = [
        programs.sidecar(name, replica.api.address)
        for name, replica in zip(("a", "b"), replicas, strict=True)
    ]
    thanos = programs.query("query", sidecars)
    time.sleep(SCRAPED_S)
    assert value(thanos, COUNT, dedup="false") == 2 * DISKS
    assert_one_answer(thanos, lambda: replicas[0].api)
    assert value(thanos, SAMPLES) == pytest.approx(20 / INTERVAL_S, abs=1)
    kill(replicas[0].process)
    assert eventually(lambda: value(thanos, COUNT, dedup="false") == DISKS, WITHIN_S, 0.5)
    assert_one_answer(thanos, lambda: replicas[1].api)


def test_victoria_keeps_one_sample_of_two_vmagents(programs: Programs, fleet: str) -> None:
    store = programs.victoria("victoria", {"-dedup.minScrapeInterval": f"{INTERVAL_S}s"})
    doubled = programs.victoria("doubled", {"-dedup.minScrapeInterval": "1ms"})
    reference = programs.prometheus("prometheus", scrape(fleet))
    urls = [store.write_url, doubled.write_url]
    _, agent = [programs.vmagent(name, scrape(fleet), urls) for name in ("a", "b")]
    time.sleep(SCRAPED_S)
    assert_one_answer(store.api, lambda: reference.api)
    assert value(store.api, SAMPLES) == pytest.approx(20 / INTERVAL_S, abs=1)
    assert value(doubled.api, SAMPLES) == pytest.approx(2 * 20 / INTERVAL_S, abs=2)
    kill(agent)
    time.sleep(5 * INTERVAL_S)
    assert_one_answer(store.api, lambda: reference.api)


def assert_one_answer(api: Prometheus, reference: Callable[[], Prometheus]) -> None:
    """The servers scrape at other moments, so that rates of the last seconds differ a little."""
    assert value(api, COUNT) == DISKS
    for expression in (ASSESSED, COMPLIANCE):
        expected = value(reference(), expression)
        assert expected is not None
        assert value(api, expression) == pytest.approx(expected, rel=0.05), expression
