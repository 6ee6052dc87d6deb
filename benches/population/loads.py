"""The programs that use a simulated disk."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from population.events import FLUSH, READ, WRITE

KIB = 1024
MOST_WAITING = 1023
"""Requests in flight above which an open loop sends no more, as the kernel's queue is full."""


class Disk(Protocol):
    """What a program can do: send a request, and sleep."""

    chance: Random

    @property
    def now_s(self) -> float: ...
    @property
    def inflight(self) -> int: ...
    def at(self, at_s: float, act: Callable[[None], None]) -> None: ...
    def send(self, kind: int, size_bytes: int, done: Callable[[], None]) -> None: ...


class Load(Protocol):
    """Parameters of a program."""

    def start(self, disk: Disk, end_s: float) -> None:
        """Start the program now; it ends at that time."""


@dataclass(frozen=True)
class Span:
    """A load between two times of the simulation."""

    load: Load
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Requests:
    """What the requests of a program are."""

    write_ratio: float = 0.0
    bytes: int = 4 * KIB
    written_bytes: int | None = None
    """Of a write, if it differs."""

    def send(self, disk: Disk, done: Callable[[], None]) -> None:
        """Send the next."""
        kind = self.kind(disk.chance)
        size = self.bytes if kind == READ or self.written_bytes is None else self.written_bytes
        disk.send(kind, size, done)

    def kind(self, chance: Random) -> int:
        """Return READ or WRITE, at random."""
        if self.write_ratio in {0.0, 1.0}:
            return WRITE if self.write_ratio else READ
        return WRITE if chance.random() < self.write_ratio else READ


@dataclass(frozen=True)
class Closed:
    """So many threads, each with one request at a time."""

    depth: int
    requests: Requests
    think_s: float = 0.0
    """Mean time from a completion to the next request; exponential."""
    flush_every: int = 0
    """Requests after which a thread calls fdatasync; 0 is never."""
    thinks_evenly: bool = False
    """The time between is always the same."""

    def start(self, disk: Disk, end_s: float) -> None:
        """Start the threads."""
        for _ in range(self.depth):
            _Thread(self, disk, end_s).send()


class _Thread:
    __slots__ = ("_disk", "_end_s", "_load", "_sent")

    def __init__(self, load: Closed, disk: Disk, end_s: float) -> None:
        self._load = load
        self._disk = disk
        self._end_s = end_s
        self._sent = 0

    def send(self, _: None = None) -> None:
        """Send the next request, or end."""
        disk, load = self._disk, self._load
        if disk.now_s >= self._end_s:
            return
        if load.flush_every and self._sent == load.flush_every:
            self._sent = 0
            disk.send(FLUSH, 0, self._next)
        else:
            self._sent += 1
            load.requests.send(disk, self._next)

    def _next(self) -> None:
        think_s, disk = self._load.think_s, self._disk
        if think_s:
            if not self._load.thinks_evenly:
                think_s = disk.chance.expovariate(1 / think_s)
            disk.at(disk.now_s + think_s, self.send)
        else:
            self.send()


@dataclass(frozen=True)
class Open:
    """Requests that do not wait for others (Poisson); the kernel's queue bounds them."""

    per_second: float
    requests: Requests
    flush_ratio: float = 0.0
    """Share of the requests that are followed by a flush."""
    is_even: bool = False
    """They come at even times instead, from the start on."""

    def start(self, disk: Disk, end_s: float) -> None:
        """Start to send."""
        chance, start_s, number = disk.chance, disk.now_s, 0

        def completed() -> None:
            if self.flush_ratio and chance.random() < self.flush_ratio:
                disk.send(FLUSH, 0, _nothing)

        def next_s() -> float:
            if self.is_even:
                return start_s + number / self.per_second
            return disk.now_s + chance.expovariate(self.per_second)

        def arrive(_: None = None) -> None:
            nonlocal number
            if disk.now_s >= end_s:
                return
            if disk.inflight < MOST_WAITING:
                self.requests.send(disk, completed)
            number += 1
            disk.at(next_s(), arrive)

        disk.at(next_s(), arrive)


@dataclass(frozen=True)
class Timer:
    """A program that sends a batch at once, every so often."""

    period_s: float
    batch: int
    requests: Requests
    jitter_s: float = 0.0001

    def start(self, disk: Disk, end_s: float) -> None:
        """Start the timer."""
        start_s, number = disk.now_s, 0

        def wake(_: None = None) -> None:
            nonlocal number
            if disk.now_s >= end_s:
                return
            for _request in range(min(self.batch, MOST_WAITING - disk.inflight)):
                self.requests.send(disk, _nothing)
            number += 1
            late_s = disk.chance.expovariate(1 / self.jitter_s)
            disk.at(start_s + number * self.period_s + late_s, wake)

        wake()


@dataclass(frozen=True)
class Commits:
    """A database with group commit, as PostgreSQL: one leader writes and flushes for all.

    Each client computes, perhaps reads, and commits. Those that commit while a group is written
    are the next group.
    """

    clients: int
    compute_s: float
    """Mean; exponential."""
    read_ratio: float = 0.0
    """Share of transactions that read a page before."""
    page_bytes: int = 8 * KIB
    transaction_bytes: int = 500
    """Bytes of the log of one transaction; a group writes whole pages."""

    def start(self, disk: Disk, end_s: float) -> None:
        """Start the clients."""
        database = _Database(self, disk, end_s)
        for _ in range(self.clients):
            database.compute()


class _Database:
    def __init__(self, load: Commits, disk: Disk, end_s: float) -> None:
        self._load = load
        self._disk = disk
        self._end_s = end_s
        self._committing = 0
        """Clients of the group that is being written."""
        self._next_group = 0

    def compute(self) -> None:
        """Start the next transaction of a client."""
        compute_s = self._disk.chance.expovariate(1 / self._load.compute_s)
        self._disk.at(self._disk.now_s + compute_s, self._computed)

    def _computed(self, _: None) -> None:
        if self._disk.now_s >= self._end_s:
            return
        if self._disk.chance.random() < self._load.read_ratio:
            self._disk.send(READ, self._load.page_bytes, self._commit)
        else:
            self._commit()

    def _commit(self) -> None:
        self._next_group += 1
        if not self._committing:
            self._lead()

    def _lead(self) -> None:
        self._committing, self._next_group = self._next_group, 0
        page_bytes = self._load.page_bytes
        pages = 1 + self._committing * self._load.transaction_bytes // page_bytes
        self._disk.send(WRITE, pages * page_bytes, self._written)

    def _written(self) -> None:
        self._disk.send(FLUSH, 0, self._flushed)

    def _flushed(self) -> None:
        finished, self._committing = self._committing, 0
        for _ in range(finished):
            self.compute()
        if self._next_group:
            self._lead()


def _nothing() -> None:
    """Nothing waits for the request."""
