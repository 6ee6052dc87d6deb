"""Measurement and demo with a few hosts, a real Prometheus, and seconds instead of minutes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from fleet.measure import Measurement, measure, report
from fleet.schedule import DISKS_PER_HOST
from fleet.stack import missing
from support.monitoring_stack import Prometheus

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"NOT TESTED: {missing()}")

HOSTS = 3
PATIENCE_S = 60.0


def test_measure_a_small_fleet(tmp_path: Path) -> None:
    figures = measure(Measurement(HOSTS, 1.0, 3), tmp_path, time.sleep)
    values = {figure.what: figure.value for figure in figures}
    assert values["hosts scraped"] == HOSTS
    assert values["disks"] == HOSTS * DISKS_PER_HOST
    assert 50 < values["series per disk, mean"] < values["series per disk, most"] < 200
    assert values["head series"] > HOSTS * DISKS_PER_HOST * 50
    assert values["samples ingested per second"] > 0
    assert values["failed rule evaluations"] == values["missed rule group evaluations"] == 0
    assert values["samples out of order"] == 0
    assert report(figures).count("\n") == len(figures) + 2


@contextmanager
def demo(*options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "fleet", "demo", *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_demo_has_history_and_cleans_up() -> None:
    with demo("--hosts=1", "--hours=1", "--interval=1") as process:
        assert process.stdout is not None
        output = []
        for line in process.stdout:
            output.append(line)
            if "Ctrl-C" in line:
                break
        [address] = [
            line.split("http://")[1].split("/")[0] for line in output if "Prometheus" in line
        ]
        children = psutil.Process(process.pid).children(recursive=True)
        [home] = {
            Path(argument.partition("=")[2]).parent
            for child in children
            for argument in child.cmdline()
            if argument.startswith("--storage.tsdb.path=")
        }
        assert home.is_dir()
        disks = query_value(
            address, "count(count_over_time(disksla_disk_info[1h] offset 5m) > 30)"
        )
        assert disks == DISKS_PER_HOST
        for record in ("disksla_proven_seconds:increase5m", "disksla_state:worst5m"):
            series = f"instance_device:{record}"
            recorded = query_value(address, f"count(count_over_time({series}[1h] offset 5m) > 5)")
            assert recorded == DISKS_PER_HOST
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert not home.exists()
    assert psutil.wait_procs(children, PATIENCE_S)[1] == []


def query_value(address: str, promql: str) -> float:
    [sample] = Prometheus(address).query(promql)
    return float(sample["value"][1])
