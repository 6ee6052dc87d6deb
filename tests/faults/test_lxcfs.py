"""A container in which lxcfs shows files of its own where those of the kernel should be."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.lxcfs import needs_fuse, shown_by_lxcfs
from support.daemon_process import PATIENCE_S, Daemon
from support.fake_host import FakeMachine
from support.loop_device import eventually

StartDaemon = Callable[..., Daemon]

LXCFS = shutil.which("lxcfs")
HOST = """
mkdir "$0/lxcfs"
setpriv --pdeathsig KILL "$1" --foreground --pidfile="$0/pid" "$0/lxcfs" >"$0/lxcfs.log" 2>&1 &
until [ -e "$0/lxcfs/proc/diskstats" ]; do sleep 0.1; done
shift
exec "$@"
"""
"""`$0` is a directory, `$1` lxcfs, the rest a command."""
CONTAINER = """
for file in diskstats stat; do mount --bind "$0/lxcfs/proc/$file" /proc/$file || exit; done
exec "$@"
"""
"""As lxc.mount.hook does it. lxcfs itself must not see it, or it waits for itself."""
APART = ("unshare", "--mount", "--propagation", "private", "sh", "-c")


def behind_lxcfs(directory: Path) -> tuple[str, ...]:
    """Give what lets a command run behind the real lxcfs, when put before it."""
    assert LXCFS is not None
    unpacked = Path(LXCFS).parents[2]
    libraries = [*unpacked.glob("lib/*-linux-gnu"), *unpacked.glob("usr/lib/*-linux-gnu/lxcfs")]
    path = os.pathsep.join(map(str, libraries))
    return (
        *("env", f"LD_LIBRARY_PATH={path}", *APART, HOST, str(directory), LXCFS),
        *(*APART, CONTAINER, str(directory)),
    )


def measured(daemon: Daemon) -> set[str]:
    """Give the series of disks that only samples can fill."""
    _, page = daemon.get("/metrics")
    named = {line.partition("{")[0] for line in page.splitlines() if 'device="' in line}
    known = ("disksla_disk_", "disksla_limit_", "disksla_burst_limit_")
    return {name for name in named if not name.startswith(known)}


def says_so(daemon: Daemon, file: Path) -> None:
    """Hold all that is said of a diskstats that is not the kernel's."""
    assert eventually(lambda: bool(daemon.devices()), PATIENCE_S)
    assert measured(daemon) == set()
    assert daemon.samples(collector="diskstats")["disksla_collector_success"] == 0
    assert daemon.samples(source="diskstats")["disksla_errors_total"] > 0
    assert daemon.get("/-/ready")[0] == 503
    assert daemon.get("/-/healthy")[0] == 200
    words = f"cannot use {file}: it is provided by fuse.lxcfs, not by the kernel"
    page = daemon.get("/")[1]
    assert "Cannot be read now: diskstats" in page
    assert f"<p>diskstats: {words}" in page
    [said] = [line for line in daemon.log() if words in line]
    assert "level=warning" in said
    assert "--path.procfs" in said


@needs_fuse
def test_counters_of_a_container_are_not_published_as_those_of_a_disk(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    diskstats = machine.paths.procfs / "diskstats"
    daemon = start_daemon(*machine.options, before=shown_by_lxcfs(diskstats), ready=False)
    says_so(daemon, diskstats)
    assert daemon.end() == 0


@needs_fuse
def test_the_iowait_and_the_pressure_of_a_container_are_absent_and_the_rest_is_there(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    stat, pressure = machine.paths.procfs / "stat", machine.paths.procfs / "pressure" / "io"
    pressure.parent.mkdir()
    pressure.write_text("some avg10=0 total=0\nfull avg10=0 total=0\n")
    daemon = start_daemon(*machine.options)
    assert {"disksla_throttled_iowait_seconds_total", "disksla_verdict_seconds_total"} <= measured(
        daemon
    )
    assert daemon.end() == 0
    daemon = start_daemon(*machine.options, before=shown_by_lxcfs(stat, pressure))
    there = measured(daemon)
    assert "disksla_verdict_seconds_total" in there
    assert "disksla_throttled_iowait_seconds_total" not in there
    assert "disksla_throttled_pressure_seconds_total" not in there
    for collector, success in (("diskstats", 1), ("iowait", 0), ("pressure", 0)):
        told = daemon.samples(collector=collector)["disksla_collector_success"]
        assert told == success, collector
    said = [line for line in daemon.log() if "provided by fuse.lxcfs" in line]
    assert len(said) == 2


@pytest.mark.skipif(LXCFS is None, reason="NOT TESTED: lxcfs is missing")
@needs_fuse
def test_the_real_lxcfs_is_noticed(start_daemon: StartDaemon, tmp_path: Path) -> None:
    daemon = start_daemon(before=behind_lxcfs(tmp_path), ready=False)
    says_so(daemon, Path("/proc/diskstats"))
    assert daemon.samples(collector="iowait")["disksla_collector_success"] == 0
    assert daemon.end() == 0


@pytest.mark.skipif(LXCFS is None, reason="NOT TESTED: lxcfs is missing")
@needs_fuse
def test_behind_the_real_lxcfs_the_procfs_of_the_host_helps(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    host = tmp_path / "host"
    host.mkdir()
    mount = (*APART, 'mount --rbind /proc "$0" && exec "$@"', str(host))
    before = (*mount, *behind_lxcfs(tmp_path))
    daemon = start_daemon("--path.procfs", str(host), before=before)
    assert "disksla_verdict_seconds_total" in measured(daemon)
    assert "disksla_throttled_iowait_seconds_total" in measured(daemon)
    assert daemon.samples(collector="diskstats")["disksla_collector_success"] == 1
