"""The fleet in small: a real Prometheus, a few hosts, seconds instead of minutes."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from fleet.history import DISKS_PER_HOST
from fleet.measure import Measurement, measure, report
from fleet.stack import missing
from support.monitoring_stack import Prometheus

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"NOT TESTED: {missing()}")

TESTS = Path(__file__).resolve().parent.parent
HOSTS = 3
PATIENCE_S = 60.0


def test_what_a_fleet_costs_is_measured(tmp_path: Path) -> None:
    figures = measure(Measurement(HOSTS, 1.0, 3), tmp_path, time.sleep)
    seen = {figure.what: figure.value for figure in figures}
    assert seen["hosts that answered"] == HOSTS
    assert seen["disks"] == HOSTS * DISKS_PER_HOST
    assert 50 < seen["series per disk, mean"] < seen["series per disk, most"] < 200
    assert seen["head series"] > HOSTS * DISKS_PER_HOST * 50
    assert seen["samples ingested per second"] > 0
    assert seen["rules that failed"] == seen["rounds of rules missed"] == 0
    assert seen["samples out of order"] == 0
    assert report(figures).count("\n") == len(figures) + 2


@contextmanager
def demo(*words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "fleet", "demo", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TESTS)
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_demo_has_a_past_goes_on_and_leaves_nothing() -> None:
    with demo("--hosts=1", "--hours=1", "--interval=1") as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "Ctrl-C" in line:
                break
        [address] = [
            line.split("http://")[1].split("/")[0] for line in said if "Prometheus" in line
        ]
        children = psutil.Process(process.pid).children(recursive=True)
        [home] = {
            Path(word.partition("=")[2]).parent
            for child in children
            for word in child.cmdline()
            if word.startswith("--storage.tsdb.path=")
        }
        assert home.is_dir()
        detector = answer(address, "count(count_over_time(disksla_disk_info[1h] offset 5m) > 30)")
        assert detector == DISKS_PER_HOST
        for step in ("increase5m", "sum1h"):
            series = f"instance_device:disksla_proven_seconds:{step}"
            recorded = answer(address, f"count(count_over_time({series}[1h] offset 5m) > 5)")
            assert recorded == DISKS_PER_HOST
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert not home.exists()
    assert psutil.wait_procs(children, PATIENCE_S)[1] == []


def answer(address: str, promql: str) -> float:
    [sample] = Prometheus(address).query(promql)
    return float(sample["value"][1])
