"""Finds the control groups of the machine, and which of them together have all I/O once.

It knows their names by their ids.
"""

import os
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from disksla.base.operating_system.machine import Roots
from disksla.kernel.consumers.names import consumer_of, pod_names_of

MOST_SCANNED = 20_000
"""Groups of a scan; of more, those that are further down are named by the group above."""
LEAST_S = 1.0
LARGEST_SHARE = 0.02
"""Scans take at most this share of a CPU: with ten thousand groups, one takes half a second."""
REMEMBERED_S = 3600.0
_MOST_ENDED = 10_000
_SHARES = 10  # each user may add a tenth of them
_Found = tuple[int, int, str, int]
"""Id of a group, id of the group above, path, and user id of its owner."""
_CONTAINER_LOGS = Path("var") / "log" / "containers"
_OFF = (
    "the controller io of the control groups is off; IOAccounting=yes in one unit of systemd"
    " switches it on for all"
)


class Group(NamedTuple):
    """A control group."""

    id: int  # the inode of its directory, which no later group has
    parent: int  # id of the group above; 0 for the root
    path: str  # from the root, which has the empty path
    has_io: bool  # whether it has `io.stat`
    depth: int | None = None
    """How many parts of the path root named, if another user owns the last of them: that one
    named, and may add, all that is below."""

    @property
    def is_added(self) -> bool:
        """Whether a user other than root may have added it."""
        return self.depth is not None and self.path.count("/") > self.depth


class GroupTree:
    """The groups of one scan; they may have ended since."""

    def __init__(self, groups: Mapping[int, Group]) -> None:
        """Index the groups by what is above them."""
        self.groups = groups
        self._children: defaultdict[int, list[Group]] = defaultdict(list)
        for group in groups.values():
            self._children[group.parent].append(group)
        self.root = next((group for group in self._children[0]), None)

    def with_io(self, above: int) -> list[Group]:
        """Return the groups right below another that have `io.stat`."""
        return [group for group in self._children.get(above, ()) if group.has_io]

    @property
    def tops(self) -> list[Group]:
        """The groups below the root: together, they have all that is not of the kernel."""
        return [] if self.root is None else self.with_io(self.root.id)

    def leaves(self, most: int) -> list[Group]:
        """Return the groups below which no other has `io.stat`, at most so many.

        A group includes those below it, also those that have ended. Where there would be too many,
        the group above stands for all of them. Groups right below the root are never left out.
        Those that users added come last, so that they take no place of others.
        """
        leaves: list[Group] = []
        waiting, added = deque(self.tops), deque[Group]()
        while waiting or added:
            group = (waiting or added).popleft()
            below = self.with_io(group.id)
            if below and len(leaves) + len(waiting) + len(added) + len(below) <= most:
                (added if below[0].is_added else waiting).extend(below)
            else:
                leaves.append(group)
        return leaves

    def above(self, group: Group) -> list[Group]:
        """Return the groups above another, without the root."""
        chain = []
        while (parent := self.groups.get(group.parent)) is not None and parent.parent:
            chain.append(parent)
            group = parent
        return chain


class Hierarchy(NamedTuple):
    """Where the groups are, or why they cannot say who uses a disk."""

    root: Path | None
    why_not: str | None = None
    sampled: Path | None = None
    """Where the groups of samples are, if not there: the hierarchy perf_event of cgroup v1."""


def find_hierarchy(sysfs: Path) -> Hierarchy:
    """Return the hierarchy that has the controller `io`, and that of samples."""
    top = sysfs / "fs" / "cgroup"
    sampled = top / "perf_event"
    found = _with_io(top)
    is_apart = (sampled / "release_agent").exists()  # only at the root, and on cgroup v1
    return found._replace(sampled=sampled if is_apart else None)


