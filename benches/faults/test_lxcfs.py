"""Containers in which lxcfs mounts its own files over those of procfs."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.lxcfs import needs_fuse, through_lxcfs
from support.daemon_process import PATIENCE_S, Daemon
from support.fake_host import FakeMachine
from support.waiting import eventually

StartDaemon = Callable[..., Daemon]

LXCFS = shutil.which("lxcfs")
HOST = """
mkdir "$0/lxcfs"
setpriv --pdeathsig KILL "$1" --foreground --pidfile="$0/pid" "$0/lxcfs" >"$0/lxcfs.log" 2>&1 &
until [ -e "$0/lxcfs/proc/diskstats" ]; do kill -0 $! || exit; sleep 0.1; done
shift
exec "$@"
"""
"""Script that mounts lxcfs: `$0` is a directory, `$1` is lxcfs, the rest is a command."""
CONTAINER = """
for file in diskstats stat; do mount --bind "$0/lxcfs/proc/$file" /proc/$file || exit; done
exec "$@"
"""
"""Script that mounts as lxc.mount.hook does. lxcfs must not see these mounts, or it deadlocks."""
IN_MOUNT_NAMESPACE = ("unshare", "--mount", "--propagation", "private", "sh", "-c")


def through_real_lxcfs(directory: Path) -> tuple[str, ...]:
    """Return the prefix that makes a command see procfs through the real lxcfs."""
    assert LXCFS is not None
    unpacked = Path(LXCFS).parents[2]
    libraries = [*unpacked.glob("lib/*-linux-gnu"), *unpacked.glob("usr/lib/*-linux-gnu/lxcfs")]
    path = os.pathsep.join(map(str, libraries))
    return (
        *("env", f"LD_LIBRARY_PATH={path}", *IN_MOUNT_NAMESPACE, HOST, str(directory), LXCFS),
        *(*IN_MOUNT_NAMESPACE, CONTAINER, str(directory)),
    )


def sampled_metrics(daemon: Daemon) -> set[str]:
    """Return the names of the disks' metrics that come from samples."""
    _, page = daemon.get("/metrics")
    names = {line.partition("{")[0] for line in page.splitlines() if 'device="' in line}
    static = ("disksla_disk_", "disksla_mount_", "disksla_limit_", "disksla_burst_limit_")
    return {name for name in names if not name.startswith(static)}


def check_diskstats_is_rejected(daemon: Daemon, file: Path) -> None:
    """Check metrics, health, status page and log for a diskstats that is not the kernel's."""
    assert eventually(lambda: bool(daemon.devices()), PATIENCE_S)
    assert sampled_metrics(daemon) == set()
    assert daemon.samples(collector="diskstats")["disksla_collector_success"] == 0
    assert daemon.samples(source="diskstats")["disksla_errors_total"] > 0
    assert daemon.get("/-/ready")[0] == 503
    assert daemon.get("/-/healthy")[0] == 200
    problem = f"cannot use {file}: it is provided by fuse.lxcfs, not by the kernel"
    page = daemon.get("/")[1]
    assert "Not working: diskstats" in page
    assert f"<p>diskstats: {problem}" in page
    [line] = [line for line in daemon.log() if problem in line]
    assert "level=warning" in line
    assert "--path.procfs" in line


@needs_fuse
def test_diskstats_of_lxcfs_is_not_published(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    diskstats = machine.paths.procfs / "diskstats"
    daemon = start_daemon(*machine.options, before=through_lxcfs(diskstats), ready=False)
    check_diskstats_is_rejected(daemon, diskstats)
    assert daemon.end() == 0


@needs_fuse
def test_iowait_and_pressure_of_lxcfs_are_absent(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    stat, pressure = machine.paths.procfs / "stat", machine.paths.procfs / "pressure" / "io"
    pressure.parent.mkdir()
    pressure.write_text("some avg10=0 total=0\nfull avg10=0 total=0\n")
    daemon = start_daemon(*machine.options)
    assert {
        "disksla_throttled_iowait_seconds_total",
        "disksla_verdict_seconds_total",
    } <= sampled_metrics(daemon)
    assert daemon.end() == 0
    daemon = start_daemon(*machine.options, before=through_lxcfs(stat, pressure))
    metrics = sampled_metrics(daemon)
    assert "disksla_verdict_seconds_total" in metrics
    assert "disksla_throttled_iowait_seconds_total" not in metrics
    assert "disksla_throttled_pressure_seconds_total" not in metrics
    for collector, success in (("diskstats", 1), ("iowait", 0), ("pressure", 0)):
        value = daemon.samples(collector=collector)["disksla_collector_success"]
        assert value == success, collector
    lines = [line for line in daemon.log() if "provided by fuse.lxcfs" in line]
    assert len(lines) == 2


@pytest.mark.skipif(LXCFS is None, reason="NOT TESTED: lxcfs is missing")
@needs_fuse
def test_real_lxcfs_is_detected(start_daemon: StartDaemon, tmp_path: Path) -> None:
    daemon = start_daemon(before=through_real_lxcfs(tmp_path), ready=False)
    check_diskstats_is_rejected(daemon, Path("/proc/diskstats"))
    assert daemon.samples(collector="iowait")["disksla_collector_success"] == 0
    assert daemon.end() == 0


@pytest.mark.skipif(LXCFS is None, reason="NOT TESTED: lxcfs is missing")
@needs_fuse
def test_procfs_of_the_host_works_with_real_lxcfs(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    host = tmp_path / "host"
    host.mkdir()
    mount = (*IN_MOUNT_NAMESPACE, 'mount --rbind /proc "$0" && exec "$@"', str(host))
    before = (*mount, *through_real_lxcfs(tmp_path))
    daemon = start_daemon("--path.procfs", str(host), before=before)
    assert "disksla_verdict_seconds_total" in sampled_metrics(daemon)
    assert "disksla_throttled_iowait_seconds_total" in sampled_metrics(daemon)
    assert daemon.samples(collector="diskstats")["disksla_collector_success"] == 1
