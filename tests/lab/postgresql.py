"""A server of PostgreSQL on a file system of the lab, and pgbench as its load."""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from lab.scenario import PostgresqlServer
from support.waiting import eventually

_DEBIAN = Path("/usr/lib/postgresql")
_TIMEOUT_S = 60.0
_USER = "daemon"
"""PostgreSQL refuses to run as root."""
_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "logging_collector": "off",
}


def programs() -> Path | None:
    """Return the directory with the newest programs of PostgreSQL; None if there are none."""
    found = [path.parent for path in _DEBIAN.glob("*/bin/pgbench")]
    if not found and (path := shutil.which("pgbench")) and shutil.which("initdb"):
        return Path(path).parent
    return max(found, key=lambda path: float(path.parent.name), default=None)


class Postgresql(NamedTuple):
    """A server that runs."""

    sockets: Path
    """Directory of its socket."""

    def is_ready(self) -> bool:
        """Return whether it accepts connections."""
        command = _as_user("pg_isready", f"--host={self.sockets}")
        return subprocess.run(command, check=False, capture_output=True, cwd="/").returncode == 0

    def pgbench(self, options: list[str], seconds: float, checkpoint_s: float | None) -> None:
        """Run pgbench for a time, and write a checkpoint some time after its start."""
        timer = None
        if checkpoint_s is not None:
            timer = threading.Timer(checkpoint_s, self._run, ("psql", "--command=CHECKPOINT"))
            timer.start()
        try:
            self._run("pgbench", "--no-vacuum", f"--time={seconds:.0f}", *options)
        finally:
            if timer is not None:
                timer.join()

    def initialize(self, scale: int) -> None:
        """Create the tables of pgbench, and write them to the disk."""
        self._run("pgbench", "--initialize", "--quiet", f"--scale={scale}")
        self._run("psql", "--command=CHECKPOINT")

    def _run(self, program: str, *arguments: str) -> None:
        _run(program, f"--host={self.sockets}", "--username=lab", *arguments, "postgres")


@contextmanager
def served(server: PostgresqlServer, file_system: Path) -> Iterator[Postgresql]:
    """Run a server with tables of pgbench until the end of the block; nothing is cached."""
    data, sockets = file_system / "data", file_system / "sockets"
    for directory in (data, sockets):
        directory.mkdir(mode=0o700)
        shutil.chown(directory, _USER)
    _run("initdb", f"--pgdata={data}", "--username=lab", "--auth=trust", "--no-sync")
    settings = {**_SETTINGS, **server.settings, "unix_socket_directories": str(sockets)}
    with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    with ExitStack() as undo:
        log = undo.enter_context((file_system / "log").open("wb"))
        process = subprocess.Popen(
            _as_user("postgres", "-D", str(data)),
            stdout=log,
            stderr=log,
            cwd=file_system,
            start_new_session=True,
        )
        undo.callback(_stop, process)
        running = Postgresql(sockets)
        if not eventually(running.is_ready, _TIMEOUT_S):
            raise OSError(f"PostgreSQL does not start: {(file_system / 'log').read_text()}")
        running.initialize(server.scale)
        _evict(data)
        yield running


def _evict(directory: Path) -> None:
    """Remove clean pages of all files from the page cache, so that reads reach the disk."""
    os.sync()
    for path in directory.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a server without a checkpoint: its disk may be slow."""
    process.send_signal(signal.SIGQUIT)
    process.wait(_TIMEOUT_S)


def _as_user(program: str, *arguments: str) -> list[str]:
    directory = programs()
    path = str(directory / program) if directory is not None else program
    user = (f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups")
    return ["setpriv", *user, "env", "--default-signal=INT,QUIT,TERM", path, *arguments]


def _run(program: str, *arguments: str) -> None:
    command = _as_user(program, *arguments)
    finished = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
    )
    if finished.returncode:
        raise OSError(f"{program}: exit status {finished.returncode}: {finished.stdout}")
