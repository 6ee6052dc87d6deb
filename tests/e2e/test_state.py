"""Saved state across restarts, on a host of files whose disk has a serial number."""

import gc
import json
import logging
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from disksla.base.operating_system.systemd import ServiceManager
from disksla.measure.verification.store import save_report
from disksla.serve.daemon import Daemon as DaemonInProcess
from disksla.serve.daemon import WebOptions
from disksla.serve.http_server.connection import ListenAddress
from support.daemon_process import PATIENCE_S, Daemon, StartDaemon
from support.fake_host import CAPACITY, CONFIG, FakeMachine
from support.reports import RESULTS, a_report
from support.waiting import eventually

BURST_READS = 28_000
"""More than nine tenths of the credits."""
BASELINE_IOPS = 300.0
WINDOW_S = 0.1
"""The upper bound is ahead by what the baseline adds in one window."""


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


@pytest.fixture
def saved_state(machine: FakeMachine, start_daemon: StartDaemon) -> Path:
    """Return the state file of a daemon that saw most credits being used before it ended."""
    machine.state.mkdir()
    daemon = start_daemon(*machine.options)
    assert first_bounds(daemon)[1] == CAPACITY
    # Credits that were used before the first window are unknown. The lower bound rises with it.
    assert eventually(lambda: first_bounds(daemon)[0] > 0, PATIENCE_S)
    machine.has_read(BURST_READS)
    assert eventually(lambda: first_bounds(daemon)[1] < CAPACITY / 3, PATIENCE_S)
    assert daemon.end() == 0
    return machine.state / "state.json"


def bounds(daemon: Daemon) -> tuple[float, float] | None:
    samples = daemon.samples(device="vdx")
    if "disksla_burst_credits" not in samples:
        return None
    return (
        samples["disksla_burst_credits_lower_bound"],
        samples["disksla_burst_credits_upper_bound"],
    )


def first_bounds(daemon: Daemon) -> tuple[float, float]:
    assert eventually(lambda: bounds(daemon) is not None, PATIENCE_S)
    found = bounds(daemon)
    assert found is not None
    return found


def saved_credits(file: Path) -> dict[str, float]:
    [disk] = json.loads(file.read_bytes())["content"]["disks"].values()
    credits_: dict[str, float] = disk["credits"]["iops"]
    return credits_


def seconds_since_save(file: Path) -> float:
    saved_s: float = json.loads(file.read_bytes())["content"]["clocks"]["boottime_s"]
    return time.clock_gettime(time.CLOCK_BOOTTIME) - saved_s


def test_credits_are_saved_in_a_private_file(saved_state: Path) -> None:
    assert stat.S_IMODE(saved_state.stat().st_mode) == 0o600
    assert [entry.name for entry in saved_state.parent.iterdir()] == [saved_state.name]
    saved = saved_credits(saved_state)
    assert saved["capacity_credits"] == CAPACITY
    assert saved["upper_credits"] < CAPACITY / 3


def test_next_daemon_starts_with_the_saved_credits(
    start_daemon: StartDaemon, machine: FakeMachine, saved_state: Path
) -> None:
    """The upper bound rises by the baseline only, the lower bound is 0 after the restart."""
    saved = saved_credits(saved_state)["upper_credits"]
    started_s = time.monotonic()
    lower, upper = first_bounds(start_daemon(*machine.options))
    running_s = time.monotonic() - started_s
    away_s = seconds_since_save(saved_state)
    assert 0 <= lower <= BASELINE_IOPS * running_s
    assert saved < upper <= saved + BASELINE_IOPS * (away_s + WINDOW_S)
    assert upper < CAPACITY


def log_of_a_hung_disk(daemon: Daemon, machine: FakeMachine) -> str:
    assert eventually(lambda: first_bounds(daemon)[0] > 0, PATIENCE_S)
    machine.has_read(1, in_flight=1)
    name = "disksla_verdict_seconds_total"
    assert eventually(lambda: daemon.samples(verdict="stalled").get(name, 0) > 2, PATIENCE_S)
    assert "The disk: hung" in daemon.get("/disk?name=vdx")[1].partition("What happened")[2]
    assert daemon.end() == 0
    return "\n".join(daemon.log())


