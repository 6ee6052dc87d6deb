"""Databases on disks of the lab: which a disk has, and the programs that it needs."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from lab import etcd, mariadb, postgresql, redis, rocksdb
from lab.mariadb import program_of
from lab.scenario import LabDisk
from lab.server import Database


def database_on(
    disk: LabDisk, file_system: Path
) -> AbstractContextManager[Database] | AbstractContextManager[None]:
    """Start the database that a disk has, if any, until the end of the block."""
    if disk.postgresql is not None:
        return postgresql.served(disk.postgresql, file_system)
    if disk.mariadb is not None:
        return mariadb.served(disk.mariadb, file_system)
    if disk.redis is not None:
        return redis.served(disk.redis, file_system)
    if disk.etcd is not None:
        return etcd.served(disk.etcd, file_system)
    if disk.rocksdb is not None:
        return rocksdb.served(disk.rocksdb, file_system)
    return nullcontext()


def missing_program(disk: LabDisk) -> str | None:
    """Return a program that the database of a disk needs, if it is missing."""
    if disk.postgresql is not None and postgresql.programs() is None:
        return "PostgreSQL (initdb, pgbench)"
    needed = [
        *(mariadb.PROGRAMS if disk.mariadb is not None else ()),
        *(redis.PROGRAMS if disk.redis is not None else ()),
        *(etcd.PROGRAMS if disk.etcd is not None else ()),
        *(rocksdb.PROGRAMS if disk.rocksdb is not None else ()),
    ]
    return next((program for program in needed if program_of(program) is None), None)
