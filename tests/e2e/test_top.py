"""`disksla top` on a terminal and in pipes, beside a real daemon and without one."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.lxcfs import needs_fuse
from lab.disk import made
from lab.scenario import read_scenario
from support.daemon_process import DISKSLA, PATIENCE_S, StartDaemon, run
from support.loop_device import needs_loop, used
from support.terminal import TerminalProgram, on_terminal
from support.waiting import eventually

NO_DAEMON = "--path.procfs=/proc/../proc"
"""The daemon is not asked about another directory of procfs."""
_SETTLED_S = 0.3
"""Without output for this long, a frame is complete."""
SCENARIO = """caption: a disk that is throttled at its limit
disks:
  - disk: {size: 64MiB, meters: [{limit: iops, iops: 300}]}
    terms: {budget: sum, iops: 300}
    load: [{for: 1s, fio: --rw=randread}]
"""


@contextlib.contextmanager
def top(
    *options: str, columns: int = 80, rows: int = 24, **variables: str
) -> Iterator[TerminalProgram]:
    with on_terminal([DISKSLA, "top", *options], columns, rows, variables) as program:
        yield program


@needs_fuse
@needs_loop
def test_throttled_disk_live(start_daemon: StartDaemon, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yml"
    scenario.write_text(SCENARIO)
    with made(scenario, 0, read_scenario(scenario).disks[0], tmp_path) as disk:
        config = tmp_path / "disksla.yml"
        entry = {"match": {"device": disk.device}, "terms": {"budget": "sum", "iops": 300}}
        only = {"discovery": {"include": [f"^{disk.device}$"]}, "disks": [entry]}
        config.write_text(json.dumps(only | {"state": {"directory": str(tmp_path)}}))
        daemon = start_daemon("--config.file", str(config))
        disk.begin()
        with used(disk.device, tmp_path), top(f"--url=http://{daemon.address}") as program:
            before = program.settings()
            _look_at(program, disk.device)
            program.type("q")
            assert program.end(PATIENCE_S) == 0
            assert program.settings() == before
            assert program.screen.has_cursor
            assert not program.screen.is_alternate
        disk.end()


def _look_at(program: TerminalProgram, device: str) -> None:
    row = f">{device}"
    shown = ("disksla top: asks the daemon", "1 disk: 1 throttled", row, "You: limit", "▅▅")
    assert program.shows(*shown, "was throttled at its limit of 300 IOPS", within_s=PATIENCE_S)
    assert has_size(program, 80, 24)
    program.type(" ")
    assert program.shows("FROZEN", "q:quit", within_s=PATIENCE_S)
    program.read(_SETTLED_S)
    frozen = program.screen.lines()
    time.sleep(2.5)
    program.read(_SETTLED_S)
    assert program.screen.lines() == frozen
    program.type(" \r")
    assert program.shows("Last 280 s", "IOPS", "Next: disksla advise", within_s=PATIENCE_S)
    program.resize(132, 43)
    assert has_size(program, 132, 43)
    assert program.shows("Last 300 s", "limits      300 IOPS", within_s=PATIENCE_S)
    program.type("\x1b")
    assert program.shows("rMiB/s", row, within_s=PATIENCE_S)
    program.resize(40, 12)
    assert has_size(program, 40, 12)
    assert program.shows("Device", " state ", row, within_s=PATIENCE_S)
    program.type("?")
    assert program.shows("Keys", "more lines", within_s=PATIENCE_S)
    program.type("q/zz\r")
    assert program.shows("/zz (Esc: all)", "no disk has this", within_s=PATIENCE_S)
    program.type("\x1b")
    assert program.shows(row, within_s=PATIENCE_S)


def has_size(program: TerminalProgram, columns: int, rows: int) -> bool:
    """Return whether the screen becomes so many lines, all of this width."""

    def is_so() -> bool:
        program.read()
        return [len(line) for line in program.screen.lines()] == [columns] * rows

    return eventually(is_so, PATIENCE_S)


def test_daemon_that_ends_is_named_and_asked_again(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    with top(f"--url=http://{daemon.address}") as program:
        assert program.shows("asks the daemon", "Device", within_s=PATIENCE_S)
        assert daemon.end() == 0
        assert program.shows("NO ANSWER for", "Device", within_s=PATIENCE_S)
        address = f"--web.listen-address={daemon.address}"
        start_daemon(address)
        assert eventually(lambda: _is_gone(program, "NO ANSWER"), PATIENCE_S)


def _is_gone(program: TerminalProgram, text: str) -> bool:
    program.read()
    return text not in "\n".join(program.screen.lines())


def test_without_a_daemon_it_samples() -> None:
    with top(NO_DAEMON) as program:
        shown = ("disksla top: samples by itself", "disk")
        assert program.shows(*shown, "sorted by trouble", within_s=PATIENCE_S)
        program.type("n")
        assert program.shows("sorted by name", within_s=PATIENCE_S)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_terminal_is_restored_after_a_signal(number: signal.Signals, status: int) -> None:
    with top(NO_DAEMON) as program:
        before = program.settings()
        assert program.shows("samples by itself", within_s=PATIENCE_S)
        assert program.settings() != before
        program.process.send_signal(number)
        assert program.end(PATIENCE_S) == status
        assert program.settings() == before
        assert program.screen.has_cursor
        assert not program.screen.is_alternate
        assert "Traceback" not in program.screen.before


def test_control_c_is_typed() -> None:
    with top(NO_DAEMON) as program:
        assert program.shows("samples by itself", within_s=PATIENCE_S)
        program.type("\x03")
        assert program.end(PATIENCE_S) == 0


def test_control_z_suspends_as_a_job_of_a_shell() -> None:
    script = f"{DISKSLA} top {NO_DAEMON}; stty -a; echo suspended; read -r _; fg; echo end"
    with on_terminal(["bash", "--norc", "-m", "-c", script]) as shell:
        assert shell.shows("samples by itself", within_s=PATIENCE_S)
        shell.type("\x1a")
        assert eventually(lambda: "suspended" in _written(shell), PATIENCE_S)
        assert not shell.screen.is_alternate
        assert shell.screen.has_cursor
        assert " icanon " in shell.screen.before
        assert " echo " in shell.screen.before
        shell.type("\n")
        assert shell.shows("samples by itself", within_s=PATIENCE_S)
        shell.type("q")
        assert shell.end(PATIENCE_S) == 0
        assert shell.screen.before.endswith("end\r\n")


def _written(program: TerminalProgram) -> str:
    program.read()
    return program.screen.before


def test_it_ends_with_its_terminal() -> None:
    with top(NO_DAEMON) as program:
        assert program.shows("samples by itself", within_s=PATIENCE_S)
        copy = os.dup(program.controller)
        sink = os.open(os.devnull, os.O_RDWR)
        os.dup2(sink, program.controller)
        os.close(sink)
        os.close(copy)
        assert program.process.wait(PATIENCE_S) in {0, 129}


FAILING = """
from disksla.base.console import SafeConsole
from disksla.tell.top import Look
from disksla.tell.top.terminal import TopTerminal

