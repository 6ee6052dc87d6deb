"""A server of Redis on a file system of the lab, and redis-benchmark as its load."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lab.scenario import Phase, RedisServer
from lab.server import as_user, own_directory, run_for, running, succeeds

PROGRAMS = ("redis-server", "redis-cli", "redis-benchmark")


class Redis(NamedTuple):
    """A server that runs."""

    socket: Path

    def run(self, phase: Phase) -> None:
        """Run redis-benchmark for a time."""
        options = (phase.redis_benchmark or "").split()
        run_for(["redis-benchmark", "-s", str(self.socket), "-q", "-l", *options], phase.seconds)


@contextmanager
def served(server: RedisServer, file_system: Path) -> Iterator[Redis]:
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
