"""What systemd is told by the real daemon: messages from its start to its end, and log lines."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from disksla.base.operating_system.machine import Roots
from support.daemon_process import DISKSLA, PATIENCE_S, StartDaemon
from support.notify_socket import NotifySocket, notify_socket
from support.waiting import eventually

WATCHDOG_S = 0.4
"""A keep-alive is due every 0.1 s, which is every tick."""
SILENCE_S = 2.0


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[NotifySocket]:
    with notify_socket(tmp_path / "notify") as systemd:
        yield systemd


@pytest.fixture
def tree(tmp_path: Path) -> Roots:
    """Make a procfs and a sysfs with one disk, all of whose counters are 0."""
    roots = Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "udev")
    disk = roots.sysfs / "class" / "block" / "vdx"
    for directory in (roots.procfs / "1", disk, roots.udev_data):
        directory.mkdir(parents=True)
    (roots.procfs / "1" / "mountinfo").write_text("")
    (roots.procfs / "stat").write_text("cpu  100 0 50 1000 250 0 0 0 0 0\n")
    write_attributes(disk, dev="254:0", size="2048", inflight="0 0")
    set_reads(roots, vdx=0)
    return roots


def write_attributes(directory: Path, **attributes: str) -> None:
    for name, text in attributes.items():
        (directory / name).write_text(f"{text}\n")


def set_reads(roots: Roots, **reads: int) -> None:
    lines = (
        f" 254 {minor} {name} {number} 0 {8 * number} 0 0 0 0 0 0 0 0\n"
        for minor, (name, number) in enumerate(reads.items())
    )
    (roots.procfs / "diskstats").write_text("".join(lines))


def options(roots: Roots) -> tuple[str, ...]:
    return (
        *("--path.procfs", str(roots.procfs), "--path.sysfs", str(roots.sysfs)),
        *("--path.udev-data", str(roots.udev_data)),
    )


def notifying(systemd: NotifySocket, watchdog_s: float | None = None) -> tuple[str, ...]:
    """Return the prefix that makes a command notify `systemd`."""
    watchdog = () if watchdog_s is None else (f"WATCHDOG_USEC={watchdog_s * 1e6:.0f}",)
    return ("env", f"NOTIFY_SOCKET={systemd.address}", *watchdog)


def states(systemd: NotifySocket) -> list[str]:
    """Return the first line of each message other than status lines and keep-alives."""
    lines = [message.partition("\n")[0] for message in systemd.messages()]
    return [line for line in lines if not line.startswith(("STATUS=", "WATCHDOG="))]


def test_ready_reload_and_stop_are_reported(
    start_daemon: StartDaemon, tree: Roots, systemd: NotifySocket, tmp_path: Path
) -> None:
    config = tmp_path / "config.yml"
    config.write_text("")
    daemon = start_daemon(*options(tree), "--config.file", str(config), before=notifying(systemd))
    assert eventually(lambda: "STATUS=1 disk monitored" in systemd.messages(), PATIENCE_S)
    assert states(systemd) == ["READY=1"]
    daemon.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: states(systemd)[1:] == ["RELOADING=1", "READY=1"], PATIENCE_S)
    config.write_text("nonsense: 1\n")
    assert daemon.request("POST", "/-/reload")[0] == 500
    assert states(systemd)[3:] == ["RELOADING=1", "READY=1"]
    assert eventually(lambda: "reload failed" in systemd.messages()[-1], PATIENCE_S)
    assert daemon.samples(source="systemd")["disksla_errors_total"] == 0
    assert daemon.end() == 0
    assert states(systemd)[5:] == ["STOPPING=1"]


def test_host_without_disks_becomes_ready(
    start_daemon: StartDaemon, tree: Roots, systemd: NotifySocket
) -> None:
    shutil.rmtree(tree.sysfs / "class" / "block" / "vdx")
    (tree.procfs / "diskstats").write_text("")
    start_daemon(*options(tree), before=notifying(systemd))  # waits for /-/ready
    assert eventually(lambda: "READY=1" in systemd.messages(), PATIENCE_S)
    assert eventually(lambda: "STATUS=0 disks monitored" in systemd.messages(), PATIENCE_S)


def test_ready_is_sent_although_disks_cannot_be_discovered(
    start_daemon: StartDaemon, tree: Roots, systemd: NotifySocket
) -> None:
    shutil.rmtree(tree.sysfs)
    daemon = start_daemon(*options(tree), before=notifying(systemd), ready=False)
    assert eventually(lambda: "READY=1" in systemd.messages(), PATIENCE_S)
    assert daemon.get("/-/ready")[0] == 503
    problem = "STATUS=0 disks monitored; cannot read: disks"
    assert eventually(lambda: any(m.startswith(problem) for m in systemd.messages()), PATIENCE_S)


def test_blocked_sampler_does_not_feed_the_watchdog(
    start_daemon: StartDaemon, tree: Roots, systemd: NotifySocket
) -> None:
    block = tree.sysfs / "class" / "block"
    (block / "vdx" / "vdx1").mkdir()
    write_attributes(block / "vdx" / "vdx1", dev="254:1", size="1024", partition="1")
    (block / "vdx1").symlink_to(block / "vdx" / "vdx1")
    set_reads(tree, vdx=0, vdx1=0)
    daemon = start_daemon(*options(tree), before=notifying(systemd, WATCHDOG_S))
    assert eventually(lambda: systemd.messages().count("WATCHDOG=1") >= 3, PATIENCE_S)
    inflight = block / "vdx" / "inflight"
    inflight.unlink()
    os.mkfifo(inflight)  # opening it blocks, like a file of a driver that hangs
    set_reads(tree, vdx=1, vdx1=1)  # the disk is active, and has a partition: its file is read
    assert eventually(lambda: systemd.is_silent_for(SILENCE_S), PATIENCE_S)
    assert daemon.get("/metrics")[0] == 200
    fed = systemd.messages().count("WATCHDOG=1")
    with inflight.open("w"):
        assert eventually(lambda: systemd.messages().count("WATCHDOG=1") > fed, PATIENCE_S)


def test_sigabrt_logs_a_stack_trace(
    start_daemon: StartDaemon, tree: Roots, systemd: NotifySocket
) -> None:
    daemon = start_daemon(*options(tree), before=notifying(systemd))
    daemon.process.send_signal(signal.SIGABRT)
    assert daemon.process.wait(PATIENCE_S) == -signal.SIGABRT
    log = "\n".join(daemon.log())
    assert "Fatal Python error: Aborted" in log
    assert "sampler.py" in log


AS_IN_THE_JOURNAL = (
    *("sh", "-c"),
    'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$0" "$@"',
)
"""Replaces itself by a program, with $JOURNAL_STREAM set to its standard error."""


def test_log_lines_have_severity_and_no_time(start_daemon: StartDaemon, tmp_path: Path) -> None:
    config = tmp_path / "config.yml"
    config.write_text("")
    daemon = start_daemon("--config.file", str(config), before=AS_IN_THE_JOURNAL)
    assert daemon.request("POST", "/-/reload")[0] == 200
    config.write_text("nonsense: 1\nmore: 2\n")
    assert daemon.request("POST", "/-/reload")[0] == 500
    assert daemon.end() == 0
    # Beside them, the sampler says how many disks there are, and how data writes are counted.
    others = ("component=disks", "component=sampler")
    success, failure, ending = (
        line for line in daemon.log() if not any(other in line for other in others)
    )
    assert success == '<6>level=info component=daemon msg="configuration reloaded"'
    assert failure.startswith(
        '<3>level=error component=daemon msg="configuration not reloaded" err='
    )
    assert "nonsense" in failure
    assert "more" in failure
    assert ending == "<6>level=info component=serve msg=stopping"


def test_each_line_of_an_error_message_has_severity(tmp_path: Path) -> None:
    config = tmp_path / "config.yml"
    config.write_text("nonsense: 1\nmore: 2\n")
    command = [*AS_IN_THE_JOURNAL, str(DISKSLA), "serve", "--config.file", str(config)]
    with (tmp_path / "log").open("w") as log:
        assert subprocess.run(command, stderr=log, check=False).returncode == 2
    first, second = (tmp_path / "log").read_text().splitlines()
    assert first.startswith(f"<3>disksla: {config}:1: nonsense")
    assert second.startswith("<3>")
