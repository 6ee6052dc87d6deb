"""`disksla serve` in a process of its own."""

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import waiting
from support.daemon_process import PATIENCE_S, Daemon, StartDaemon
from support.loop_device import attach, needs_loop
from support.sysfs_tree import host_of_files

READS, READ_BYTES = 2003, 4096
WRITES, WRITTEN_BYTES = 997, 16384


def eventually(condition: Callable[[], bool]) -> bool:
    return waiting.eventually(condition, PATIENCE_S)


def config_for(device: str, tmp_path: Path) -> str:
    config = tmp_path / "config.yml"
    config.write_text(
        f"disks:\n  - match: {{device: {device}}}\n    terms: vk.ceph-ssd\n    size: 500GiB\n"
    )
    return str(config)


def fio(device: str, *options: str) -> None:
    if shutil.which("fio") is None:
        pytest.skip("needs fio to load a disk")
    command = ["fio", "--output=/dev/null", "--name=load", f"--filename=/dev/{device}"]
    subprocess.run([*command, "--direct=1", "--ioengine=libaio", *options], check=True)


def test_workload_is_counted_exactly(
    start_daemon: StartDaemon, loop_device: str, tmp_path: Path
) -> None:
    daemon = start_daemon("--config.file", config_for(loop_device, tmp_path))
    before = daemon.samples(device=loop_device)
    fio(loop_device, "--rw=randread", "--bs=4k", "--iodepth=8", f"--number_ios={READS}")
    fio(loop_device, "--rw=randwrite", "--bs=16k", "--iodepth=3", f"--number_ios={WRITES}")

    def increase() -> dict[str, float]:
        now = daemon.samples(device=loop_device)
        return {
            name.removeprefix("disksla_"): now[name] - before[name]
            for name in before
            if name.endswith("_total") and "seconds" not in name and "flush" not in name
        }

    expected = {
        "reads_completed_total": READS,
        "writes_completed_total": WRITES,
        "read_bytes_total": READS * READ_BYTES,
        "written_bytes_total": WRITES * WRITTEN_BYTES,
    }
    assert eventually(lambda: increase() == expected), increase()
    after = daemon.samples(device=loop_device)
    all_reads = {"device": loop_device, "le": "+Inf"}
    assert eventually(
        lambda: daemon.samples(**all_reads)["disksla_read_latency_seconds_bucket"] == READS
    )
    assert after["disksla_peak_read_iops"] > 0
    assert after["disksla_limit_read_iops"] == 15000
    assert after["disksla_limit_written_bytes_per_second"] == 400 * 2**20


@pytest.fixture
def detachable(tmp_path: Path) -> Iterator[str]:
    """Return the kernel name of a loop device that a test may detach and attach again."""
    (tmp_path / "disk").write_bytes(bytes(64 * 2**20))
    device = attach(tmp_path / "disk")
    yield Path(device).name
    subprocess.run(["losetup", "--detach", device], check=True)


@needs_loop
def test_added_and_removed_disks_are_noticed(
    start_daemon: StartDaemon, detachable: str, tmp_path: Path
) -> None:
    (tmp_path / "other").write_bytes(bytes(2**20))
    config = tmp_path / "loops.yml"
    config.write_text("disks:\n  - match: {mountpoint: /nowhere}\n    terms: vk.ceph-ssd\n")
    daemon = start_daemon("--config.file", str(config))
    assert detachable not in daemon.devices()
    config.write_text(f"discovery: {{include: ['^{detachable}$']}}\n")
    daemon.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: daemon.devices() == {detachable})
    subprocess.run(["losetup", "-d", f"/dev/{detachable}"], check=True)
    assert eventually(lambda: daemon.samples(device=detachable)["disksla_disk_size_bytes"] == 0)
    subprocess.run(["losetup", f"/dev/{detachable}", tmp_path / "other"], check=True)
    assert eventually(
        lambda: daemon.samples(device=detachable)["disksla_disk_size_bytes"] == 2**20
    )
    assert daemon.samples(reason="replaced")["disksla_gaps_total"] > 0


def reload_metrics(daemon: Daemon) -> tuple[float, float]:
    samples = daemon.samples()
    return (
        samples["disksla_config_last_reload_successful"],
        samples["disksla_config_last_reload_success_timestamp_seconds"],
    )


def test_invalid_file_keeps_old_configuration_on_reload(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    config = tmp_path / "config.yml"
    config.write_text("discovery: {exclude: ['^nothing$']}\n")
    daemon = start_daemon("--config.file", str(config))
    devices = daemon.devices()
    _, accepted_s = reload_metrics(daemon)
    config.write_text("discovery: {exclude: ['.']}\ndisk: []\n")
    status, text = daemon.request("POST", "/-/reload")
    assert status == 500
    assert f"{config}:2: disk: unknown key" in text
    assert reload_metrics(daemon) == (0, accepted_s)
    assert daemon.devices() == devices
    config.write_text("discovery: {exclude: ['.']}\n")
    assert daemon.request("POST", "/-/reload")[0] == 200
    assert reload_metrics(daemon)[0] == 1
    assert reload_metrics(daemon)[1] > accepted_s
    assert eventually(lambda: daemon.devices() == set())
    assert sum("unknown key" in line for line in daemon.log()) == 1


def test_malformed_diskstats_is_counted_and_logged_once(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    daemon = start_daemon(*host_of_files(tmp_path, "vdx 254:0 1MiB"))
    diskstats = tmp_path / "proc" / "diskstats"
    good = diskstats.read_text()
    assert eventually(lambda: daemon.devices() == {"vdx"})

    def healthy() -> bool:
        return daemon.samples(collector="diskstats")["disksla_collector_success"] == 1

    assert eventually(healthy)
    diskstats.write_text(" 254 0 vdx one two three\n")
    assert eventually(lambda: not healthy())
    assert daemon.get("/")[0] == daemon.get("/-/healthy")[0] == 200
    diskstats.write_text(good)
    assert eventually(healthy)
    errors = daemon.samples(source="diskstats")["disksla_errors_total"]
    assert errors >= 1
    events = [line for line in daemon.log() if "source=diskstats device=vdx" in line]
    assert len(events) == 2, events
    assert 'msg="cannot read source"' in events[0]
    assert 'msg="source readable again"' in events[1]


def test_daemon_runs_on_a_read_only_file_system(start_daemon: StartDaemon) -> None:
    script = 'mount --make-rprivate / && mount -o remount,ro,bind / && exec "$0" "$@"'
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        pytest.skip("needs root to make a read-only root")
    daemon = start_daemon(before=("unshare", "-m", "sh", "-c", script))
    assert daemon.devices()
    assert daemon.end() == 0