class Failing:
    problem = ""
    def read(self):
        raise RuntimeError("this source fails")

TopTerminal(SafeConsole(), Failing(), Look("fails")).show(1.0, lambda: False)
"""


def test_terminal_is_restored_after_an_exception() -> None:
    with on_terminal([sys.executable, "-c", FAILING]) as program:
        before = program.settings()
        assert program.end(PATIENCE_S) == 1
        assert program.settings() == before
        assert program.screen.has_cursor
        assert not program.screen.is_alternate
        assert "RuntimeError: this source fails" in program.screen.before


def test_control_l_draws_again() -> None:
    with top(NO_DAEMON) as program:
        assert program.shows("samples by itself", "?:help", within_s=PATIENCE_S)
        program.screen.feed("\x1b[2J")
        program.read(_SETTLED_S)
        assert "?:help" not in "\n".join(program.screen.lines())
        program.type("\x0c")
        assert program.shows("samples by itself", "?:help", within_s=PATIENCE_S)


def test_colours_letters_and_ascii() -> None:
    with top(NO_DAEMON, NO_COLOR="1") as program:
        assert program.shows("Device", within_s=PATIENCE_S)
        assert "38;2" not in "".join(program.screen.rows.values())
    with top(NO_DAEMON, LC_ALL="C") as program:
        assert program.shows("Device", within_s=PATIENCE_S)
        program.type("?")
        assert program.shows("Keys", within_s=PATIENCE_S)
        assert "\n".join(program.screen.lines()).isascii()


def test_blocks_of_text_in_a_pipe(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    url = f"--url=http://{daemon.address}"
    printed = run("top", url, "--count=2", "--interval=200ms").stdout
    blocks = printed.strip().split("\n\n")
    assert len(blocks) == 2
    for block in blocks:
        first, second, heading, *_ = block.splitlines()
        assert "disksla top: asks the daemon at" in first
        assert "sorted by trouble" in second
        assert heading.split()[0] == "Device"
        assert " state " in heading
    assert "\x1b" not in printed
    documents = [json.loads(line) for line in run("top", url, "--json", "-n2").stdout.splitlines()]
    assert len(documents) == 2
    assert documents[1]["timestamp_s"] > documents[0]["timestamp_s"]


def test_batch_on_a_terminal_and_without_a_daemon() -> None:
    with top(NO_DAEMON, "-b", "--count=1") as program:
        assert program.end(PATIENCE_S) == 0
        assert "samples by itself" in program.screen.before
        assert "Device" in program.screen.before


def test_batch_waits_for_a_daemon_that_ended(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    command = [str(DISKSLA), "top", f"--url=http://{daemon.address}", "-b", "--interval=100ms"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "asks the daemon" in process.stdout.readline()
        daemon.end()
        fcntl.fcntl(process.stdout, fcntl.F_SETFL, os.O_NONBLOCK)
        assert "no answer" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--interval=10ms", "--interval: found '0.01s'; expected 100ms or more"),
        ("--count=0", "expected a number above zero"),
        ("--url=http://192.0.2.1", "cannot ask the daemon: http://192.0.2.1: "),
    ],
)
def test_invalid_options(option: str, message: str) -> None:
    assert message in run("top", option, status=2).stderr


def test_closed_pipe_ends_it() -> None:
    command = f"{DISKSLA} top {NO_DAEMON} --interval=100ms | head -1"
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False,
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert ended.returncode == 0
    assert ended.stderr.splitlines()[1:] == []
    assert "samples by itself" in ended.stdout
