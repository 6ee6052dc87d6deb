"""Reads `io.stat` of the control groups while a disk is throttled or busy; needs no privilege."""

import errno
import logging
import os
import resource
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from disksla.base.counts import Counts
from disksla.base.operating_system import SourceHealth
from disksla.base.operating_system.log import fields, traceback_of
from disksla.base.operating_system.machine import Roots
from disksla.kernel.consumers import sharing
from disksla.kernel.consumers.consumption import (
    KERNEL,
    ConsumerReading,
    Consumption,
    WatchedDisk,
    parse_io_max,
    parse_io_stat,
)
from disksla.kernel.consumers.groups import Group, Groups, GroupTree, Hierarchy, find_hierarchy

_MAX_BYTES = 65536
_ENDED = {errno.ENOENT, errno.ENODEV}
"""Of a group that has ended; the second while the kernel removes it (once in a million, 6.18)."""


class IoStatFiles:
    """`io.stat` of groups, kept open: a file stays that of its group, whatever gets its path."""

    def __init__(self) -> None:
        """Open nothing."""
        self._descriptors: dict[int, int] = {}
        self._last: dict[int, tuple[bytes, dict[str, Counts]]] = {}
        """The last texts, and what they say: most groups do nothing, and are not parsed again."""

    def open(self, root: Path, groups: Mapping[int, Group]) -> None:
        """Open the files of these groups, by id, and close those of others."""
        for group in self._descriptors.keys() - groups.keys():
            self._close(group)
        for group in groups.keys() - self._descriptors.keys():
            descriptor = _open(f"{root}{groups[group].path}", group)
            if descriptor is not None:
                self._descriptors[group] = descriptor

    def read(self) -> tuple[dict[int, dict[str, Counts]], str | None]:
        """Return what groups did, without those that have ended, and a text that is another."""
        counted, problem = {}, None
        for group, descriptor in [*self._descriptors.items()]:
            try:
                text = os.pread(descriptor, _MAX_BYTES, 0)
                if group not in self._last or self._last[group][0] != text:
                    self._last[group] = text, parse_io_stat(text.decode(errors="replace"))
                counted[group] = self._last[group][1]
            except OSError:
                self._close(group)
            except ValueError as error:
                problem = f"io.stat of a control group: {error}"
        return counted, problem

    def _close(self, group: int) -> None:
        os.close(self._descriptors.pop(group))
        self._last.pop(group, None)

    def close(self) -> None:
        """Close all files."""
        self.open(Path("/"), {})


