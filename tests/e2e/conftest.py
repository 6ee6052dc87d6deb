"""Fixtures of tests with the real daemon: a function that starts it."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.daemon_process import DISKSLA, PATIENCE_S, Daemon, StartDaemon
from support.waiting import eventually


@pytest.fixture
def start_daemon(tmp_path: Path) -> Iterator[StartDaemon]:
    """Return a function that starts the daemon with options, on a port that the kernel chooses.

    The Unix socket is left to a daemon that may run on this machine.
    """
    with ExitStack() as stack:

        def start(*options: str, before: tuple[str, ...] = (), ready: bool = True) -> Daemon:
            log = tmp_path / "log"
            alone = ("--web.listen-address", "127.0.0.1:0", "--web.unix-socket", "")
            process = subprocess.Popen(
                [*before, DISKSLA, "serve", *alone, *options],
                stdout=subprocess.PIPE,
                stderr=stack.enter_context(log.open("w")),
                text=True,
            )
            stack.callback(_kill, process)
            daemon = Daemon(process, log)
            assert daemon.address, log.read_text()
            page = "/-/ready" if ready else "/-/healthy"
            assert eventually(lambda: daemon.get(page)[0] == 200, PATIENCE_S)
            return daemon

        yield start


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
