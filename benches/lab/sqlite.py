"""Load of a database of SQLite: one commit after another."""

import itertools
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from lab.scenario import SqliteLoad

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