def _with_io(top: Path) -> Hierarchy:
    for root in (top, top / "unified"):
        controllers = _read_words(root / "cgroup.controllers")
        if controllers is None:
            continue
        if (root / "cgroup.type").exists():  # the root of all groups has none
            why = f"{root} has the groups of a container only; mount that of the host there"
            return Hierarchy(None, why)
        if "io" in controllers:
            is_on = "io" in (_read_words(root / "cgroup.subtree_control") or ())
            return Hierarchy(root, None if is_on else _OFF)
    if not top.exists():
        return Hierarchy(None, f"there are no control groups at {top}")
    if (top / "blkio").exists():
        hybrid = " (hybrid)" if (top / "unified").exists() else ""
        why = f"the machine has cgroup v1{hybrid}, which does not count it; boot with"
        return Hierarchy(None, f"{why} systemd.unified_cgroup_hierarchy=1")
    return Hierarchy(None, f"the control groups at {top} have no controller io")


def _read_words(path: Path) -> list[str] | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return None


class Groups:
    """The groups of this machine. One thread scans; others may ask for names."""

    def __init__(self, roots: Roots, now: Callable[[], float] = time.monotonic) -> None:
        """Read nothing before `scan`."""
        self._logs = roots.rootfs / _CONTAINER_LOGS
        self._now = now
        self._next_s = 0.0
        self._names: dict[int, str] = {}
        self._ended: dict[int, tuple[str, float]] = {}
        """Names of groups that are no longer there, with the time of the scan that missed them."""
        self.tree = GroupTree({})  # the groups of the last scan

    def name_of(self, group: int) -> str | None:
        """Return the consumer with the id of a group; None if it was never seen."""
        name = self._names.get(group)
        return name if name is not None else self._ended.get(group, (None, 0.0))[0]

    def scan(self, root: Path) -> bool:
        """Scan the groups, unless the last scan was too short ago; return whether it was done.

        Raise OSError if the root cannot be read.
        """
        begin_s = self._now()
        if begin_s < self._next_s:
            return False
        tree = GroupTree(_scan(root))
        pod_names = pod_names_of(self._log_files())
        names = {
            group.id: consumer_of(group.path, pod_names, group.depth)
            for group in tree.groups.values()
        }
        end_s = self._now()
        self._ended = self._still_remembered(names, end_s)
        self.tree, self._names = tree, names
        self._next_s = end_s + max(LEAST_S, (end_s - begin_s) / LARGEST_SHARE)
        return True

    def _log_files(self) -> list[str]:
        try:
            return [path.name for path in self._logs.iterdir()]
        except OSError:
            return []  # no kubelet

    def _still_remembered(
        self, names: dict[int, str], now_s: float
    ) -> dict[int, tuple[str, float]]:
        gone = {group: (name, now_s) for group, name in self._names.items() if group not in names}
        kept = {
            group: (name, at_s)
            for group, (name, at_s) in (self._ended | gone).items()
            if now_s - at_s < REMEMBERED_S
        }
        return dict(list(kept.items())[-_MOST_ENDED:])


def _scan(root: Path) -> dict[int, Group]:
    """Return the groups by id, those near the root first, and those that users added last."""
    found = root.stat()
    groups: dict[int, Group] = {}
    waiting, added = deque([(found.st_ino, 0, "", found.st_uid)]), deque[_Found]()
    depths: dict[int, int | None] = {0: None}
    of_users: Counter[int] = Counter()
    while waiting or added:
        number, parent, path, user = (waiting or added).popleft()
        try:
            below, has_io = _directories(f"{root}{path}", path, number)
        except OSError:
            if not path:
                raise
            continue  # it has ended
        depth = depths.get(parent)
        if depth is None and user != found.st_uid:
            depth = path.count("/")
        depths[number] = depth
        groups[number] = Group(number, parent, path, has_io, depth)
        if len(groups) + len(waiting) + len(added) + len(below) > MOST_SCANNED:
            continue  # the group stands for those below it
        if depth is None:
            waiting += below
        elif of_users[user] + len(below) <= MOST_SCANNED // _SHARES:
            of_users[user] += len(below)
            added += below
    return groups


def _directories(directory: str, path: str, number: int) -> tuple[list[_Found], bool]:
    """Return the groups below one, and whether that has `io.stat`. Raise OSError."""
    below, has_io = [], False
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found = entry.stat(follow_symlinks=False)
                below.append((found.st_ino, number, f"{path}/{entry.name}", found.st_uid))
            elif entry.name == "io.stat":
                has_io = True
    return below, has_io
