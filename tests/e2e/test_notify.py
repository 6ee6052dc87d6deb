"""What the daemon tells the service manager that started it."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from disksla.system.roots import Roots
from support.daemon_process import PATIENCE_S, Daemon
from support.loop_device import eventually
from support.notify_socket import Ear, listening

StartDaemon = Callable[..., Daemon]

WATCHDOG_S = 0.4
"""Fed every 0.1 s, which is every tick."""
SILENCE_S = 2.0


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    with listening(tmp_path / "notify") as ear:
        yield ear


@pytest.fixture
def tree(tmp_path: Path) -> Roots:
    """Make a machine of files, with one disk that did nothing yet."""
    paths = Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "udev")
    disk = paths.sysfs / "class" / "block" / "vdx"
    for made in (paths.procfs / "1", disk, paths.udev_data):
        made.mkdir(parents=True)
    (paths.procfs / "1" / "mountinfo").write_text("")
    (paths.procfs / "stat").write_text("cpu  100 0 50 1000 250 0 0 0 0 0\n")
    for name, text in (("dev", "254:0"), ("size", "2048"), ("inflight", "0 0")):
        (disk / name).write_text(f"{text}\n")
    has_read(paths, 0)
    return paths


def has_read(paths: Roots, reads: int) -> None:
    line = f" 254 0 vdx {reads} 0 {8 * reads} 0 0 0 0 0 0 0 0\n"
    (paths.procfs / "diskstats").write_text(line)


def options(paths: Roots) -> tuple[str, ...]:
    return (
        *("--path.procfs", str(paths.procfs), "--path.sysfs", str(paths.sysfs)),
        *("--path.udev-data", str(paths.udev_data)),
    )


def told(ear: Ear, watchdog_s: float | None = None) -> tuple[str, ...]:
    """Give the command that tells a program whom to notify; it becomes that program."""
    watchdog = () if watchdog_s is None else (f"WATCHDOG_USEC={watchdog_s * 1e6:.0f}",)
    return ("env", f"NOTIFY_SOCKET={ear.address}", *watchdog)


def states(ear: Ear) -> list[str]:
    """Give what was said but for status lines and the watchdog, the first line of each."""
    words = [message.partition("\n")[0] for message in ear.listen()]
    return [word for word in words if not word.startswith(("STATUS=", "WATCHDOG="))]


def test_a_life_is_told_from_its_first_sample_to_its_end(
    start_daemon: StartDaemon, tree: Roots, ear: Ear, tmp_path: Path
) -> None:
    config = tmp_path / "config.yml"
    config.write_text("")
    daemon = start_daemon(*options(tree), "--config.file", str(config), before=told(ear))
    assert eventually(lambda: "STATUS=1 disk monitored" in ear.listen(), PATIENCE_S)
    assert states(ear) == ["READY=1"]
    daemon.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: states(ear)[1:] == ["RELOADING=1", "READY=1"], PATIENCE_S)
    config.write_text("nonsense: 1\n")
    assert daemon.request("POST", "/-/reload")[0] == 500
    assert states(ear)[3:] == ["RELOADING=1", "READY=1"]
    assert eventually(lambda: "reload failed" in ear.listen()[-1], PATIENCE_S)
    assert daemon.samples(source="systemd")["disksla_errors_total"] == 0
    assert daemon.end() == 0
    assert states(ear)[5:] == ["STOPPING=1"]


def test_a_machine_without_disks_is_ready_too(
    start_daemon: StartDaemon, tree: Roots, ear: Ear
) -> None:
    shutil.rmtree(tree.sysfs / "class" / "block" / "vdx")
    (tree.procfs / "diskstats").write_text("")
    start_daemon(*options(tree), before=told(ear))  # which waits for /-/ready
    assert eventually(lambda: "READY=1" in ear.listen(), PATIENCE_S)
    assert eventually(lambda: "STATUS=0 disks monitored" in ear.listen(), PATIENCE_S)


def test_where_disks_cannot_be_looked_at_nobody_is_kept_waiting(
    start_daemon: StartDaemon, tree: Roots, ear: Ear
) -> None:
    shutil.rmtree(tree.sysfs)
    daemon = start_daemon(*options(tree), before=told(ear), ready=False)
    assert eventually(lambda: "READY=1" in ear.listen(), PATIENCE_S)
    assert daemon.get("/-/ready")[0] == 503
    problem = "STATUS=0 disks monitored; cannot read: disks"
    assert eventually(lambda: any(said.startswith(problem) for said in ear.listen()), PATIENCE_S)


def test_a_sampler_that_is_stuck_feeds_no_watchdog(
    start_daemon: StartDaemon, tree: Roots, ear: Ear
) -> None:
    daemon = start_daemon(*options(tree), before=told(ear, WATCHDOG_S))
    assert eventually(lambda: ear.listen().count("WATCHDOG=1") >= 3, PATIENCE_S)
    inflight = tree.sysfs / "class" / "block" / "vdx" / "inflight"
    inflight.unlink()
    os.mkfifo(inflight)  # whoever opens it waits, as for a file of a driver that hangs
    has_read(tree, 1)  # so that the disk is awake, and the file wanted
    assert eventually(lambda: ear.is_silent_for(SILENCE_S), PATIENCE_S)
    assert daemon.get("/metrics")[0] == 200
    fed = ear.listen().count("WATCHDOG=1")
    with inflight.open("w"):
        assert eventually(lambda: ear.listen().count("WATCHDOG=1") > fed, PATIENCE_S)


def test_what_the_watchdog_ends_tells_where_it_was(
    start_daemon: StartDaemon, tree: Roots, ear: Ear
) -> None:
    daemon = start_daemon(*options(tree), before=told(ear))
    daemon.process.send_signal(signal.SIGABRT)
    assert daemon.process.wait(PATIENCE_S) == -signal.SIGABRT
    log = "\n".join(daemon.log())
    assert "Fatal Python error: Aborted" in log
    assert "sampler.py" in log
