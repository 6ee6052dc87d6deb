"""A server of MariaDB on a file system of the lab, and sysbench as its load."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lab.scenario import MariadbServer, Phase
from lab.server import as_user, checked, evict, own_directory, running, succeeds

PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb", "sysbench")
_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
_SETTINGS = {
    "skip-networking": "1",
    "innodb-buffer-pool-size": "16M",
    "innodb-log-file-size": "16M",
    "skip-log-bin": "1",
}


class Mariadb(NamedTuple):
    """A server that runs."""

    socket: Path
    rows: int

    def run(self, phase: Phase) -> None:
        """Run a test of sysbench."""
        test, *options = (phase.sysbench or "").split()
        self.sysbench(test, f"--time={phase.seconds:.0f}", *options, "run")

    def sysbench(self, test: str, *arguments: str) -> None:
        """Run a command of sysbench on its one table."""
        tables = ("--tables=1", f"--table-size={self.rows}", "--mysql-db=lab", "--mysql-user=root")
        checked("sysbench", test, f"--mysql-socket={self.socket}", *tables, *arguments)

    def execute(self, statement: str) -> bool:
        """Execute a statement; return whether that succeeds."""
        options = ("--no-defaults", f"--socket={self.socket}", "--user=root")
        return succeeds("mariadb", *options, f"--execute={statement}")


@contextmanager
def served(server: MariadbServer, file_system: Path) -> Iterator[Mariadb]:
    """Run a server with a table of sysbench until the end of the block; nothing is cached."""
    data = own_directory(file_system / "data")
    socket = own_directory(file_system / "sockets") / "mariadb"
    program = program_of("mariadbd") or "mariadbd"
    base = Path(program).parent.parent
    install = (
        f"--basedir={base}",
        f"--datadir={data}",
        "--auth-root-authentication-method=normal",
    )
    checked(*as_user("mariadb-install-db", "--no-defaults", *install, "--skip-test-db"))
    settings = {**_SETTINGS, **server.settings, "datadir": str(data), "socket": str(socket)}
    options = [f"--{name}={value}" for name, value in settings.items()]
    mariadb = Mariadb(socket, server.rows)
    command = as_user(program, "--no-defaults", f"--basedir={base}", *options)
    with running(command, file_system, lambda: mariadb.execute("SELECT 1")):
        if not mariadb.execute("CREATE DATABASE lab"):
            raise OSError("MariaDB does not create a database")
        mariadb.sysbench("oltp_common", "prepare")
        evict(data)
        yield mariadb


def program_of(name: str) -> str | None:
    """Return the path of a program, which may be one of a server; None if there is none."""
    return shutil.which(name) or shutil.which(name, path=_PATH)
