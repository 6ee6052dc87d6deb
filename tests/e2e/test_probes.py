"""Probes of the daemon, and `disksla verify --latency`."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.daemon_process import DISKSLA, PATIENCE_S, Daemon, StartDaemon
from support.fake_fio import ANSWERS, HANGS, fake_fio, pid_left
from support.waiting import eventually

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")
DUE_WITHIN_S = 30.0
ENDED_WITHIN_S = 30.0


def config_for(device: str, tmp_path: Path, more: str = "", iops: int = 20_000) -> str:
    (tmp_path / "state").mkdir(exist_ok=True)
    config = tmp_path / "config.yml"
    config.write_text(
        f"""
discovery: {{include: ['^{device}$']}}
disks:
  - {{match: {{device: {device}}}, terms: {{budget: sum, iops: {iops}}}}}
state: {{directory: {tmp_path / "state"}}}
metrics: {{profile: full}}
probes:
  - {{kind: read-latency, every: 10s, splay: 1s, rate_iops: 100, runtime: 1s{more}}}
"""
    )
    return str(config)


def with_programs(directory: Path) -> tuple[str, ...]:
    """Return a prefix that lets the daemon find programs in one directory only."""
    directory.mkdir()
    return ("env", f"PATH={directory}")


def runs(daemon: Daemon) -> float:
    return daemon.samples(kind="read-latency").get("disksla_probe_runs_total", 0)


@needs_fio
def test_daemon_probes_a_disk(start_daemon: StartDaemon, loop_device: str, tmp_path: Path) -> None:
    daemon = start_daemon("--config.file", config_for(loop_device, tmp_path))
    assert eventually(lambda: runs(daemon) >= 1, DUE_WITHIN_S), daemon.log()
    samples = daemon.samples(device=loop_device, kind="read-latency")
    assert samples["disksla_probe_success"] == 1
    assert samples["disksla_probe_target_iops"] == 100
    assert samples["disksla_probe_achieved_iops"] == pytest.approx(100, rel=0.1)
    assert samples["disksla_probe_ios_total"] == pytest.approx(100, abs=10)
    assert samples["disksla_probe_bytes_total"] == 4096 * samples["disksla_probe_ios_total"]
    assert 1 <= samples["disksla_probe_duration_seconds"] < 5
    of_disk = daemon.samples(device=loop_device)
    assert (
        of_disk["disksla_probe_read_latency_seconds_count"] == samples["disksla_probe_ios_total"]
    )
    assert 0 < of_disk["disksla_probe_read_latency_seconds_sum"] < 10
    assert of_disk["disksla_reads_completed_total"] >= samples["disksla_probe_ios_total"]
    assert daemon.samples(collector="probes")["disksla_collector_success"] == 1
    assert daemon.end() == 0


def test_daemon_without_fio_works_without_probes(
    start_daemon: StartDaemon, loop_device: str, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    config = config_for(loop_device, tmp_path)
    daemon = start_daemon("--config.file", config, before=with_programs(programs))
    assert eventually(lambda: daemon.devices() == {loop_device}, PATIENCE_S)
    assert daemon.samples(collector="probes")["disksla_collector_success"] == 0
    assert daemon.samples(source="probes")["disksla_errors_total"] == 1
    fake_fio(programs, ANSWERS, version="fio-2.99")
    assert daemon.request("POST", "/-/reload")[0] == 200
    assert daemon.samples(collector="probes")["disksla_collector_success"] == 0
    disabled = [line for line in daemon.log() if "probes disabled" in line]
    assert ["not installed" in line for line in disabled] == [True, False]
    assert "found fio-2.99; expected fio 3.1 or newer" in disabled[1]
    fake_fio(programs, ANSWERS)
    assert daemon.request("POST", "/-/reload")[0] == 200
    assert daemon.samples(collector="probes")["disksla_collector_success"] == 1
    (tmp_path / "config.yml").write_text(f"discovery: {{include: ['^{loop_device}$']}}\n")
    assert daemon.request("POST", "/-/reload")[0] == 200
    assert eventually(lambda: "disksla_probe" not in daemon.get("/metrics")[1], PATIENCE_S)
    assert daemon.samples(collector="probes") == {}


@pytest.mark.nightly
def test_fio_that_hangs_is_ended_without_missed_ticks(
    start_daemon: StartDaemon, loop_device: str, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    config = config_for(loop_device, tmp_path)
    before = with_programs(programs)
    fake_fio(programs, HANGS)
    daemon = start_daemon("--config.file", config, before=before)
    assert eventually((programs / "hangs").exists, DUE_WITHIN_S), daemon.log()
    before_timeout = daemon.samples()
    assert eventually(lambda: runs(daemon) == 1, ENDED_WITHIN_S)
    assert daemon.samples(reason="timeout")["disksla_probe_failures_total"] == 1
    assert daemon.samples(device=loop_device)["disksla_probe_success"] == 0
    ended = daemon.samples()
    ticks = "disksla_sampler_ticks_total"
    assert ended[ticks] - before_timeout[ticks] > 80
    missed = "disksla_sampler_missed_ticks_total"
    assert ended[missed] - before_timeout[missed] < 10
    assert daemon.get("/-/healthy")[0] == 200
    [pid] = programs.glob("pid.*")
    assert not psutil.pid_exists(int(pid.suffix[1:]))
    pid.unlink()
    assert eventually(lambda: bool(list(programs.glob("pid.*"))), DUE_WITHIN_S)
    assert daemon.end() == 0
    assert not psutil.pid_exists(pid_left(programs))
    assert any("read-latency" in line and "failed" in line for line in daemon.log())


def disksla_probe(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "80", **({"PATH": str(path)} if path else {})}
    return subprocess.run(
        [str(DISKSLA), "verify", "--latency", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )


@needs_fio
def test_probe_command(loop_device: str, tmp_path: Path) -> None:
    config = config_for(loop_device, tmp_path)
    ended = disksla_probe(loop_device, "--config.file", config)
    assert ended.returncode == 0, ended.stderr
    assert re.search(
        rf"^\S*fio .*--filename=/dev/{loop_device} --readonly ", ended.stdout, re.MULTILINE
    )
    assert "0.50% of the limit" in ended.stdout
    head, row = ended.stdout.splitlines()[-2:]
    assert head.split() == ["requests", "IOPS", "p50", "p99", "max"]
    assert float(row.split()[1]) == pytest.approx(100, rel=0.1)
    assert all(len(line) <= 80 for line in ended.stdout.splitlines() if "fio" not in line)


@needs_fio
def test_probe_command_prints_json(loop_device: str, tmp_path: Path) -> None:
    config = config_for(loop_device, tmp_path)
    ended = disksla_probe(f"/dev/{loop_device}", "--json", "--config.file", config)
    assert ended.returncode == 0, ended.stderr
    shown = json.loads(ended.stdout)
    assert shown["device"] == loop_device
    assert shown["skips"] == []
    assert shown["result"]["success"] is True
    latency = shown["result"]["latency_seconds"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["max"]


@needs_fio
def test_dry_run_prints_the_command_only(loop_device: str, tmp_path: Path) -> None:
    config = config_for(loop_device, tmp_path, iops=500)
    arguments = (loop_device, "--dry-run", "--config.file", config)
    ended = disksla_probe(*arguments)
    assert ended.returncode == 0, ended.stderr
    facts = " ".join(ended.stdout.split())
    assert "4 IOPS of 4 KiB for 1 s, 0.80% of the limit, lowered from 100 IOPS" in facts
    assert "--rate_iops=4" in ended.stdout
    assert "p99" not in ended.stdout
    shown = json.loads(disksla_probe(*arguments, "--json").stdout)
    assert shown["result"] is None
    assert "--readonly" in shown["command"]


@needs_fio
def test_skipped_probe_prints_the_reason(loop_device: str, tmp_path: Path) -> None:
    config = config_for(loop_device, tmp_path, iops=50)
    ended = disksla_probe(loop_device, "--config.file", config)
    assert ended.returncode == 1
    assert "limit_too_low: 1 IOPS is more than 1% of the limit" in " ".join(ended.stdout.split())
    written = disksla_probe(loop_device, "--kind", "write-latency", "--config.file", config)
    assert written.returncode == 1
    assert "no_file_system" in written.stdout


@needs_fio
def test_busy_disk_is_not_probed(loop_device: str, tmp_path: Path) -> None:
    config = config_for(loop_device, tmp_path, iops=1000)
    load = subprocess.Popen(
        [
            *("fio", "--name=load", f"--filename=/dev/{loop_device}", "--readonly"),
            *("--rw=randread", "--bs=4k", "--direct=1", "--rate_iops=900", "--thread"),
            *("--time_based", "--runtime=60", "--output=/dev/null"),
        ]
    )
    try:
        counted = Path(f"/sys/block/{loop_device}/stat")
        assert eventually(lambda: int(counted.read_text().split()[0]) > 500, PATIENCE_S)
        ended = disksla_probe(loop_device, "--json", "--config.file", config)
    finally:
        load.kill()
        load.wait()
    assert ended.returncode == 1, ended.stdout
    shown = json.loads(ended.stdout)
    assert "busy" in [skip["reason"] for skip in shown["skips"]]
    assert shown["result"] is None


def test_failed_probe_prints_the_reason(loop_device: str, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    config = config_for(loop_device, tmp_path)
    missing = disksla_probe(loop_device, "--config.file", config, path=programs)
    assert missing.returncode == 2
    assert "fio is not installed; expected fio 3.1 or newer" in missing.stderr
    (programs / "answer").write_text("not a result")
    fake_fio(programs, ANSWERS)
    bad_output = disksla_probe(loop_device, "--config.file", config, path=programs)
    assert bad_output.returncode == 1
    assert "bad_output" in bad_output.stdout


@pytest.mark.parametrize(
    ("device", "message"),
    [("disksla-nowhere", "no disk named"), (None, "it is not monitored (loop device)")],
)
def test_unknown_or_excluded_disk_is_refused(
    device: str | None, message: str, loop_device: str
) -> None:
    ended = disksla_probe(device or loop_device)
    assert ended.returncode == 2
    assert message in ended.stderr


@pytest.fixture
def mount_point(loop_device: str, tmp_path: Path) -> Iterator[Path]:
    """Yield the mount point of a file system on the loop device."""
    subprocess.run(["mkfs.ext4", "-q", f"/dev/{loop_device}"], check=True)
    mount_point = tmp_path / "mounted"
    mount_point.mkdir()
    subprocess.run(["mount", f"/dev/{loop_device}", mount_point], check=True)
    yield mount_point
    subprocess.run(["umount", mount_point], check=True)


def left_on(mount_point: Path) -> set[str]:
    return {path.name for path in mount_point.iterdir()} - {"lost+found"}


@needs_fio
def test_probe_command_with_a_scratch_file(
    loop_device: str, mount_point: Path, tmp_path: Path
) -> None:
    config = config_for(loop_device, tmp_path)
    arguments = (loop_device, "--kind", "write-latency", "--config.file", config)
    dry = disksla_probe(*arguments, "--dry-run")
    assert f"--filename={mount_point}/.disksla/FILE" in dry.stdout
    ended = disksla_probe(*arguments)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert left_on(mount_point) == set()


def test_interrupt_leaves_no_file_and_no_fio(
    loop_device: str, mount_point: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    fake_fio(programs, HANGS)
    command = [str(DISKSLA), "verify", "--latency", loop_device, "--kind=write-latency"]
    probing = subprocess.Popen(
        [*command, "--config.file", config_for(loop_device, tmp_path)],
        env={**os.environ, "PATH": str(programs)},
        stdout=subprocess.DEVNULL,
    )
    assert eventually((programs / "hangs").exists, DUE_WITHIN_S)
    probing.send_signal(signal.SIGINT)
    assert probing.wait(PATIENCE_S) == 128 + signal.SIGINT
    pid = pid_left(programs)
    assert eventually(lambda: not psutil.pid_exists(pid), PATIENCE_S)
    assert left_on(mount_point) == set()


def test_killed_daemon_leaves_no_fio_and_files_are_removed(
    start_daemon: StartDaemon, loop_device: str, mount_point: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    config = config_for(loop_device, tmp_path, more=", target: file")
    fake_fio(programs, HANGS)
    daemon = start_daemon("--config.file", config, before=("env", f"PATH={programs}"))
    assert eventually((programs / "hangs").exists, DUE_WITHIN_S), daemon.log()
    daemon.process.kill()
    daemon.process.wait()
    pid = pid_left(programs)
    assert eventually(lambda: not psutil.pid_exists(pid), PATIENCE_S)
    assert left_on(mount_point) == {".disksla"}
    fake_fio(programs, ANSWERS)
    daemon = start_daemon("--config.file", config, before=("env", f"PATH={programs}"))
    assert eventually(lambda: left_on(mount_point) == set(), DUE_WITHIN_S)
    assert daemon.end() == 0
