"""A database of RocksDB on a file system of the lab, and its db_bench as the load."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lab.scenario import Phase, RocksdbFiles
from lab.server import as_user, checked, evict, own_directory, run_for

PROGRAMS = ("db_bench",)
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
def served(files: RocksdbFiles, file_system: Path) -> Iterator[Rocksdb]:
    """Fill a database; nothing of it is cached."""
    rocksdb = Rocksdb(own_directory(file_system / "data"), files.keys)
    checked(*rocksdb.command("--benchmarks=fillseq"))
    evict(rocksdb.data)
    yield rocksdb
