"""Pages of simulated hosts, and the demo with a real Prometheus."""

import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from fleet.hosts import DISKS_OF_TWO, page_at, samples_at
from fleet.stack import missing
from support.examples import scaled
from support.monitoring_stack import Prometheus

SEED, START_S, DAY_S = 1, 1_800_000_000.0, 86_400
PATIENCE_S = 60.0
hosts, moments = st.integers(0, 50), st.floats(START_S, START_S + DAY_S)


def samples(host: int, now_s: float) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    page = page_at(SEED, host, START_S, now_s)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }


@scaled(25)
@given(hosts, moments, st.floats(0, DAY_S))
def test_counters_never_decrease(host: int, now_s: float, later_s: float) -> None:
    before, after = samples(host, now_s), samples(host, now_s + later_s)
    assert before.keys() == after.keys()
    counted = [each for each in before if each[0].endswith(("_total", "_bucket", "_count"))]
    assert [each for each in counted if after[each] < before[each]] == []


@scaled(25)
@given(hosts, moments)
def test_verdict_seconds_add_up_to_the_age(host: int, now_s: float) -> None:
    """Of each disk but the one that was not assessed."""
    verdict_s: dict[str, float] = defaultdict(float)
    for (name, labels), value in samples(host, now_s).items():
        if name == "disksla_verdict_seconds_total":
            verdict_s[dict(labels)["device"]] += value
    age_s = now_s - (START_S // DAY_S - 2) * DAY_S
    assessed = [each for each in verdict_s.values() if each]
    assert len(assessed) > len(verdict_s) - 2
    assert assessed == pytest.approx([age_s] * len(assessed))


def test_hosts_differ_and_history_is_that_of_the_pages() -> None:
    pages = [page_at(SEED, host, START_S, START_S) for host in range(4)]
    assert len(set(pages)) == 4
    history = samples_at(SEED, 1, START_S, START_S)
    labels = 'job="disksla",instance="host-0001:10056"'
    assert all(labels in line and line.endswith(" 1800000000\n") for line in history)
    assert len(history) == 1 + sum(not line.startswith("#") for line in pages[1].splitlines())


@contextmanager
def demo(*options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "fleet", *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.skipif(missing() is not None, reason=f"NOT TESTED: {missing()}")
def test_demo_has_history_and_cleans_up() -> None:
    with demo("--hosts=2", "--hours=1", "--interval=1") as process:
        assert process.stdout is not None
        output = []
        for line in process.stdout:
            output.append(line)
            if "Ctrl-C" in line:
                break
        [address] = [
            line.split("http://")[1].split("/")[0] for line in output if "Prometheus " in line
        ]
        children = psutil.Process(process.pid).children(recursive=True)
        [home] = {
            Path(argument.partition("=")[2]).parent
            for child in children
            for argument in child.cmdline()
            if argument.startswith("--storage.tsdb.path=")
        }
        assert home.is_dir()
        series = "count_over_time(disksla_disk_info[1h] offset 5m)"
        assert query_value(address, f"count({series} > 30)") == DISKS_OF_TWO
        recorded = "instance_device:disksla_proven_seconds:increase5m"
        series = f"count_over_time({recorded}[1h] offset 5m)"
        assert query_value(address, f"count({series} > 5)") >= DISKS_OF_TWO - 2
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert not home.exists()
    assert psutil.wait_procs(children, PATIENCE_S)[1] == []


def query_value(address: str, promql: str) -> float:
    [sample] = Prometheus(address).query(promql)
    return float(sample["value"][1])
