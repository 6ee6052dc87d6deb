"""Databases on disks of the lab, their loads, and the programs that they need."""

import base64
import itertools
import json
import shutil
import signal
import socket
import sqlite3
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from lab.scenario import (
    EtcdServer,
    LabDisk,
    MariadbServer,
    Phase,
    PostgresqlServer,
    RedisServer,
    RocksdbFiles,
    SqliteLoad,
)
from lab.server import Database, as_user, checked, evict, own_directory, run_for, running, succeeds

_ETCD_PROGRAMS = ("etcd",)
_VALUE = base64.b64encode(bytes(512)).decode()
_KEYS = 1000
_PUT_TIMEOUT_S = 60.0


class Etcd(NamedTuple):
    """A server that runs."""

    address: str

    def run(self, phase: Phase) -> None:
        """Put keys from several clients for a time, each one after another."""
        ends_s = time.monotonic() + phase.seconds
        clients = range(phase.etcd_writers or 1)
        with ThreadPoolExecutor(len(clients)) as executor:
            list(executor.map(lambda client: self._put_until(ends_s, client), clients))

    def is_ready(self) -> bool:
        """Return whether it stores a key."""
        with suppress(OSError):
            self.put(0)
            return True
        return False

    def put(self, key: int) -> None:
        """Store a key by the gateway of HTTP. Raise OSError if that fails."""
        encoded = base64.b64encode(f"{key}".encode()).decode()
        body = json.dumps({"key": encoded, "value": _VALUE}).encode()
        address = f"{self.address}/v3/kv/put"
        with urllib.request.urlopen(address, body, timeout=_PUT_TIMEOUT_S) as response:
            response.read()

    def _put_until(self, ends_s: float, client: int) -> None:
        number = client
        while time.monotonic() < ends_s:
            self.put(number % _KEYS)
            number += 37


@contextmanager
def _etcd_served(_: EtcdServer, file_system: Path) -> Iterator[Etcd]:
    """Run a server until the end of the block."""
    data = own_directory(file_system / "data")
    client, peer = (f"http://127.0.0.1:{port}" for port in _free_ports(2))
    options = (
        f"--data-dir={data}",
        *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
        *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
        *(f"--initial-cluster=default={peer}", "--log-level=error"),
    )
    etcd = Etcd(client)
    with running(as_user("etcd", *options), file_system, etcd.is_ready):
        yield etcd


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


_MARIADB_PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb", "sysbench")
_SERVER_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
_MARIADB_SETTINGS = {
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
def _mariadb_served(server: MariadbServer, file_system: Path) -> Iterator[Mariadb]:
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
    settings = {
        **_MARIADB_SETTINGS,
        **server.settings,
        "datadir": str(data),
        "socket": str(socket),
    }
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
    return shutil.which(name) or shutil.which(name, path=_SERVER_PATH)


_DEBIAN = Path("/usr/lib/postgresql")
_POSTGRESQL_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "logging_collector": "off",
}


def postgresql_programs() -> Path | None:
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
        return succeeds(*_postgresql_command("pg_isready", f"--host={self.sockets}"))

    def initialize(self, scale: int) -> None:
        """Create the tables of pgbench, and write them to the disk."""
        self._connected("pgbench", "--initialize", "--quiet", f"--scale={scale}")
        self._connected("psql", "--command=CHECKPOINT")

    def _connected(self, program: str, *arguments: str) -> None:
        options = (f"--host={self.sockets}", "--username=lab", *arguments, "postgres")
        checked(*_postgresql_command(program, *options))


@contextmanager
def _postgresql_served(server: PostgresqlServer, file_system: Path) -> Iterator[Postgresql]:
    """Run a server with tables of pgbench until the end of the block; nothing is cached."""
    data, sockets = own_directory(file_system / "data"), own_directory(file_system / "sockets")
    initdb = ("initdb", f"--pgdata={data}", "--username=lab", "--auth=trust", "--no-sync")
    checked(*_postgresql_command(*initdb))
    settings = {**_POSTGRESQL_SETTINGS, **server.settings, "unix_socket_directories": str(sockets)}
    with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    postgresql = Postgresql(sockets)
    command = _postgresql_command("postgres", "-D", str(data))
    with running(command, file_system, postgresql.is_ready, signal.SIGQUIT):
        postgresql.initialize(server.scale)
        evict(data)
        yield postgresql


def _postgresql_command(program: str, *arguments: str) -> list[str]:
    directory = postgresql_programs()
    path = str(directory / program) if directory is not None else program
    return as_user(path, *arguments)


