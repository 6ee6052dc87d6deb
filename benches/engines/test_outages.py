"""A store is killed while it is written to: nothing is lost that was promised to be kept."""

import time
from subprocess import Popen

import pytest

from engines.answers import Answer, answer_of
from engines.live import INTERVAL_S, scrape
from engines.programs import Programs, local, needs_engines
from engines.remote_write import await_ready
from support.monitoring_stack import Prometheus
from support.waiting import eventually

pytestmark = [needs_engines, pytest.mark.alone]

SELECTOR = '{__name__=~"up|disksla_reads_completed_total|disksla_verdict_seconds_total"}'
PHASE_S = 20.0
FLUSHED_S = 15.0
"""After so long, what VictoriaMetrics received is on disk; 8.4 s were lost in one run."""
WITHIN_S = 60.0


def samples(api: Prometheus, from_s: float, to_s: float, **options: str) -> Answer:
    """Return all stored samples between two Unix times."""
    query = f"{SELECTOR}[{to_s - from_s:.0f}s]"
    return answer_of(api.get("/api/v1/query", query=query, time=str(to_s), **options))


def lost(expected: Answer, found: Answer) -> list[float]:
    """Return the times of the samples that only the first has."""
    return sorted(
        time_s
        for labels, values in expected.items()
        for time_s in values.keys() - found.get(labels, {}).keys()
    )


def nothing_is_lost(
    reference: Prometheus, api: Prometheus, start_s: float, end_s: float | None = None
) -> bool:
    """Return whether samples until some seconds ago are in another store, or arrive in time."""
    end_s = end_s or time.time() - 5 * INTERVAL_S
    expected = samples(reference, start_s, end_s)
    assert expected
    return eventually(lambda: not lost(expected, samples(api, start_s, end_s)), WITHIN_S, 1.0)


def test_receivers_lose_nothing_when_one_is_killed(programs: Programs, fleet: str) -> None:
    endpoints, writers = [local(), local()], [local(), local()]
    hashring = programs.write("hashring.json", [{"endpoints": endpoints}])

    def receiver(number: int) -> Popen[bytes]:
        name = "ab"[number]
        return programs.receiver(name, endpoints[number], local(), writers[number], hashring)

    receiver(0)
    killed = receiver(1)
    thanos = programs.query("query", endpoints)
    reference = programs.prometheus("prometheus", {})
    urls = [reference.write_url, f"http://{writers[0]}/api/v1/receive"]
    start_s = time.time()
    for url in urls:
        await_ready(url, round(start_s * 1000))
    programs.vmagent("agent", scrape(fleet), urls)
    time.sleep(PHASE_S)
    killed.kill()
    killed.wait()
    killed_s = time.time()
    time.sleep(PHASE_S)
    assert nothing_is_lost(reference.api, thanos, start_s), f"killed at {killed_s}"
    receiver(1)
    time.sleep(PHASE_S)
    assert nothing_is_lost(reference.api, thanos, start_s), f"killed at {killed_s}"


def test_vmagent_keeps_samples_while_victoria_is_down(programs: Programs, fleet: str) -> None:
    options = {"-dedup.minScrapeInterval": "1ms", "-httpListenAddr": local()}
    store = programs.victoria("victoria", options)
    other = programs.victoria("other", {"-dedup.minScrapeInterval": "1ms"})
    reference = programs.prometheus("prometheus", {})
    urls = [reference.write_url, store.write_url, other.write_url]
    programs.vmagent("agent", scrape(fleet), urls)
    start_s = time.time()
    time.sleep(PHASE_S)
    killed_s = time.time()
    store.process.kill()
    store.process.wait()
    time.sleep(PHASE_S)
    programs.victoria("victoria", options)
    time.sleep(PHASE_S)
    assert nothing_is_lost(reference.api, other.api, start_s)
    assert nothing_is_lost(reference.api, store.api, killed_s)
    assert nothing_is_lost(reference.api, store.api, start_s, killed_s - FLUSHED_S)