def test_a_problem_that_goes_on_over_a_restart_is_logged_once(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    machine.state.mkdir()
    logs = [log_of_a_hung_disk(start_daemon(*machine.options), machine) for _ in range(2)]
    began = 'msg="disk problem began" device=vdx cause=stalled'
    assert [log.count(began) for log in logs] == [1, 0]


def test_damaged_file_is_renamed_and_the_daemon_runs(
    start_daemon: StartDaemon, machine: FakeMachine, saved_state: Path
) -> None:
    damaged = saved_state.read_bytes().replace(b"vol-1", b"vol-2")
    saved_state.write_bytes(damaged)
    daemon = start_daemon(*machine.options)
    assert first_bounds(daemon)[1] == CAPACITY
    [renamed] = saved_state.parent.glob("state.json.damaged-*")
    assert renamed.read_bytes() == damaged
    [line] = [line for line in daemon.log() if str(saved_state) in line]
    assert "checksum" in line
    assert renamed.name in line
    samples = daemon.samples(collector="state") | daemon.samples(source="state")
    assert samples["disksla_collector_success"] == 0
    assert samples["disksla_errors_total"] == 1
    assert daemon.end() == 0
    assert saved_state.exists()


def test_missing_state_directory_is_logged_at_the_first_save(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    daemon = start_daemon(*machine.options)
    assert eventually(lambda: bounds(daemon) is not None, PATIENCE_S)
    assert daemon.samples(collector="state")["disksla_collector_success"] == 1
    assert not [line for line in daemon.log() if "state" in line]
    assert daemon.end() == 0
    [line] = [line for line in daemon.log() if "state.json" in line]
    assert f"cannot save to {machine.state}/state.json: No such file or directory" in line
    assert not machine.state.exists()


@pytest.fixture
def in_process(machine: FakeMachine) -> Iterator[DaemonInProcess]:
    """Run a daemon in this process, where a test can call `save` instead of waiting a minute."""
    daemon = DaemonInProcess(
        machine.paths,
        machine.config,
        ServiceManager(),
        WebOptions([ListenAddress("127.0.0.1", 0)]),
    )
    daemon.start()
    yield daemon
    daemon.stop()
    gc.unfreeze()


def test_failed_saves_are_counted_and_logged_once(
    machine: FakeMachine, in_process: DaemonInProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "disksla.state")
    assert eventually(
        lambda: any(disk.credits for disk in in_process.snapshot().disks), PATIENCE_S
    )
    for _ in range(3):
        in_process.save()
    assert not in_process.snapshot().sampler.collectors["state"]
    assert in_process.snapshot().sampler.errors["state"] == 3
    in_process.reload()
    assert in_process.snapshot().sampler.errors["state"] == 3
    machine.state.mkdir()
    in_process.save()
    assert in_process.snapshot().sampler.collectors["state"]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_reload_may_change_the_state_directory(
    machine: FakeMachine, in_process: DaemonInProcess
) -> None:
    assert eventually(
        lambda: any(disk.credits for disk in in_process.snapshot().disks), PATIENCE_S
    )
    other = machine.state.with_name("other")
    other.mkdir()
    machine.config.write_text(CONFIG.format(directory=other))
    in_process.reload()
    in_process.save()
    assert (other / "state.json").exists()
    assert not machine.state.exists()


def test_last_report_is_published(machine: FakeMachine, in_process: DaemonInProcess) -> None:
    machine.state.mkdir()
    report = a_report(*RESULTS[:4], key="serial:vol-1")
    assert eventually(lambda: bool(in_process.snapshot().disks), PATIENCE_S)
    assert in_process.reports() == {}
    assert save_report(machine.state, report) is None
    in_process.read_reports()
    assert in_process.reports() == {"serial:vol-1": report}
    [file] = machine.state.iterdir()
    file.write_bytes(b"damaged")
    in_process.read_reports()
    assert in_process.reports() == {}
    snapshot = in_process.snapshot()
    assert snapshot.sampler.errors["verification"] == 1
    assert not snapshot.sampler.collectors["verification"]


def test_report_is_in_the_first_scrape(start_daemon: StartDaemon, machine: FakeMachine) -> None:
    machine.state.mkdir()
    save_report(machine.state, a_report(*RESULTS[:4], key="serial:vol-1"))
    daemon = start_daemon(*machine.options)
    samples = daemon.samples(device="vdx", test="randread-8k")
    assert samples["disksla_verification_ratio"] == 0.7
    assert samples["disksla_verification_required_ratio"] == 0.75
    assert samples["disksla_verification_passed"] == 0
    ended_s = daemon.samples(device="vdx")["disksla_verification_timestamp_seconds"]
    assert ended_s == 1.7e9 + 300.5
