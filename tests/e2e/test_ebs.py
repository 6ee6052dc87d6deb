"""Statistics pages from the helper to the page of metrics, with the real commands."""

import signal
import stat
import subprocess
from pathlib import Path

import pytest

from disksla.base.operating_system.packets import decode_packet
from disksla.clouds.ebs_statistics.reading import MESSAGES, Failure
from support.daemon_process import DISKSLA, PATIENCE_S, StartDaemon, run
from support.ebs_disks import Disks, helping
from support.ebs_pages import Page
from support.waiting import eventually


@pytest.fixture
def disks(tmp_path: Path) -> Disks:
    return Disks(tmp_path)


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Return the flags for a machine with one disk of AWS, nvme1n1."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "diskstats").write_text(f"   259       0 nvme1n1{' 0' * 17}\n")
    (tmp_path / "disksla.yml").write_text(
        f"state: {{directory: {tmp_path / 'state'}}}\nebs: {{socket: {tmp_path / 'ebs.sock'}}}\n"
    )
    paths = {"config.file": "disksla.yml", "path.procfs": "proc", "path.sysfs": "sys"}
    return [f"--{option}={tmp_path / name}" for option, name in paths.items()]


def test_what_aws_counts_is_published_recorded_and_replayed(
    start_daemon: StartDaemon, disks: Disks, flags: list[str], tmp_path: Path
) -> None:
    throttled_us = 0

    def page() -> bytes:
        nonlocal throttled_us
        throttled_us += 250_000
        return Page(volume_exceeded_tp_us=throttled_us, queue_length=3).written()

    disks.add("nvme1", page)
    with helping(disks, tmp_path / "ebs.sock"):
        daemon = start_daemon(*flags)

        def throttled_s() -> float:
            found = daemon.samples(device="nvme1n1", limit="bandwidth")
            return found.get("disksla_provider_throttled_seconds_total", 0.0)

        assert eventually(lambda: throttled_s() >= 1, PATIENCE_S)
        assert daemon.samples(device="nvme1n1")["disksla_provider_queue_length"] == 3
        assert daemon.samples(collector="ebs") == {"disksla_collector_success": 1}
        run("record", "--for=3s", *flags, str(tmp_path / "recording.jsonl"))
        once = run("serve", "--once", "--for=2s", *flags).stdout
    recording = (tmp_path / "recording.jsonl").read_text()
    assert '"provider":[{"type":"reading","device":"nvme1n1"' in recording
    for metrics in (once, run("replay", "--metrics", str(tmp_path / "recording.jsonl")).stdout):
        assert (
            'disksla_provider_throttled_seconds_total{device="nvme1n1",limit="iops"} 0' in metrics
        )
        assert 'disksla_provider_queue_length{device="nvme1n1"} 3' in metrics
    assert eventually(lambda: not daemon.samples(collector="ebs"), PATIENCE_S)
    messages = [line for line in daemon.log() if "component=ebs" in line]
    assert [line.partition(' msg="')[2].partition('"')[0] for line in messages] == [
        "connected to the helper",
        "the helper has ended",
    ]
    assert daemon.end() == 0


def test_the_helper_is_a_process_that_cleans_up(
    start_daemon: StartDaemon, disks: Disks, flags: list[str], tmp_path: Path
) -> None:
    """Its device is a file, of which no ioctl can read a page: that is a failure with a reason."""
    disks.add("nvme1", b"")
    path, log = tmp_path / "ebs.sock", tmp_path / "helper.log"
    paths = (f"--path.sysfs={disks.sysfs}", f"--path.dev={disks.dev}")
    with log.open("w") as errors:
        helper = subprocess.Popen(
            [DISKSLA, "ebs-statistics", f"--socket={path}", *paths], stderr=errors
        )
    try:
        assert eventually(path.exists, PATIENCE_S)
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        daemon = start_daemon(*flags)

        def failures() -> float:
            found = daemon.samples(device="nvme1n1", reason="device")
            return found.get("disksla_provider_statistics_failures_total", 0)

        assert eventually(lambda: failures() >= 2, PATIENCE_S)
        assert not [
            name
            for name in daemon.samples(device="nvme1n1")
            if "throttled_seconds" in name and "provider" in name
        ]
        helper.send_signal(signal.SIGTERM)
        assert helper.wait(PATIENCE_S) == 0
    finally:
        helper.kill()
        helper.wait()
    assert not path.exists()
    assert log.read_text().count('msg="statistics page not read"') == 1
    assert "reason=device" in log.read_text()


def test_once_prints_a_line_for_each_disk(disks: Disks) -> None:
    paths = (f"--path.sysfs={disks.sysfs}", f"--path.dev={disks.dev}")
    assert run("ebs-statistics", "--once", *paths).stdout == ""
    disks.add("nvme1", b"")
    [line] = run("ebs-statistics", "--once", *paths, status=1).stdout.encode().splitlines()
    message = decode_packet(MESSAGES, line)
    assert isinstance(message, Failure)
    assert message.device == "nvme1n1"


def test_without_a_directory_for_the_socket(tmp_path: Path) -> None:
    failed = run("ebs-statistics", f"--socket={tmp_path}/none/ebs.sock", status=2)
    assert "cannot listen on" in failed.stderr
