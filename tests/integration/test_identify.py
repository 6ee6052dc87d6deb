"""`disksla sweep --identify` on loop devices and on disks of the lab."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from disksla.base.operating_system.state_file import measurement_lock
from lab.disk import made
from lab.scenario import read_scenario
from support.daemon_process import own_state, run
from support.loop_device import used

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")


def test_busy_disk_is_refused(loop_device: str, tmp_path: Path) -> None:
    with used(loop_device, tmp_path):
        ended = run("sweep", "--identify", loop_device, own_state(tmp_path), status=2)
        assert f"cannot measure {loop_device}: other programs use it" in ended.stderr
        options = (own_state(tmp_path), "--runtime=100ms", "--force")
        ended = run("sweep", "--identify", loop_device, *options)
    assert f"other programs use {loop_device}" in ended.stderr
    assert "At queue depth 16" in ended.stdout
    assert all(len(line) <= 80 for line in ended.stdout.splitlines())


def test_measurements_exclude_each_other(loop_device: str, tmp_path: Path) -> None:
    with measurement_lock(tmp_path):
        ended = run("sweep", "--identify", loop_device, own_state(tmp_path), status=2)
    assert "another disksla measurement is running on this machine" in ended.stderr


@pytest.mark.in_check
def test_loop_device_of_cached_pages_is_memory(loop_device: str, tmp_path: Path) -> None:
    """Or at least a medium that does not seek, if the machine is busy."""
    options = (own_state(tmp_path), "--runtime=500ms", "--json", "--force")
    ended = run("sweep", "--identify", loop_device, *options)
    shown = json.loads(ended.stdout)
    assert shown["medium"] in {"memory", "ssd", "nvme", "network"}
    assert shown["evidence"]["random"]["requests"] > 100
    assert shown["evidence"]["buffered_bytes_per_second"] > 10e6
    assert "at most 1.25 GiB; nothing is written." in ended.stderr


SCENARIO = """
caption: a disk to identify
disks:
  - disk: {model}
    load: [{{for: 1s}}]
"""
LIMITED = "{meters: [{limit: iops, iops: 300, window: 0}], service: {latency: 200us}}"
REMOTE = "{service: {latency: 800us, spread: 0.3}}"
"""Far from 0.25 ms (a local SSD) and 2 ms (a rotating disk), even on a busy machine."""

needs_fuse = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/fuse").exists(),
    reason="NOT TESTED: a disk of the lab needs root and /dev/fuse",
)


@contextmanager
def disk_of_the_lab(model: str, directory: Path) -> Iterator[str]:
    scenario = directory / "scenario.yml"
    scenario.write_text(SCENARIO.format(model=model))
    with made(scenario, 0, read_scenario(scenario).disks[0], directory) as disk:
        disk.begin()
        yield disk.device


@needs_fuse
def test_limiter_hides_the_medium(tmp_path: Path) -> None:
    with disk_of_the_lab(LIMITED, tmp_path) as device:
        options = (own_state(tmp_path), "--runtime=1s", "--json", "--force")
        shown = json.loads(run("sweep", "--identify", device, *options, status=1).stdout)
    assert (shown["medium"], shown["limited"]) == ("unknown", True)


@needs_fuse
def test_disk_behind_a_network(tmp_path: Path) -> None:
    with disk_of_the_lab(REMOTE, tmp_path) as device:
        options = (own_state(tmp_path), "--runtime=1s", "--json", "--force")
        shown = json.loads(run("sweep", "--identify", device, *options).stdout)
    assert shown["medium"] == "network"
    assert 0.0008 < shown["evidence"]["random"]["mean_seconds"] < 0.004
