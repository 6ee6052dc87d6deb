"""A scenario: disks with their limits, loads and terms, and the verdicts expected of them."""

from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import msgspec
import yaml

from disksla.verdict.throttling import LimitKind
from lab.model import DiskModel, Duration, Meter, decode
from lab.template import filled

HERE = Path(__file__).parent / "scenarios"
PARTS = tuple(sorted(path.name for path in HERE.iterdir() if path.is_dir()))
DEFAULT_PARTS = tuple(part for part in PARTS if part not in {"long", "negatives"})
SEED = 12
"""Seed of the random numbers, unless another is given."""


class SqliteLoad(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Commits to a database of SQLite, each synced (synchronous=FULL)."""

    journal: Literal["delete", "wal"]
    """Journal mode: a rollback journal that is deleted, or a write-ahead log."""
    rate: float | None = None
    """Commits per second (default: as many as the disk serves)."""


class Phase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One phase of a load; phases follow one after the other."""

    seconds: Duration = msgspec.field(name="for")
    fio: str | None = None
    """Options of fio; direct I/O on the whole device, for as long as the phase. `--name=OTHER`
    begins a second job."""
    shell: str | None = None
    """Commands in the directory of the file system, again and again, for as long as the phase."""
    pgbench: str | None = None
    """Options of pgbench, for as long as the phase."""
    checkpoint: Duration | None = None
    """Time after which PostgreSQL writes a checkpoint while pgbench runs."""
    sqlite: SqliteLoad | None = None
    sysbench: str | None = None
    """Test of sysbench on MariaDB, and its options."""
    redis_benchmark: str | None = None
    """Options of redis-benchmark."""
    etcd_writers: int | None = None
    """Clients of etcd, of which each puts one key after another."""
    db_bench: str | None = None
    """Options of db_bench on RocksDB."""

    @property
    def is_loaded(self) -> bool:
        """Whether it has a load."""
        return bool(self.fio or self.shell or self.sqlite or self.is_of_database)

    @property
    def is_of_database(self) -> bool:
        """Whether a database is loaded that runs on the disk."""
        loads = (self.pgbench, self.sysbench, self.redis_benchmark, self.db_bench)
        return any(loads) or self.etcd_writers is not None


Throttled = Literal["never", "points", "quarter", "unknown", "by_window"]
SHORT_S, LONG_S = 0.05, 1.0
"""Windows of a limiter that close samples show."""


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is required of the verdicts on one disk; absent keys are not judged.

    Throttled time, limits and windows are compared once a load has lasted for ten seconds
    (lab/judge.py); `never` holds at all times.
    """

    throttled: Throttled | None = None
    """Throttled time: `never`: for 0.5 % of the time under load at most; `points`: within 8 points
    of the time under load, and the window of the limiter within 2 % (windows of 50 ms to 1 s);
    `quarter`: within 25 % of the truth, or 2 points (other windows and leaky buckets, with terms);
    `unknown`: not more than the truth and 2 points, and maybe nothing: samples cannot tell;
    `by_window`: one of the last three, by the window of the limiter, which is random."""
    limit: LimitKind | None = None
    """Limit that is reported while the disk is throttled."""
    ceiling: bool = False
    """The observed ceiling is within 1 % of the rate at which the disk was throttled."""
    below_since: Duration | None = None
    """Time from which the disk gives less than promised; detected within 2 s, never before."""
    stalled: bool = False
    """`stalled` is reported while nothing completes, within two windows at each edge."""
    never: tuple[str, ...] = ()
    """Verdicts, and limits, that must not occur."""
    mostly: str | None = None
    """Verdict of at least nine tenths of the time under load."""
    credits: bool = False
    """The bounds contain the truth at every tick."""
    credits_close: bool = False
    """At the end the bounds are within 5 % of the capacity, and the estimate within 2 %."""
    empty_since: Duration | None = None
    """Time from which a steady load drains credits with close bounds: from then until the last
    second, the time to exhaustion is within 10 %."""
    iowait: Literal["most", "little"] | None = None
    """The iowait of the machine that is attributed to the disk: more than half of it, or less than
    a twentieth of the time in which the disk was throttled."""

    def at(self, window_s: float | None, *, has_terms: bool) -> "Expectation":
        """Return the requirements at a limiter with a window; 0 for a leaky bucket."""
        if self.throttled != "by_window":
            return self
        if SHORT_S <= (window_s or 0.0) <= LONG_S:
            return msgspec.structs.replace(self, throttled="points")
        return msgspec.structs.replace(self, throttled="quarter" if has_terms else "unknown")


class PostgresqlServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server of PostgreSQL whose data is on the disk."""

    scale: int = 4
    """Scale of the tables of pgbench: 15 MB each."""
    settings: dict[str, str] = {}
    """Of postgresql.conf."""


class MariadbServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server of MariaDB whose data is on the disk."""

    rows: int = 100_000
    """Of the table of sysbench: 20 MB."""
    settings: dict[str, str] = {}
    """Variables of mariadbd."""


class RedisServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server of Redis whose append-only file is on the disk."""

    appendfsync: Literal["always", "everysec"]


class EtcdServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server of etcd whose data is on the disk."""


class RocksdbFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A database of RocksDB on the disk."""

    keys: int = 500_000
    """Of 116 bytes each, half of which are left by compression."""


class LabDisk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One disk of a scenario."""

    load: tuple[Phase, ...]
    disk: DiskModel = DiskModel()
    kind: Literal["served", "stacked", "cgroup"] = "served"
    """`served` by the lab; two stacked loop devices with a limit of the kernel on the lower one
    (`stacked`); or an unlimited disk below a limited control group (`cgroup`)."""
    cache: Literal["write back", "write through"] = "write back"
    """Write cache that the kernel assumes: behind `write through`, it sends no flushes."""
    file_system: Literal["ext4", "xfs"] | None = None
    """File system for `shell` and databases (default: none)."""
    postgresql: PostgresqlServer | None = None
    mariadb: MariadbServer | None = None
    redis: RedisServer | None = None
    etcd: EtcdServer | None = None
    rocksdb: RocksdbFiles | None = None
    iops: int | None = None
    """Limit of the kernel, for `stacked` and `cgroup`."""
    is_monitored: bool = True
    """Whether disksla monitors the disk; its load counts for the machine if not."""
    terms: str | dict[str, Any] | None = None
    """Terms of the disk in the configuration of disksla (default: none)."""
    sold_size: str | None = None
    """Size of the disk in the configuration, if the terms depend on it."""
    expect: Expectation = Expectation()


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the machine over all disks of a scenario."""

    limits: dict[str, Any]
    """In the configuration of disksla."""
    meters: tuple[Meter, ...] = ()
    """Of the limiter that the disks share (default: none, so there are only limits of disks)."""
    expect: Expectation = Expectation()
    """Of all disks together."""


class Recorders(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Recorders of one run, which start at random times of its first half."""

    count: int
    restarted: int = 0
    """Recorders of them that are restarted in the middle."""


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Disks that are loaded at the same time."""

    caption: str
    disks: tuple[LabDisk, ...]
    machine: Machine | None = None
    exact: bool = False
    """The requirements hold if data writes are counted exactly."""
    recorders: Recorders | None = None
    """Several recorders instead of one that runs all the time."""
    random: dict[str, Any] = {}
    """What its random numbers were chosen from (lab/template.py)."""

    def __post_init__(self) -> None:
        """Raise ValueError if a disk shares a limiter that the lab does not serve."""
        if self.machine is None or not self.machine.meters:
            return
        if any(disk.kind != "served" for disk in self.disks):
            raise ValueError("machine: meters: found a disk that is not served by the lab")

    @property
    def load_s(self) -> float:
        """Time from the start of the loads to the end of the last."""
        return max(sum(phase.seconds for phase in disk.load) for disk in self.disks)

    def lasting(self, seconds: float) -> "Scenario":
        """Return the scenario with another length of each phase."""
        disks = (
            msgspec.structs.replace(
                disk,
                load=tuple(
                    msgspec.structs.replace(phase, seconds=Duration(seconds))
                    for phase in disk.load
                ),
            )
            for disk in self.disks
        )
        return msgspec.structs.replace(self, disks=tuple(disks))

    def with_expectations_of(self, other: Self) -> Self:
        """Return the scenario with the expectations of another version of it."""
        disks = (
            msgspec.structs.replace(disk, expect=new.expect)
            for disk, new in zip(self.disks, other.disks, strict=True)
        )
        machine = self.machine
        if machine is not None and other.machine is not None:
            machine = msgspec.structs.replace(machine, expect=other.machine.expect)
        return msgspec.structs.replace(self, disks=tuple(disks), machine=machine)


_Kind = TypeVar("_Kind", bound=Scenario)


def drawn_text(path: Path, seed: int) -> str:
    """Return the text of a scenario with the random numbers of a seed."""
    return filled(path.stem, path.read_text(encoding="utf-8"), seed)


def read(path: Path, kind: type[_Kind], seed: int) -> _Kind:
    """Read a scenario of a kind; raises ValueError if it is invalid."""
    return msgspec.convert(yaml.safe_load(drawn_text(path, seed)), kind, dec_hook=decode)


def read_scenario(path: Path, seed: int = SEED) -> Scenario:
    """Read a scenario; raises ValueError if it is invalid."""
    return read(path, Scenario, seed)


def all_scenarios(home: Path = HERE) -> dict[str, Path]:
    """Return the files of all scenarios, by name."""
    return {path.stem: path for path in sorted(home.rglob("*.yml"))}
