"""The control groups of a scan, and which of them together have all I/O once."""

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import NamedTuple


class Group(NamedTuple):
    """A control group."""

    id: int
    """The inode of its directory, which no later group has."""
    parent: int
    """Id of the group above; 0 for the root."""
    path: str
    """From the root, which has the empty path."""
    has_io: bool
    """Whether it has `io.stat`."""
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
