"""A procfs that blocks or cannot be read, and a sysfs that is gone."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable

import pytest

from support.daemon_process import PATIENCE_S, Daemon
from support.fake_host import FakeMachine
from support.waiting import eventually

StartDaemon = Callable[..., Daemon]

WITHOUT_DAC_OVERRIDE = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
"""Runs a command as root without the capabilities that ignore file modes."""


def test_blocked_procfs_stops_only_the_sampler(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    diskstats = machine.paths.procfs / "diskstats"
    diskstats.unlink()
    os.mkfifo(diskstats)
    daemon = start_daemon(*machine.options, ready=False)
    assert eventually(lambda: daemon.get("/-/healthy")[0] == 503, PATIENCE_S)
    assert daemon.get("/-/ready")[0] == 503
    assert daemon.get("/")[0] == 200
    assert daemon.samples()["disksla_sampler_ticks_total"] == 0
    assert daemon.end() == 0
    assert any("sampler did not stop" in line for line in daemon.log())


@pytest.mark.skipif(
    subprocess.run([*WITHOUT_DAC_OVERRIDE, "true"], check=False).returncode != 0,
    reason="NOT TESTED: this needs root, and setpriv",
)
def test_unreadable_procfs_is_logged_once_until_readable(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    files = [machine.paths.procfs / name for name in ("diskstats", "stat")]
    for file in files:
        file.chmod(0)
    daemon = start_daemon(*machine.options, before=WITHOUT_DAC_OVERRIDE, ready=False)
    success = "disksla_collector_success"
    assert eventually(lambda: daemon.samples(collector="diskstats")[success] == 0, PATIENCE_S)
    assert daemon.samples(collector="iowait")[success] == 0
    assert daemon.get("/-/healthy")[0] == 200
    assert daemon.get("/-/ready")[0] == 503
    assert "Permission denied" in daemon.get("/")[1]
    for file in files:
        file.chmod(0o400)
    assert eventually(lambda: daemon.samples(collector="diskstats")[success] == 1, PATIENCE_S)
    assert eventually(lambda: daemon.get("/-/ready")[0] == 200, PATIENCE_S)
    failure, recovery = [line for line in daemon.log() if "diskstats" in line]
    assert "Permission denied" in failure
    assert 'msg="source readable again"' in recovery


def test_missing_sysfs_keeps_the_known_disks(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    daemon = start_daemon(*machine.options)
    machine.paths.sysfs.rename(machine.paths.sysfs.with_name("away"))
    machine.has_read(7)
    assert eventually(
        lambda: daemon.samples(device="vdx")["disksla_reads_completed_total"] == 7, PATIENCE_S
    )
    assert daemon.devices() == {"vdx"}
    assert daemon.samples(collector="diskstats")["disksla_collector_success"] == 1


PSI_IS_OFF = """
import ctypes, os, struct, sys
from pathlib import Path
from disksla.kernel.procfs.iowait_files import HostWaitFiles

procfs = Path(sys.argv[1])
pressure = procfs / "pressure" / "io"
pressure.parent.mkdir()
pressure.write_text("full avg10=0 total=1 some avg10=0 total=7".ljust(31_336) + chr(10))
read_bytes = pressure.stat().st_size + 1  # size of the read of a whole file

# seccomp: read (0) of so many bytes fails with EOPNOTSUPP (95), all else is allowed.
filters = [(0x20, 0, 0, 0), (0x15, 0, 3, 0), (0x20, 0, 0, 32), (0x15, 0, 1, read_bytes),
           (0x06, 0, 0, 0x50000 | 95), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in filters))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
sock_filter = struct.pack("HxxxxxxP", len(filters), ctypes.addressof(program))
files = HostWaitFiles(procfs)
assert set(files.read()[1]) == {"pressure"}, "the file is read, and its text is invalid"
assert libc.prctl(22, 2, sock_filter) == 0, ctypes.get_errno()
host, problems = files.read()
assert problems == {}, problems
assert host.pressure_some_s is None
assert host.iowait_s is not None
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="NOT TESTED: system call numbers")
def test_pressure_disabled_in_the_kernel_is_absent(machine: FakeMachine) -> None:
    """A kernel started with psi=0 has the file, and reading it fails with EOPNOTSUPP."""
    subprocess.run(
        [sys.executable, "-W", "error", "-c", PSI_IS_OFF, machine.paths.procfs],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
