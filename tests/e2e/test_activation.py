"""Sockets that systemd opened, and the real command that is to serve on them."""

import os
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from support.daemon_process import DISKSLA, PATIENCE_S, Daemon, run
from support.loop_device import eventually

PASSES_A_SOCKET = """
import os, socket, sys
made = socket.create_server(("127.0.0.1", 0))
os.dup2(made.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[1], sys.argv[1:])
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        port: int = made.getsockname()[1]
        return port


def is_answered(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
        return True
    return False


@pytest.mark.skipif(
    shutil.which("systemd-socket-activate") is None,
    reason="NOT TESTED: socket activation needs systemd-socket-activate (apt-get install systemd)",
)
def test_it_serves_on_the_socket_of_systemd(tmp_path: Path) -> None:
    port = free_port()
    command = [
        *("systemd-socket-activate", f"--listen=127.0.0.1:{port}"),
        *(f"--setenv={name}" for name in os.environ),
        *(str(DISKSLA), "serve", "--web.systemd-socket"),
    ]
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert eventually(lambda: is_answered(port), PATIENCE_S)  # which starts it
            daemon = Daemon(process, log)
            assert daemon.address == f"127.0.0.1:{port}", log.read_text()
            assert eventually(lambda: daemon.get("/-/ready")[0] == 200, PATIENCE_S)
            assert daemon.end() == 0
        finally:
            process.kill()


def test_the_flag_without_a_socket_is_refused() -> None:
    assert "systemd passed no socket" in run("serve", "--web.systemd-socket", status=2).stderr


def refused_with_a_socket(*options: str) -> str:
    command = [sys.executable, "-c", PASSES_A_SOCKET, str(DISKSLA), "serve", *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    return ended.stderr


def test_a_socket_without_the_flag_is_refused() -> None:
    assert "expected --web.systemd-socket" in refused_with_a_socket()


def test_the_socket_and_an_address_exclude_each_other() -> None:
    options = ("--web.systemd-socket", "--web.listen-address", "127.0.0.1:0")
    assert "exclude each other" in refused_with_a_socket(*options)
