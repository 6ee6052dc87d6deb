"""The rules for hosts without a daemon, on a real Prometheus with a real node_exporter.

A disk of the lab is throttled, then loaded just below its limit, then hardly loaded. Another has
no limiter, and terms of 1.3 times its load. Windows are of seconds.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from lab.__main__ import missing
from lab.disk import all_made
from lab.experiment import configuration
from lab.scenario import read_scenario
from render import render_rules, write
from support.daemon_process import run
from support.loop_device import used
from support.monitoring_stack import (
    Prometheus,
    Service,
    free_port,
    needs_prometheus,
    prometheus,
    running,
)
from support.waiting import eventually

REASON = missing()
pytestmark = [
    pytest.mark.alone,
    pytest.mark.in_check,
    needs_prometheus,
    pytest.mark.skipif(REASON is not None, reason=f"NOT TESTED: the lab {REASON}"),
    pytest.mark.skipif(
        shutil.which("prometheus-node-exporter") is None,
        reason="NOT TESTED: prometheus-node-exporter is not installed",
    ),
]
PATIENCE_S = 40.0
SHORT = """
{
  ruleInterval: '1s',
  nodeRateWindow: '6s',
  atLimitWindow: '8s',
  atLimitFor: '1s',
  nearWindow: '6s',
  nearFor: '1s',
}
"""
SCENARIO = """
caption: one disk at its limit, one without a limiter
disks:
  - disk: {meters: [{limit: iops, iops: 300}], service: {latency: 500us}}
    terms: {budget: sum, iops: 300}
    load: []
  - disk: {service: {latency: 10ms}}
    terms: {budget: sum, iops: 390}
    load: []
"""


@contextmanager
def scraped(textfiles: Path, directory: Path) -> Iterator[Prometheus]:
    """Run Prometheus and node_exporter, which has loop devices and the files of a directory."""
    exporter = Service(f"127.0.0.1:{free_port()}", "/metrics")
    command = [
        "prometheus-node-exporter",
        "--collector.disable-defaults",
        "--collector.diskstats",
        "--collector.diskstats.device-exclude=^nothing$",
        "--collector.textfile",
        f"--collector.textfile.directory={textfiles}",
        f"--web.listen-address={exporter.address}",
    ]
    write(render_rules(SHORT), directory)
    target = {"job_name": "node", "static_configs": [{"targets": [exporter.address]}]}
    config = {
        "global": {"scrape_interval": "1s"},
        "rule_files": ["node_exporter_rules.yaml"],
        "scrape_configs": [target],
    }
    (directory / "prometheus.yml").write_text(json.dumps(config))
    with (
        running(command, exporter, directory / "node_exporter.log"),
        prometheus(directory / "prometheus.yml", directory / "data") as server,
    ):
        yield server


def test_alerts_fire_and_resolve_and_a_free_disk_is_not_accused(tmp_path: Path) -> None:
    path, textfiles = tmp_path / "scenario.yml", tmp_path / "textfiles"
    textfiles.mkdir()
    path.write_text(SCENARIO)
    scenario = read_scenario(path)
    with ExitStack() as undo:
        disks = undo.enter_context(all_made(path, scenario, tmp_path))
        limited, free = [disk.device for disk in disks]
        config = tmp_path / "disksla.yml"
        config.write_text(json.dumps(configuration(disks, scenario)))
        run("limits", f"--textfile={textfiles / 'disksla.prom'}", f"--config.file={config}")
        server = undo.enter_context(scraped(textfiles, tmp_path))
        undo.enter_context(used(free, tmp_path, "--rate_iops=300"))
        for disk in disks:
            disk.begin()

        def fires(*names: str) -> bool:
            found = server.query(f'ALERTS{{device="{limited}", alertstate="firing"}}')
            return [each["metric"]["alertname"] for each in found] == list(names)

        with used(limited, tmp_path):
            assert eventually(lambda: fires("DiskAtLimit"), PATIENCE_S, every_s=0.5)
        with used(limited, tmp_path, "--rate_iops=270"):
            assert eventually(lambda: fires("DiskLoadHigh"), PATIENCE_S, every_s=0.5)
        with used(limited, tmp_path, "--rate_iops=30"):
            assert eventually(fires, PATIENCE_S, every_s=0.5)
        [load] = server.query(
            f'instance_device_limit:node_disk_load:ratio_rate6s{{device="{free}"}}'
        )
        assert 0.5 < float(load["value"][1]) < 0.8
        assert server.query(f'count_over_time(ALERTS{{device="{free}"}}[5m])') == []