_REDIS_PROGRAMS = ("redis-server", "redis-cli", "redis-benchmark")


class Redis(NamedTuple):
    """A server that runs."""

    socket: Path

    def run(self, phase: Phase) -> None:
        """Run redis-benchmark for a time."""
        options = (phase.redis_benchmark or "").split()
        run_for(["redis-benchmark", "-s", str(self.socket), "-q", "-l", *options], phase.seconds)


@contextmanager
def _redis_served(server: RedisServer, file_system: Path) -> Iterator[Redis]:
    """Run a server with an append-only file until the end of the block."""
    data = own_directory(file_system / "data")
    redis = Redis(data / "socket")
    options = (
        *("--port", "0", "--unixsocket", str(redis.socket), "--dir", str(data), "--save", ""),
        *("--appendonly", "yes", "--appendfsync", server.appendfsync),
    )
    command = as_user("redis-server", *options)
    with running(command, file_system, lambda: succeeds(*_ping(redis.socket))):
        yield redis


def _ping(socket: Path) -> list[str]:
    return ["redis-cli", "-e", "-s", str(socket), "ping"]


_ROCKSDB_PROGRAMS = ("db_bench",)
_GRACE_S = 5.0
"""A program that is ended in the middle of its statistics would start again."""


class Rocksdb(NamedTuple):
    """A database that has keys."""

    data: Path
    keys: int

    def command(self, *options: str) -> list[str]:
        """Return the command of db_bench with options."""
        return as_user(
            "db_bench", f"--db={self.data}", f"--num={self.keys}", "--statistics=0", *options
        )

    def run(self, phase: Phase) -> None:
        """Run db_bench for a time."""
        duration = f"--duration={phase.seconds + _GRACE_S:.0f}"
        options = ("--use_existing_db=1", duration, *(phase.db_bench or "").split())
        run_for(self.command(*options), phase.seconds)


@contextmanager
def _rocksdb_served(files: RocksdbFiles, file_system: Path) -> Iterator[Rocksdb]:
    """Fill a database; nothing of it is cached."""
    rocksdb = Rocksdb(own_directory(file_system / "data"), files.keys)
    checked(*rocksdb.command("--benchmarks=fillseq"))
    evict(rocksdb.data)
    yield rocksdb


_ROWS = 1000


def commit(load: SqliteLoad, file: Path, seconds: float) -> None:
    """Change a random row and commit, again and again, for a time."""
    ends_s = time.monotonic() + seconds
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute(f"PRAGMA journal_mode = {load.journal}")
        database.execute("PRAGMA synchronous = FULL")
        database.execute(
            "CREATE TABLE IF NOT EXISTS account (id INTEGER PRIMARY KEY, sum INTEGER)"
        )
        database.execute(
            "WITH RECURSIVE id(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM id LIMIT ?)"
            " INSERT OR IGNORE INTO account SELECT id, 0 FROM id",
            (_ROWS,),
        )
        begun_s = time.monotonic()
        for number in itertools.count():
            database.execute(
                "UPDATE account SET sum = sum + 1 WHERE id = ?", (number * 37 % _ROWS + 1,)
            )
            if load.rate is not None:
                time.sleep(max(0.0, begun_s + number / load.rate - time.monotonic()))
            if time.monotonic() >= ends_s:
                return


def database_on(
    disk: LabDisk, file_system: Path
) -> AbstractContextManager[Database] | AbstractContextManager[None]:
    """Start the database that a disk has, if any, until the end of the block."""
    if disk.postgresql is not None:
        return _postgresql_served(disk.postgresql, file_system)
    if disk.mariadb is not None:
        return _mariadb_served(disk.mariadb, file_system)
    if disk.redis is not None:
        return _redis_served(disk.redis, file_system)
    if disk.etcd is not None:
        return _etcd_served(disk.etcd, file_system)
    if disk.rocksdb is not None:
        return _rocksdb_served(disk.rocksdb, file_system)
    return nullcontext()


def missing_program(disk: LabDisk) -> str | None:
    """Return a program that the database of a disk needs, if it is missing."""
    if disk.postgresql is not None and postgresql_programs() is None:
        return "PostgreSQL (initdb, pgbench)"
    needed = [
        *(_MARIADB_PROGRAMS if disk.mariadb is not None else ()),
        *(_REDIS_PROGRAMS if disk.redis is not None else ()),
        *(_ETCD_PROGRAMS if disk.etcd is not None else ()),
        *(_ROCKSDB_PROGRAMS if disk.rocksdb is not None else ()),
    ]
    return next((program for program in needed if program_of(program) is None), None)
