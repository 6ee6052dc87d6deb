"""Who gets an answer of a daemon whose port requires TLS and a password.

The daemon and the commands have their defaults, in namespaces with a /run and a loopback
interface of their own.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest

from support.daemon_process import DISKSLA, PATIENCE_S
from support.waiting import eventually

SOCKET = Path("/run/disksla/disksla.sock")
WEB = (
    "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
    f"basic_auth_users: {{p: {bcrypt.hashpw(b'x', bcrypt.gensalt(4)).decode()}}}\n"
)
IN_NAMESPACE = """
mkdir "$1"
mount --rbind /run "$1"
mount -t tmpfs none /run
mkdir /run/disksla /run/udev
if [ -d "$1/udev" ]; then mount --bind "$1/udev" /run/udev; fi
umount --lazy "$1"
ip link set lo up
echo made
exec sleep infinity
"""
OTHERS = (
    "--clear-groups",
    "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=-all,+dac_read_search",
)
"""Other users, who may read all files: the interpreter may be in the home of root."""
STRANGER = ("setpriv", "--reuid=65534", "--regid=65534", *OTHERS)
IN_GROUP = ("setpriv", "--reuid=65534", "--regid=0", *OTHERS)
"""Another user in the group of the daemon, which is started by root here."""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "setpriv", "ip"))),
    reason="NOT TESTED: namespaces need root, util-linux and iproute2",
)


def sampled(reason: str) -> tuple[str, str]:
    return "sample", f"disksla: cannot ask the daemon: {reason}; sampling for 5 s"


class Machine:
    """A namespace in which daemons and commands run."""

    def __init__(self, holder: subprocess.Popen[str], directory: Path) -> None:
        self._enter = ("nsenter", f"--target={holder.pid}", "--mount", "--net")
        self._directory = directory
        self.daemons: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str) -> Path:
        """Start a daemon; return its log, which has a line about the Unix socket."""
        log = self._directory / f"log{len(self.daemons)}"
        with log.open("w") as file:
            self.daemons.append(
                subprocess.Popen(
                    [*self._enter, str(DISKSLA), "serve", *options],
                    stdout=subprocess.DEVNULL,
                    stderr=file,
                )
            )
        assert eventually(lambda: "Unix socket" in log.read_text(), PATIENCE_S), log.read_text()
        return log

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send the last daemon a signal, and wait for its end."""
        daemon = self.daemons.pop()
        daemon.send_signal(number)
        daemon.wait(PATIENCE_S)

    def run(self, *command: str, user: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._enter, *user, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            env={**os.environ, "COLUMNS": "80"},
        )

    def explain(self, *options: str, user: tuple[str, ...] = ()) -> tuple[str, str]:
        """Return who said what the disks did, and standard error, which has at most one line."""
        ended = self.run(str(DISKSLA), "explain", "--json", *options, user=user)
        assert ended.returncode == 0, ended.stderr
        assert ended.stderr.count("\n") <= 1
        return json.loads(ended.stdout)["source"], ended.stderr.strip()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    command = [
        "unshare",
        "--mount",
        "--net",
        "sh",
        "-ec",
        IN_NAMESPACE,
        "sh",
        str(tmp_path / "run"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        machine = Machine(holder, tmp_path)
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "made\n"
            yield machine
        finally:
            while machine.daemons:
                machine.kill()
            holder.kill()


@pytest.fixture
def protected(certificates: Path, tmp_path: Path) -> tuple[str, ...]:
    """Return options of a daemon whose port requires TLS and a password."""
    web = Path(shutil.copytree(certificates, tmp_path / "web")) / "web.yml"
    web.write_text(WEB)
    config = tmp_path / "config.yml"
    config.write_text(json.dumps({"state": {"directory": str(tmp_path / "state")}}))
    return ("--web.config.file", str(web), "--config.file", str(config))


def test_permissions_of_the_socket_decide(machine: Machine, protected: tuple[str, ...]) -> None:
    machine.start(*protected)
    assert machine.explain() == ("daemon", "")
    assert machine.explain(user=IN_GROUP) == ("daemon", "")
    assert machine.explain(user=STRANGER) == sampled(
        "unix:///run/disksla/disksla.sock: Permission denied;"
        " http://127.0.0.1:10056: it requires HTTPS"
    )
    refused = machine.run(str(DISKSLA), "explain", "--url=https://localhost:10056")
    assert refused.returncode == 2
    assert "https://localhost:10056: it requires a password" in refused.stderr
    assert machine.explain(f"--url=unix://{SOCKET}") == ("daemon", "")
    text = machine.run(str(DISKSLA), "explain").stdout
    assert re.search(r"in the last (five minutes|[0-9.]+ s)\.", text.replace("\n", " "))
    assert max(map(len, text.splitlines())) <= 80


def test_doctor_sees_what_the_port_hides(machine: Machine, protected: tuple[str, ...]) -> None:
    machine.start(*protected)

    def running(user: tuple[str, ...] = ()) -> tuple[str, str, str]:
        ended = machine.run(str(DISKSLA), "doctor", "--json", *protected, user=user)
        checks = {each["check"]: each for each in json.loads(ended.stdout)["checks"]}
        found = checks["daemon.running"]
        return found["status"], found["found"], found["fix"]

    assert eventually(lambda: running()[0] == "ok", PATIENCE_S)
    assert running()[1] == f"unix://{SOCKET} answers, and the disks are sampled"
    assert running(STRANGER)[:2] == (
        "note",
        "the metrics at http://127.0.0.1:10056/metrics were not checked: it requires HTTPS",
    )


def test_without_the_directory_the_port_is_asked(machine: Machine) -> None:
    assert machine.run("rmdir", str(SOCKET.parent)).returncode == 0
    assert 'reason="the directory /run/disksla does not exist"' in machine.start().read_text()
    assert machine.explain(user=STRANGER) == ("daemon", "")
    machine.kill()
    assert machine.explain() == sampled("http://127.0.0.1:10056: Connection refused")


def test_socket_of_another_name_or_none(machine: Machine) -> None:
    machine.start("--web.unix-socket", "/run/other.sock", "--web.listen-address", "127.0.0.1:1")
    assert machine.explain("--url=unix:///run/other.sock") == ("daemon", "")
    assert machine.run("test", "-e", str(SOCKET)).returncode == 1
