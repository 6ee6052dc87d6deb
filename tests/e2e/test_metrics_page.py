"""The page of metrics, checked by promtool."""

import shutil
import subprocess

import pytest

from disksla.metrics.families import page_families
from disksla.metrics.render import render_metrics
from disksla.pipeline.snapshot import Snapshot
from support.snapshots import (
    ABOUT,
    BURST_LIMITS,
    USAGE,
    disk_view,
    unknown_disk_view,
    view,
)


@pytest.mark.skipif(not shutil.which("promtool"), reason="NOT TESTED: promtool is missing")
@pytest.mark.parametrize(
    "shown", [view(), view(disk_view(limits=BURST_LIMITS), unknown_disk_view())]
)
def test_promtool_finds_no_problem(shown: Snapshot) -> None:
    families = page_families(shown, ABOUT, USAGE)
    check = subprocess.run(
        ["promtool", "check", "metrics"],
        input=render_metrics(families, "").body.decode(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")
