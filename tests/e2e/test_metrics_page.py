"""The page of metrics, checked by promtool."""

import shutil
import subprocess

import pytest
from prometheus_client import ProcessCollector

from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline.snapshot import Snapshot
from support.snapshots import ABOUT, BURST_LIMITS, disk_view, unknown_disk_view, view


@pytest.mark.skipif(not shutil.which("promtool"), reason="NOT TESTED: promtool is missing")
@pytest.mark.parametrize(
    "shown", [view(), view(disk_view(limits=BURST_LIMITS), unknown_disk_view())]
)
def test_promtool_finds_no_problem(shown: Snapshot) -> None:
    registry = make_registry(SnapshotCollector(lambda: shown, lambda: ABOUT))
    ProcessCollector(registry=registry)
    check = subprocess.run(
        ["promtool", "check", "metrics"],
        input=render_metrics(registry).body.decode(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")
