"""A server of PostgreSQL on a file system of the lab, and pgbench as its load."""

import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lab.scenario import Phase, PostgresqlServer
from lab.server import as_user, checked, evict, own_directory, running, succeeds

_DEBIAN = Path("/usr/lib/postgresql")
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

    def run(self, phase: Phase) -> None:
        """Run pgbench for a time, and write a checkpoint some time after its start."""
        timer = None
        if phase.checkpoint is not None:
            checkpoint = ("psql", "--command=CHECKPOINT")
            timer = threading.Timer(phase.checkpoint, self._connected, checkpoint)
            timer.start()
        options = (phase.pgbench or "").split()
        try:
            self._connected("pgbench", "--no-vacuum", f"--time={phase.seconds:.0f}", *options)
        finally:
            if timer is not None:
                timer.join()

    def is_ready(self) -> bool:
        """Return whether it accepts connections."""
        return succeeds(*_command("pg_isready", f"--host={self.sockets}"))

    def initialize(self, scale: int) -> None:
        """Create the tables of pgbench, and write them to the disk."""
        self._connected("pgbench", "--initialize", "--quiet", f"--scale={scale}")
        self._connected("psql", "--command=CHECKPOINT")

    def _connected(self, program: str, *arguments: str) -> None:
        options = (f"--host={self.sockets}", "--username=lab", *arguments, "postgres")
        checked(*_command(program, *options))


@contextmanager
def served(server: PostgresqlServer, file_system: Path) -> Iterator[Postgresql]:
    """Run a server with tables of pgbench until the end of the block; nothing is cached."""
    data, sockets = own_directory(file_system / "data"), own_directory(file_system / "sockets")
    initdb = ("initdb", f"--pgdata={data}", "--username=lab", "--auth=trust", "--no-sync")
    checked(*_command(*initdb))
    settings = {**_SETTINGS, **server.settings, "unix_socket_directories": str(sockets)}
    with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    postgresql = Postgresql(sockets)
    command = _command("postgres", "-D", str(data))
    with running(command, file_system, postgresql.is_ready, signal.SIGQUIT):
        postgresql.initialize(server.scale)
        evict(data)
        yield postgresql


def _command(program: str, *arguments: str) -> list[str]:
    directory = programs()
    path = str(directory / program) if directory is not None else program
    return as_user(path, *arguments)
