"""Socket activation of the real command."""

import os
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from support.daemon_process import DISKSLA, PATIENCE_S, Daemon, run
from support.waiting import eventually

PASS_A_SOCKET = """
import os, socket, sys
server = socket.create_server(("127.0.0.1", 0))
os.dup2(server.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[1], sys.argv[1:])
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def accepts_connections(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
        return True
    return False


@pytest.mark.skipif(
    shutil.which("systemd-socket-activate") is None,
    reason="NOT TESTED: socket activation needs systemd-socket-activate (apt-get install systemd)",
)
def test_daemon_serves_on_the_inherited_socket(tmp_path: Path) -> None:
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
            assert eventually(lambda: accepts_connections(port), PATIENCE_S)  # starts the daemon
            daemon = Daemon(process, log)
            assert daemon.address == f"127.0.0.1:{port}", log.read_text()
            assert eventually(lambda: daemon.get("/-/ready")[0] == 200, PATIENCE_S)
            assert daemon.end() == 0
        finally:
            process.kill()


def test_option_without_a_socket_is_rejected() -> None:
    errors = run("serve", "--web.systemd-socket", status=2).stderr
    assert "found no socket from systemd" in errors


def errors_with_a_socket(*options: str) -> str:
    command = [sys.executable, "-c", PASS_A_SOCKET, str(DISKSLA), "serve", *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    return ended.stderr


def test_socket_without_the_option_is_rejected() -> None:
    assert "expected --web.systemd-socket" in errors_with_a_socket()


def test_socket_and_address_are_mutually_exclusive() -> None:
    options = ("--web.systemd-socket", "--web.listen-address", "127.0.0.1:0")
    assert "excludes --web.listen-address" in errors_with_a_socket(*options)
