"""Probes of the daemon, and the command that makes one by hand."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from support import loop_device as loopdevice
from support.daemon_process import DISKSLA, PATIENCE_S, Daemon
from support.fake_fio import ANSWERS, HANGS, fake_fio, pid_left

StartDaemon = Callable[..., Daemon]

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
probes:
  - {{kind: read-latency, every: 10s, splay: 1s, rate_iops: 100, runtime: 1s{more}}}
"""
    )
    return str(config)


def with_programs(directory: Path) -> tuple[str, ...]:
    """Give what lets the daemon find programs in one directory only."""
    directory.mkdir()
    return ("env", f"PATH={directory}")


def runs(daemon: Daemon) -> float:
    return daemon.samples(kind="read-latency").get("disksla_probe_runs_total", 0)


@needs_fio
def test_a_disk_is_probed_and_its_latencies_are_a_histogram(
    start_daemon: StartDaemon, loop_device: str, tmp_path: Path
) -> None:
    daemon = start_daemon("--config.file", config_for(loop_device, tmp_path))
    assert loopdevice.eventually(lambda: runs(daemon) >= 1, DUE_WITHIN_S), daemon.log()
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


def test_without_fio_everything_else_works_until_there_is_one(
    start_daemon: StartDaemon, loop_device: str, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    config = config_for(loop_device, tmp_path)
    daemon = start_daemon("--config.file", config, before=with_programs(programs))
    assert loopdevice.eventually(lambda: daemon.devices() == {loop_device}, PATIENCE_S)
    assert daemon.samples(collector="probes")["disksla_collector_success"] == 0
    assert daemon.samples(source="probes")["disksla_errors_total"] == 1
    fake_fio(programs, ANSWERS, version="fio-2.99")
    assert daemon.request("POST", "/-/reload")[0] == 200
    assert daemon.samples(collector="probes")["disksla_collector_success"] == 0
    said = [line for line in daemon.log() if "nothing is probed" in line]
    assert ["not installed" in line for line in said] == [True, False]
    assert "found fio-2.99; expected fio 3.1 or newer" in said[1]
    fake_fio(programs, ANSWERS)
    assert daemon.request("POST", "/-/reload")[0] == 200
    assert daemon.samples(collector="probes")["disksla_collector_success"] == 1
    (tmp_path / "config.yml").write_text(f"discovery: {{include: ['^{loop_device}$']}}\n")
    assert daemon.request("POST", "/-/reload")[0] == 200
    assert loopdevice.eventually(
        lambda: "disksla_probe" not in daemon.get("/metrics")[1], PATIENCE_S
    )
    assert daemon.samples(collector="probes") == {}


def test_a_fio_that_hangs_is_ended_while_the_daemon_ticks(
    start_daemon: StartDaemon, loop_device: str, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    config = config_for(loop_device, tmp_path)
    before = with_programs(programs)
    fake_fio(programs, HANGS)
    daemon = start_daemon("--config.file", config, before=before)
    assert loopdevice.eventually((programs / "hangs").exists, DUE_WITHIN_S), daemon.log()
    begun = daemon.samples()
    assert loopdevice.eventually(lambda: runs(daemon) == 1, ENDED_WITHIN_S)
    assert daemon.samples(reason="timeout")["disksla_probe_failures_total"] == 1
    assert daemon.samples(device=loop_device)["disksla_probe_success"] == 0
    ended = daemon.samples()
    ticks = "disksla_sampler_ticks_total"
    assert ended[ticks] - begun[ticks] > 80
    missed = "disksla_sampler_missed_ticks_total"
    assert ended[missed] - begun[missed] < 10
    assert daemon.get("/-/healthy")[0] == 200
    [pid] = programs.glob("pid.*")
    assert not psutil.pid_exists(int(pid.suffix[1:]))
    pid.unlink()
    assert loopdevice.eventually(lambda: bool(list(programs.glob("pid.*"))), DUE_WITHIN_S)
    assert daemon.end() == 0
    assert not psutil.pid_exists(pid_left(programs))
    assert any("read-latency" in line and "failed" in line for line in daemon.log())


def disksla_probe(*words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "80", **({"PATH": str(path)} if path else {})}
    return subprocess.run(
        [str(DISKSLA), "probe", *words],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )


@needs_fio
def test_one_by_hand(loop_device: str, tmp_path: Path) -> None:
    config = config_for(loop_device, tmp_path)
    ended = disksla_probe(loop_device, "--config.file", config)
    assert ended.returncode == 0, ended.stderr
    assert re.search(
        rf"^\S*fio .*--filename=/dev/{loop_device} --readonly ", ended.stdout, re.MULTILINE
    )
    assert "0.50% of the promise" in ended.stdout
    head, row = ended.stdout.splitlines()[-2:]
    assert head.split() == ["requests", "IOPS", "p50", "p99", "max"]
    assert float(row.split()[1]) == pytest.approx(100, rel=0.1)
    assert all(len(line) <= 80 for line in ended.stdout.splitlines() if "fio" not in line)


@needs_fio
def test_one_by_hand_as_json(loop_device: str, tmp_path: Path) -> None:
    config = config_for(loop_device, tmp_path)
    ended = disksla_probe(f"/dev/{loop_device}", "--json", "--config.file", config)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["device"] == loop_device
    assert told["skips"] == []
    assert told["result"]["success"] is True
    latency = told["result"]["latency_seconds"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["max"]


@needs_fio
def test_a_dry_run_does_nothing_but_tell(loop_device: str, tmp_path: Path) -> None:
    config = config_for(loop_device, tmp_path, iops=500)
    words = (loop_device, "--dry-run", "--config.file", config)
    ended = disksla_probe(*words)
    assert ended.returncode == 0, ended.stderr
    words_told = " ".join(ended.stdout.split())
    assert "4 x 4 KiB per second for 1 s, 0.80% of the promise, lowered from 100" in words_told
    assert "--rate_iops=4" in ended.stdout
    assert "p99" not in ended.stdout
    told = json.loads(disksla_probe(*words, "--json").stdout)
    assert told["result"] is None
    assert "--readonly" in told["command"]


@needs_fio
def test_one_by_hand_that_is_skipped_says_why(loop_device: str, tmp_path: Path) -> None:
    config = config_for(loop_device, tmp_path, iops=50)
    ended = disksla_probe(loop_device, "--config.file", config)
    assert ended.returncode == 1
    assert "limit_too_low: one request per second is more than 1%" in " ".join(
        ended.stdout.split()
    )
    written = disksla_probe(loop_device, "--kind", "write-latency", "--config.file", config)
    assert written.returncode == 1
    assert "no_file_system" in written.stdout


@needs_fio
def test_a_disk_at_work_is_left_alone(loop_device: str, tmp_path: Path) -> None:
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
        assert loopdevice.eventually(lambda: int(counted.read_text().split()[0]) > 500, PATIENCE_S)
        ended = disksla_probe(loop_device, "--json", "--config.file", config)
    finally:
        load.kill()
        load.wait()
    assert ended.returncode == 1, ended.stdout
    told = json.loads(ended.stdout)
    assert "busy" in [skip["reason"] for skip in told["skips"]]
    assert told["result"] is None


def test_one_by_hand_that_fails_says_why(loop_device: str, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    config = config_for(loop_device, tmp_path)
    missing = disksla_probe(loop_device, "--config.file", config, path=programs)
    assert missing.returncode == 2
    assert "fio is not installed; expected fio 3.1 or newer" in missing.stderr
    (programs / "answer").write_text("all is well")
    fake_fio(programs, ANSWERS)
    garbage = disksla_probe(loop_device, "--config.file", config, path=programs)
    assert garbage.returncode == 1
    assert "bad_output" in garbage.stdout


@pytest.mark.parametrize(
    ("device", "words"),
    [("disksla-nowhere", "no disk named"), (None, "is not watched (loop device)")],
)
def test_what_cannot_be_probed(device: str | None, words: str, loop_device: str) -> None:
    ended = disksla_probe(device or loop_device)
    assert ended.returncode == 2
    assert words in ended.stderr


@pytest.fixture
def place(loop_device: str, tmp_path: Path) -> Iterator[Path]:
    """Give where a file system of the loop device is mounted."""
    subprocess.run(["mkfs.ext4", "-q", f"/dev/{loop_device}"], check=True)
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mount", f"/dev/{loop_device}", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def left_on(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()} - {"lost+found"}


@needs_fio
def test_a_file_by_hand(loop_device: str, place: Path, tmp_path: Path) -> None:
    config = config_for(loop_device, tmp_path)
    words = (loop_device, "--kind", "write-latency", "--config.file", config)
    dry = disksla_probe(*words, "--dry-run")
    assert f"--filename={place}/.disksla/FILE" in dry.stdout
    ended = disksla_probe(*words)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert left_on(place) == set()


def ended_by(number: signal.Signals, device: str, programs: Path, config: str) -> int:
    """Probe with a fio that hangs, send a signal meanwhile, and give the exit status."""
    fake_fio(programs, HANGS)
    probing = subprocess.Popen(
        [DISKSLA, "probe", device, "--kind", "write-latency", "--config.file", config],
        env={**os.environ, "PATH": str(programs)},
        stdout=subprocess.DEVNULL,
    )
    assert loopdevice.eventually((programs / "hangs").exists, DUE_WITHIN_S)
    probing.send_signal(number)
    status = probing.wait(PATIENCE_S)
    pid = pid_left(programs)
    assert loopdevice.eventually(lambda: not psutil.pid_exists(pid), PATIENCE_S)
    return status


def test_an_interrupt_leaves_no_file_and_no_fio(
    loop_device: str, place: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    config = config_for(loop_device, tmp_path)
    assert ended_by(signal.SIGINT, loop_device, programs, config) == 128 + signal.SIGINT
    assert left_on(place) == set()


def test_what_a_killed_one_left_is_removed_when_the_daemon_begins(
    start_daemon: StartDaemon, loop_device: str, place: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    config = config_for(loop_device, tmp_path, more=", target: file")
    assert ended_by(signal.SIGKILL, loop_device, programs, config) == -signal.SIGKILL
    assert left_on(place) == {".disksla"}
    daemon = start_daemon("--config.file", config, before=("env", f"PATH={programs}"))
    assert loopdevice.eventually(lambda: left_on(place) == set(), DUE_WITHIN_S)
    assert daemon.end() == 0


def killed_in_a_probe(
    start_daemon: StartDaemon, config: str, programs: Path, whom: Callable[[Daemon], int]
) -> Daemon:
    """Let the daemon probe with a fio that hangs, and kill a process meanwhile."""
    fake_fio(programs, HANGS)
    daemon = start_daemon("--config.file", config, before=("env", f"PATH={programs}"))
    assert loopdevice.eventually((programs / "hangs").exists, DUE_WITHIN_S), daemon.log()
    os.kill(whom(daemon), signal.SIGKILL)
    return daemon


def test_a_daemon_that_is_killed_takes_fio_along_and_the_next_one_tidies_up(
    start_daemon: StartDaemon, loop_device: str, place: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    config = config_for(loop_device, tmp_path, more=", target: file")
    killed = killed_in_a_probe(start_daemon, config, programs, lambda daemon: daemon.process.pid)
    killed.process.wait()
    pid = pid_left(programs)
    assert loopdevice.eventually(lambda: not psutil.pid_exists(pid), PATIENCE_S)
    assert left_on(place) == {".disksla"}
    fake_fio(programs, ANSWERS)
    daemon = start_daemon("--config.file", config, before=("env", f"PATH={programs}"))
    assert loopdevice.eventually(lambda: left_on(place) == set(), DUE_WITHIN_S)
    assert daemon.end() == 0


def test_a_fio_that_is_killed_is_a_failure_and_leaves_no_file(
    start_daemon: StartDaemon, loop_device: str, place: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    config = config_for(loop_device, tmp_path, more=", target: file")
    daemon = killed_in_a_probe(start_daemon, config, programs, lambda _: pid_left(programs))
    assert loopdevice.eventually(lambda: runs(daemon) == 1, ENDED_WITHIN_S), daemon.log()
    assert daemon.samples(device=loop_device)["disksla_probe_success"] == 0
    [reason] = {
        line.partition('reason="')[2].partition('"')[0]
        for line in daemon.get("/metrics")[1].splitlines()
        if line.startswith("disksla_probe_failures_total{")
    }
    assert reason == "error"
    assert any("fio ended with signal 9" in line for line in daemon.log())
    assert left_on(place) == set()
    assert daemon.end() == 0
