"""The result of one check: what was found, what is expected, and the command that fixes it."""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Literal, NamedTuple, get_args

import msgspec

Status = Literal["ok", "note", "wrong"]
"""ok: as it must be. note: works, but less is known or done than could be. wrong: to be fixed."""
STATUSES: tuple[Status, ...] = get_args(Status)

GROUPS = ("kernel", "disks", "provider", "configuration", "state", "measuring", "clock", "daemon")
"""The first part of the id of a check, in the order in which they are shown."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check. The keys are those of `--json`."""

    check: str
    """Stable id, `GROUP.NAME`."""
    subject: str | None = None
    """The disk, the file or the part that was checked; None for the machine."""
    status: Status
    found: str
    expected: str | None = None
    """None if it is as expected."""
    fix: str | None = None
    """A command, or a line of the configuration; None if there is nothing to do."""

    @property
    def group(self) -> str:
        """The group of the check."""
        return self.check.partition(".")[0]


class Check(NamedTuple):
    """A check of a disk, a file, a part or the machine."""

    id: str
    subject: str | None = None

    def ok(self, found: str) -> CheckResult:
        """Return a result that needs no attention."""
        return self._result("ok", found)

    def note(self, found: str, *, expected: str, fix: str | None = None) -> CheckResult:
        """Return a result that may be as it is wanted."""
        return self._result("note", found, expected, fix)

    def wrong(self, found: str, *, expected: str, fix: str) -> CheckResult:
        """Return a result that must be fixed."""
        return self._result("wrong", found, expected, fix)

    def _result(
        self, status: Status, found: str, expected: str | None = None, fix: str | None = None
    ) -> CheckResult:
        about = {"check": self.id, "subject": self.subject, "status": status, "found": found}
        return msgspec.convert(about | {"expected": expected, "fix": fix}, CheckResult)


def worst(results: Iterable[CheckResult]) -> Status:
    """Return the worst status of some results; ok for none."""
    return max((each.status for each in results), key=STATUSES.index, default="ok")


def counts(results: Iterable[CheckResult]) -> dict[Status, int]:
    """Return how many results have each status."""
    found = Counter(each.status for each in results)
    return {status: found[status] for status in STATUSES}


def in_groups(results: Iterable[CheckResult]) -> list[tuple[str, list[CheckResult]]]:
    """Return the results by group, the worst last: the end of the output is what is seen.

    Within a group, too, the worst are last.
    """
    ordered = sorted(
        results, key=lambda each: (GROUPS.index(each.group), STATUSES.index(each.status))
    )
    groups = [(name, list(part)) for name, part in groupby(ordered, lambda each: each.group)]
    return sorted(groups, key=lambda group: STATUSES.index(worst(group[1])))
