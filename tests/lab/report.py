"""How near disksla came, as a document: docs/accuracy.md."""

import platform
from collections.abc import Iterable

from lab.scenario import Scenario
from lab.table import cells, more_cells
from lab.verdict import Verdict

_INTRODUCTION = """# Accuracy

What disksla said of disks whose truth is known. Each was a real block device, really loaded by fio
or dd: a loop device on a file that is served by a process with exact token buckets (`tests/lab/`),
which writes down for every 100 ms how many requests it held, for how long, and why. There,
`disksla record` watched it as it would any other disk, and what is said of that recording is held
here against the log.

Throttled, in truth, is a window at whose close the limiter held at least one request; where tokens
drip instead of coming once per window, one in which it held for at least half of the time. What is
required of each disk stands in `tests/lab/scenarios/`, and `pass` is all of that.

- `onset` and `end` are the longest times from the moment at which holding began or ended to the
  end of the window that says so; `ceiling` and `wait` the errors of the observed ceiling and of
  the waiting that throttling added; `share` that of the throttled share of the time under load.
  The aim for Poisson arrivals is 5 %, and 10 % is required.
- `bounds` is how far apart the bounds of credits are in the end and `estimate` the error of the
  estimate between them, as shares of the capacity; the bounds contain the truth at every tick.
  `empty` is the worst error of the time to exhaustion while a steady load drains them.
- `iowait s` is what is laid to the disk of what all CPUs were in iowait.

Waiting is what requests take beyond the disk's own service time, which is learned while nothing
waits; without any light load before, all that they take counts. It is not required where the disk
of the lab is itself not much faster than its limit (300 MB/s, 20 000 IOPS): there, requests queue
for the disk as well, and how long they would have without the limit no guest can see.

This table was written by

    make lab ARGS='--report docs/accuracy.md'

as root, where /dev/fuse and loop devices are, in about ten minutes; on Linux {kernel}. A short
selection of it is part of `make check`.

{heads}
|:--|:--|{right}:--|
"""
_HEADS = (
    *("scenario", "what", "throttled s", "said s", "onset s", "end s", "ceiling", "wait"),
    *("share", "bounds", "estimate", "empty", "iowait s", ""),
)


def report(judged: Iterable[tuple[Scenario, Verdict]]) -> str:
    """Give the whole document."""
    introduction = _INTRODUCTION.format(
        kernel=platform.release().partition("-")[0],
        heads=f"| {' | '.join(_HEADS)} |",
        right="--:|" * (len(_HEADS) - 3),
    )
    lines = []
    for scenario, verdict in judged:
        *told, passed = cells(verdict)
        row = (verdict.name, scenario.caption, *told, *more_cells(verdict), passed)
        lines.append(f"| {' | '.join(row)} |\n")
    return introduction + "".join(lines)