def _open(directory: str, group: int) -> int | None:
    """Open `io.stat` of a group; None if the group has ended, and another may have its path."""
    try:
        above = os.open(directory, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            if os.fstat(above).st_ino != group:
                return None
            return os.open("io.stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=above)
        finally:
            os.close(above)
    except OSError as error:
        if error.errno in _ENDED:
            return None
        raise


WATCHED_AFTER_S = 60.0
"""A disk is watched for this time after it was busy, also where it has no I/O between."""
MOST_READ = 2000  # groups whose `io.stat` is read
_DESCRIPTOR_SHARE = 0.25
"""Largest share of the descriptors of this process that these files may use."""
_SCAN_EVERY_S = 10.0
_SCAN_IDLE_S = 60.0
_MOST_UNATTRIBUTED = 0.05
"""With a larger share, groups are scanned at once: new ones are not known yet."""

log = logging.getLogger("disksla.consumers")


class _Reading(NamedTuple):
    """One reading of all groups."""

    at_s: float
    counted: sharing.Counted
    disks: Mapping[str, WatchedDisk]  # the busy disks, by name


class IoStatReader:
    """Posts what consumers used of the disks between two readings."""

    def __init__(
        self,
        roots: Roots,
        post: Callable[[ConsumerReading], None],
        watched: Callable[[], Iterable[WatchedDisk]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to read; `watched` returns the monitored disks that have I/O now."""
        self.groups = Groups(roots, now)
        self._sampled = Groups(roots, now)  # those of samples, where they are in another hierarchy
        self.are_names_wanted = False
        """Whether groups are found although the controller `io` is off: samples have their ids."""
        self._sysfs = roots.sysfs
        self._post = post
        self._watched = watched
        self._now = now
        self._files = IoStatFiles()
        self._hierarchy: Hierarchy | None = None
        self._roles = sharing.Roles(0, (), {})
        self._limited: dict[int, sharing.Limited] = {}
        self._own_limits = sharing.OwnLimits()
        self._with_io: dict[str, tuple[WatchedDisk, float]] = {}
        """Each disk that had I/O lately, and when it had it last."""
        self._busy_s: dict[str, float] = {}  # when each disk was busy last
        self._before: _Reading | None = None
        self._debts: dict[str, sharing.Growth] = {}
        self._root: Path | None = None
        self._to_open: dict[int, Group] = {}
        self._scanned_s = -_SCAN_IDLE_S
        self._merged = 0  # groups that stand for those below them, because there are too many
        self._errors = 0
        self._problem: str | None = None

    @property
    def health(self) -> SourceHealth | None:
        """How the reading is; None where there was nothing to read."""
        is_absent = self._hierarchy is None or self._hierarchy.why_not
        if is_absent and not self._errors:
            return None
        return SourceHealth("consumers", self._errors, self._problem is None, self._problem)

    @property
    def is_reading(self) -> bool:
        """Whether there are groups with the controller `io`."""
        return self._root is not None

    def limited(self) -> set[str]:
        """Return the disks at which a group that is read has a limit of its own.

        Samples do not say who uses them: the kernel sends requests of such a group itself when
        their turn comes (71 % of those of eight writers, 10 % of one, measured on Linux 6.18).
        """
        if self._root is None:
            return set()
        numbers = {number for each in self._limited.values() for number in each.limits}
        return {device for device, (disk, _) in self._with_io.items() if disk.number in numbers}

    def name_of(self, group: int) -> str | None:
        """Return the consumer of a group that samples name; None if it is not known.

        The root of cgroup v1 has no name: all units of systemd are there, not only the kernel.
        """
        if self._hierarchy is None or self._hierarchy.sampled is None:
            return self.groups.name_of(group)
        name = self._sampled.name_of(group)
        return "" if name == KERNEL else name

    def scan_soon(self) -> None:
        """Find the groups anew at the next reading: one that is not known uses a disk."""
        self._scanned_s = -_SCAN_IDLE_S

    def read(self) -> None:
        """Read once, and post what is new; a failure is counted, and logged once."""
        traceback = None
        try:
            problem = self._read(self._now())
        except Exception as error:  # noqa: BLE001 -- also one by a bug: the thread must go on
            problem, traceback = str(error), traceback_of(error)
            self.close()
        if problem is not None:
            self._errors += 1
            if problem != self._problem:
                log.warning(
                    "cannot read control groups", extra=fields(err=problem), exc_info=traceback
                )
        elif self._problem is not None:
            log.info("control groups readable again")
        self._problem = problem

    def _read(self, now_s: float) -> str | None:
        """Return what could not be parsed, if anything. Raise OSError."""
        disks = self._lately(now_s)
        busy = {disk.device: disk for disk in disks if disk.device in self._busy_s}
        if disks:
            self._scan(now_s, is_busy=bool(busy))
        if self._root is None or not (busy or self.limited()):
            self.close()
            return None
        self._files.open(self._root, self._to_open)
        counted, problem = self._files.read()
        reading, before = _Reading(now_s, counted, busy), self._before
        roles, self._before = self._roles, reading
        self._roles = roles._replace(made_since=frozenset())
        devices = {disk.number: disk.device for disk in disks}
        held = self._own_limits.after(now_s, counted, self._limited, devices)
        both = [] if before is None else [device for device in busy if device in before.disks]
        if before is not None and (both or held):
            found = [self._shares(device, before, reading, roles) for device in both]
            watched = dict.fromkeys(both, (before.at_s, now_s))
            self._post(ConsumerReading(watched, tuple(chain.from_iterable(found)), held))
        return problem

    def _lately(self, now_s: float) -> list[WatchedDisk]:
        """Return the disks that have I/O or had it lately, and keep when they were busy."""
        for disk in self._watched():
            self._with_io[disk.device] = disk, now_s
            if disk.is_busy:
                self._busy_s[disk.device] = now_s
        since_s = now_s - WATCHED_AFTER_S
        self._busy_s = {key: at_s for key, at_s in self._busy_s.items() if at_s > since_s}
        self._with_io = {key: each for key, each in self._with_io.items() if each[1] > since_s}
        return [disk for disk, _ in self._with_io.values()]

    def _shares(
        self, device: str, before: _Reading, after: _Reading, roles: sharing.Roles
    ) -> list[Consumption]:
        """Return what consumers used of a disk between two readings."""
        disk = after.disks[device]
        growth = sharing.growth_at(before.counted, after.counted, roles, disk.number)
        with_requests = sharing.counts_requests(disk, before.disks[device], growth)
        growth, self._debts[device] = sharing.with_debt(growth, self._debts.get(device))
        if growth.unattributed.bytes > _MOST_UNATTRIBUTED * growth.of_groups.bytes:
            self.scan_soon()
        return sharing.consumptions(device, growth, with_requests=with_requests)

    def _scan(self, now_s: float, *, is_busy: bool) -> None:
        """Find the groups, unless they were found lately. Raise OSError."""
        if now_s < self._scanned_s + (_SCAN_EVERY_S if is_busy else _SCAN_IDLE_S):
            return
        hierarchy = find_hierarchy(self._sysfs)
        if self.are_names_wanted and hierarchy.sampled is not None:
            self._sampled.scan(hierarchy.sampled)
        known = self.groups.tree
        root = hierarchy.root if self.are_names_wanted or not hierarchy.why_not else None
        if root is not None and not self.groups.scan(root):
            return
        self._scanned_s = now_s
        why_not = hierarchy.why_not or _too_many(self.groups.tree)
        if why_not != (self._hierarchy and self._hierarchy.why_not):
            self._post(ConsumerReading(why_not=why_not or ""))
            message = "consumers of disks are not known" if why_not else "consumers of disks known"
            log.info(message, extra=fields(err=why_not))
        self._hierarchy = hierarchy._replace(why_not=why_not)
        self._root = None if why_not else hierarchy.root
        if self._root is not None:
            self._found(self._root, self.groups.tree, known)

    def _found(self, root: Path, tree: GroupTree, known: GroupTree) -> None:
        """Keep which groups are to be read; `known` are those of the scan before."""
        if tree.root is None:
            return
        leaves = tree.leaves(min(MOST_READ, _most_open()))
        self._say_if_merged(sum(map(bool, (tree.with_io(leaf.id) for leaf in leaves))))
        inner = {group.id: group for leaf in leaves for group in tree.above(leaf)}
        self._limited = self._with_limits(root, [*leaves, *inner.values()])
        made = (
            leaf.id
            for leaf in leaves
            if leaf.id not in known.groups and known.with_io(leaf.parent)
        )
        self._roles = sharing.Roles(
            root=tree.root.id,
            tops=tuple(group.id for group in tree.tops),
            leaves={leaf.id: self._name(leaf) for leaf in leaves},
            made_since=self._roles.made_since.union(made),
        )
        limited = [tree.groups[group] for group in self._limited]
        self._to_open = {group.id: group for group in (tree.root, *tree.tops, *leaves, *limited)}

    def _say_if_merged(self, merged: int) -> None:
        """Log once that there are too many groups to read all of them."""
        if merged and not self._merged:
            log.warning("too many control groups", extra=fields(most=MOST_READ, merged=merged))
        self._merged = merged

    def _name(self, group: Group) -> str:
        return self.groups.name_of(group.id) or group.path

    def _with_limits(self, root: Path, groups: Iterable[Group]) -> dict[int, sharing.Limited]:
        """Return those of the groups that have limits of their own."""
        limited = {}
        for group in groups:
            try:
                with open(f"{root}{group.path}/io.max", encoding="utf-8") as file:  # noqa: PTH123
                    limits = parse_io_max(file.read())
            except (OSError, ValueError):
                continue  # it has ended, or has no such file
            if limits:
                limited[group.id] = sharing.Limited(self._name(group), limits)
        return limited

    def close(self) -> None:
        """Close all files; the next reading has none before it."""
        self._files.close()
        self._own_limits.clear()
        self._before, self._debts = None, {}


def _too_many(tree: GroupTree) -> str | None:
    """Return that not all groups below the root can be read, without which nothing is known."""
    tops, most = len(tree.tops), _most_open()
    why = f"found {tops} control groups below the root; expected at most {most}; raise LimitNOFILE"
    return why if tops > most else None


def _most_open() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return int(_DESCRIPTOR_SHARE * soft)
