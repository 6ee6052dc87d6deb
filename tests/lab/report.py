"""How near disksla came, as a document: docs/accuracy.md."""

import platform
from collections.abc import Iterable

from lab.scenario import Scenario
from lab.table import cells
from lab.verdict import Verdict

_INTRODUCTION = """# Accuracy

What disksla said of disks whose truth is known. Each was a real block device, really loaded by fio
or dd: a loop device on a file that is served by a process with exact token buckets (`tests/lab/`),
which writes down for every 100 ms how many requests it held, for how long, and why. There,
`disksla record` watched it as it would any other disk, and what is said of that recording is held
here against the log.

Throttled, in truth, is a window at whose close the limiter held at least one request; where tokens
drip instead of coming once per window, one in which it held for at least half of the time. `onset`
and `end` are the longest times from the moment at which holding began or ended to the end of the
window that says so. `ceiling` and `wait` are the errors of the observed ceiling and of the waiting
that throttling added. Credits, shares and times to `below` are required as the scenarios say, in
`tests/lab/scenarios/`; `pass` is all that a scenario requires.

This table was written by

    make lab ARGS='--report docs/accuracy.md'

as root, where /dev/fuse and loop devices are, in about ten minutes; on Linux {kernel}. A short
selection of it is part of `make check`.

| scenario | what | throttled s | said s | onset s | end s | ceiling | wait | |
|:--|:--|--:|--:|--:|--:|--:|--:|:--|
"""


def report(judged: Iterable[tuple[Scenario, Verdict]]) -> str:
    """Give the whole document."""
    introduction = _INTRODUCTION.format(kernel=platform.release().partition("-")[0])
    return introduction + "".join(
        f"| {' | '.join((verdict.name, scenario.caption, *cells(verdict)))} |\n"
        for scenario, verdict in judged
    )
