"""Disks that hang or are removed under load, and storms of uevents."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.lxcfs import needs_fuse
from lab.disk import made
from lab.scenario import all_scenarios, read_scenario
from support.daemon_process import PATIENCE_S, Daemon
from support.loop_device import needs_loop, used
from support.waiting import eventually

StartDaemon = Callable[..., Daemon]

SCENARIO = all_scenarios()["stall"]
EVENTS = 200
NO_RUN = 'mount -t tmpfs none /run && exec "$0" "$@"'


def monitor_only(device: str, tmp_path: Path) -> tuple[str, str]:
    config = tmp_path / "config.yml"
    config.write_text(f"discovery: {{include: ['^{device}$']}}\n")
    return ("--config.file", str(config))


def seconds(daemon: Daemon, verdict: str) -> float:
    return daemon.samples(verdict=verdict)["disksla_verdict_seconds_total"]


def reads(daemon: Daemon, device: str) -> float:
    return daemon.samples(device=device)["disksla_reads_completed_total"]


def inflight(daemon: Daemon, device: str) -> float | None:
    return daemon.samples(device=device).get("disksla_inflight")


def ticks(daemon: Daemon) -> float:
    return daemon.samples()["disksla_sampler_ticks_total"]


def errors(daemon: Daemon) -> list[str]:
    severe = ("level=error", "level=critical", "report it")
    return [line for line in daemon.log() if any(word in line for word in severe)]


@contextmanager
def loaded_disk(
    start_daemon: StartDaemon, tmp_path: Path
) -> Iterator[tuple[Daemon, str, subprocess.Popen[str]]]:
    """Yield a daemon, a disk under load, and the process that serves its requests in 2 ms."""
    with made(SCENARIO, 0, read_scenario(SCENARIO).disks[0], tmp_path) as disk:
        assert disk.server is not None
        daemon = start_daemon(*monitor_only(disk.device, tmp_path))
        with used(disk.device, tmp_path):
            assert eventually(lambda: reads(daemon, disk.device) > 100, PATIENCE_S)
            yield daemon, disk.device, disk.server


@needs_fuse
@needs_loop
def test_hanging_disk_is_stalled_until_it_recovers(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    with loaded_disk(start_daemon, tmp_path) as (daemon, device, server):
        stalled_s = seconds(daemon, "stalled")
        assert stalled_s < 1
        server.send_signal(signal.SIGSTOP)
        try:
            assert eventually(lambda: seconds(daemon, "stalled") > stalled_s + 1, PATIENCE_S)
            assert inflight(daemon, device) == 16
            assert daemon.get("/-/healthy")[0] == 200
            before = reads(daemon, device)
        finally:
            server.send_signal(signal.SIGCONT)
        assert eventually(lambda: reads(daemon, device) > before + 100, PATIENCE_S)
    assert errors(daemon) == []


@needs_fuse
@needs_loop
def test_disk_removed_under_load_does_not_disturb_the_daemon(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    with loaded_disk(start_daemon, tmp_path) as (daemon, device, server):
        server.kill()
        assert eventually(lambda: inflight(daemon, device) == 0, PATIENCE_S)
    before = ticks(daemon)
    assert eventually(lambda: ticks(daemon) > before, PATIENCE_S)
    size = "disksla_disk_size_bytes"
    assert eventually(lambda: daemon.samples(device=device)[size] == 0, PATIENCE_S)
    assert daemon.get("/-/healthy")[0] == 200
    assert daemon.samples(collector="diskstats")["disksla_collector_success"] == 1
    assert errors(daemon) == []
    assert daemon.end() == 0


def test_storm_of_uevents_causes_no_gap_and_no_error(
    start_daemon: StartDaemon, loop_device: str, tmp_path: Path
) -> None:
    daemon = start_daemon(*monitor_only(loop_device, tmp_path))
    before = ticks(daemon)
    with Path(f"/sys/class/block/{loop_device}/uevent").open("wb", buffering=0) as uevent:
        uevent.writelines([b"change"] * EVENTS)
    os.truncate(tmp_path / "disk", 32 * 2**20)
    subprocess.run(["losetup", "--set-capacity", f"/dev/{loop_device}"], check=True)
    size = "disksla_disk_size_bytes"
    assert eventually(lambda: daemon.samples(device=loop_device)[size] == 32 * 2**20, PATIENCE_S)
    assert ticks(daemon) > before
    assert daemon.samples(source="disks")["disksla_errors_total"] == 0
    for reason in ("replaced", "vanished", "reset"):
        assert daemon.samples(reason=reason)["disksla_gaps_total"] == 0, reason


def test_changes_are_noticed_without_udev(
    start_daemon: StartDaemon, loop_device: str, tmp_path: Path
) -> None:
    """/run is empty, as on a host without udevd: uevents of the kernel are enough."""
    before = ("unshare", "--mount", "--propagation", "private", "sh", "-c", NO_RUN)
    daemon = start_daemon(*monitor_only(loop_device, tmp_path), before=before)
    assert daemon.samples(collector="disks")["disksla_collector_success"] == 1
    os.truncate(tmp_path / "disk", 32 * 2**20)
    subprocess.run(["losetup", "--set-capacity", f"/dev/{loop_device}"], check=True)
    size = "disksla_disk_size_bytes"
    assert eventually(lambda: daemon.samples(device=loop_device)[size] == 32 * 2**20, PATIENCE_S)
    assert daemon.samples(source="disks")["disksla_errors_total"] == 0
