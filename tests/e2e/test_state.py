"""What outlives the daemon, on a machine made of files whose disk has a serial."""

import gc
import json
import logging
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from disksla.daemon import Daemon as DaemonInside
from disksla.system.systemd import ServiceManager
from disksla.verification.store import save_report
from disksla.web.listen import ListenAddress
from support.daemon_process import PATIENCE_S, Daemon
from support.fake_host import CAPACITY, CONFIG, FakeMachine
from support.loop_device import eventually
from support.reports import RESULTS, a_report

StartDaemon = Callable[..., Daemon]

BURST_READS = 14_000


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


@pytest.fixture
def known(machine: FakeMachine, start_daemon: StartDaemon) -> Path:
    """Give the state file of a daemon that knew the credits when it ended."""
    machine.state.mkdir()
    daemon = start_daemon(*machine.options)
    assert first_bounds(daemon)[1] == CAPACITY
    for reads in (BURST_READS, 2 * BURST_READS, 3 * BURST_READS):
        machine.has_read(reads)
        assert eventually(lambda: reads_of(daemon) == reads, PATIENCE_S)  # noqa: B023 -- at once
    assert first_bounds(daemon)[1] < CAPACITY / 3
    assert daemon.end() == 0
    return machine.state / "state.json"


def reads_of(daemon: Daemon) -> float | None:
    return daemon.samples(device="vdx").get("disksla_reads_completed_total")


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
    (disk,) = json.loads(file.read_bytes())["content"]["disks"].values()
    found: dict[str, float] = disk["credits"]["iops"]
    return found


def test_what_is_known_at_the_end_is_saved_for_us_alone(known: Path) -> None:
    assert stat.S_IMODE(known.stat().st_mode) == 0o600
    assert [entry.name for entry in known.parent.iterdir()] == [known.name]
    saved = saved_credits(known)
    assert saved["capacity_credits"] == CAPACITY
    assert saved["upper_credits"] < CAPACITY / 3


def test_the_next_daemon_knows_it_from_the_start(
    start_daemon: StartDaemon, machine: FakeMachine, known: Path
) -> None:
    """In the seconds between the two, a bucket that large cannot have been filled."""
    lower, upper = first_bounds(start_daemon(*machine.options))
    assert lower == 0
    assert saved_credits(known)["upper_credits"] < upper < CAPACITY / 2


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda text: text.replace(b"vol-1", b"vol-2"), "checksum"),
        (lambda text: text[:-20], "not a saved state"),
        (lambda text: text[:0], "not a saved state"),
    ],
)
def test_a_damaged_file_is_set_aside_and_the_daemon_runs(
    start_daemon: StartDaemon,
    machine: FakeMachine,
    known: Path,
    spoil: Callable[[bytes], bytes],
    reason: str,
) -> None:
    spoilt = spoil(known.read_bytes())
    known.write_bytes(spoilt)
    daemon = start_daemon(*machine.options)
    assert first_bounds(daemon)[1] == CAPACITY
    (aside,) = known.parent.glob("state.json.damaged-*")
    assert aside.read_bytes() == spoilt
    (said,) = [line for line in daemon.log() if str(known) in line]
    assert reason in said
    assert aside.name in said
    samples = daemon.samples(collector="state") | daemon.samples(source="state")
    assert samples["disksla_collector_success"] == 0
    assert samples["disksla_errors_total"] == 1
    assert daemon.end() == 0
    assert known.exists()


def test_a_directory_that_is_not_there_is_said_once_something_is_to_be_saved(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    daemon = start_daemon(*machine.options)
    assert eventually(lambda: bounds(daemon) is not None, PATIENCE_S)
    assert daemon.samples(collector="state")["disksla_collector_success"] == 1
    assert not [line for line in daemon.log() if "state" in line]
    assert daemon.end() == 0
    (said,) = [line for line in daemon.log() if "state.json" in line]
    assert f"cannot save to {machine.state}/state.json: No such file or directory" in said
    assert not machine.state.exists()


@pytest.fixture
def inside(machine: FakeMachine) -> Iterator[DaemonInside]:
    """Run a daemon in this process: it saves once a minute, and tests do not wait so long."""
    daemon = DaemonInside(
        machine.paths,
        machine.config,
        [ListenAddress("127.0.0.1", 0)],
        "/metrics",
        ServiceManager(),
    )
    daemon.start()
    yield daemon
    daemon.stop()
    gc.unfreeze()


def test_trouble_with_saving_is_said_once_and_counted_and_ends(
    machine: FakeMachine, inside: DaemonInside, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "disksla.state")
    assert eventually(lambda: any(disk.credits for disk in inside.snapshot().disks), PATIENCE_S)
    for _ in range(3):
        inside.save()
    assert not inside.snapshot().sampler.collectors["state"]
    assert inside.snapshot().sampler.errors["state"] == 3
    inside.reload()
    assert inside.snapshot().sampler.errors["state"] == 3
    machine.state.mkdir()
    inside.save()
    assert inside.snapshot().sampler.collectors["state"]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_a_reload_may_move_the_state(machine: FakeMachine, inside: DaemonInside) -> None:
    assert eventually(lambda: any(disk.credits for disk in inside.snapshot().disks), PATIENCE_S)
    elsewhere = machine.state.with_name("elsewhere")
    elsewhere.mkdir()
    machine.config.write_text(CONFIG.format(directory=elsewhere))
    inside.reload()
    inside.save()
    assert (elsewhere / "state.json").exists()
    assert not machine.state.exists()


def test_the_last_verification_is_published(machine: FakeMachine, inside: DaemonInside) -> None:
    machine.state.mkdir()
    account = a_report(*RESULTS[:4], key="serial:vol-1")
    assert save_report(machine.state, account) is None
    assert eventually(lambda: bool(inside.snapshot().disks), PATIENCE_S)
    assert inside.reports() == {}
    inside.read_reports()
    assert inside.reports() == {"serial:vol-1": account}
    [file] = machine.state.iterdir()
    file.write_bytes(b"damaged")
    inside.read_reports()
    assert inside.reports() == {}
    view = inside.snapshot()
    assert view.sampler.errors["verification"] == 1
    assert not view.sampler.collectors["verification"]


def test_a_verification_is_there_from_the_first_scrape(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    machine.state.mkdir()
    save_report(machine.state, a_report(*RESULTS[:4], key="serial:vol-1"))
    daemon = start_daemon(*machine.options)
    told = daemon.samples(device="vdx", test="randread-8k")
    assert told["disksla_verification_ratio"] == 0.7
    assert told["disksla_verification_required_ratio"] == 0.75
    assert told["disksla_verification_passed"] == 0
    ended_s = daemon.samples(device="vdx")["disksla_verification_timestamp_seconds"]
    assert ended_s == 1.7e9 + 300.5
