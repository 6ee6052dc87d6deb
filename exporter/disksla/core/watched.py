"""One disk under our eyes, from sample to sample."""

import msgspec

from disksla.core.disk import Disk
from disksla.core.diskstats import (
    Counters,
    Line,
    MalformedLine,
    Reading,
    difference,
    fell,
    named,
    parse_line,
    unwrapped,
)
from disksla.core.interval import GapReason, interval_of
from disksla.core.tally import Assessed, Tally
from disksla.core.view import Assignment

_LISTED = True


class Watched(msgspec.Struct, frozen=True, gc=False):
    """What is known of one disk."""

    disk: Disk
    assignment: Assignment
    reading: Reading | None = None
    """Its counters when they were last read."""
    origin: Reading | None = None
    """Where they would have started, had they never wrapped or started over."""
    is_listed: bool = False
    """Its line was there, and could be read, at the last sample."""
    inflight: int = 0
    """Requests in flight at the last sample."""
    tally: Tally = Tally()

    @property
    def totals(self) -> Counters | None:
        """What the counters rose by since the disk was first seen; None before that."""
        if self.reading is None or self.origin is None:
            return None
        return named(difference(self.reading, self.origin))


class Moment(msgspec.Struct, frozen=True, gc=False):
    """What one sample is to all disks."""

    now_s: float
    """Monotonic time."""
    elapsed_s: float
    """Since the sample before; 0 if the time between cannot be judged."""
    before: Assessed
    """Time judged up to the sample before."""
    after: Assessed
    """Time judged including this sample."""


class Sighting(msgspec.Struct, frozen=True, gc=False):
    """One disk after one sample."""

    watched: Watched
    awake: bool
    """It did something, or has something in flight, or needs another look."""
    gap: GapReason | None = None
    trouble: str | None = None
    """What is wrong with its line."""


def see(
    watched: Watched, lines: list[str], inflight: tuple[int, int] | None, moment: Moment
) -> Sighting:
    """Take one sample of a disk.

    `lines` are its own line of /proc/diskstats and those of its partitions; `inflight` its reads
    and writes in flight by sysfs, if that was read.
    """
    if not lines:
        return _unseen(watched, moment, "vanished")
    try:
        line = parse_line(lines[0])
        in_flight = sum(inflight) if inflight is not None else _hinted_inflight(line, lines[1:])
    except MalformedLine as malformed:
        return _unseen(watched, moment, "malformed", str(malformed))
    disk, assignment, tally = watched.disk, watched.assignment, watched.tally
    before, origin, reading = watched.reading, watched.origin, line.reading
    if before is None or origin is None:
        tally = msgspec.structs.replace(tally, settled_at=moment.after)
        first = Watched(disk, assignment, reading, reading, _LISTED, in_flight, tally)
        return Sighting(first, awake=in_flight > 0)
    if fell(before, reading):
        unwrapped_before = unwrapped(before, reading)
        if unwrapped_before is None:
            tally = msgspec.structs.replace(tally, settled_at=moment.after)
            origin = difference(reading, _fitted(difference(before, origin), reading))
            anew = Watched(disk, assignment, reading, origin, _LISTED, in_flight, tally)
            return Sighting(anew, awake=True, gap="reset")
        origin = difference(origin, difference(before, unwrapped_before))
        before = unwrapped_before
    if watched.is_listed and tally.settled_at.windows != moment.before.windows:
        tally = tally.settled(moment.before, moment.now_s)
    elapsed_s = moment.elapsed_s if watched.is_listed else 0.0
    interval = interval_of(moment.now_s, elapsed_s, before, reading, in_flight)
    tally = tally.plus(interval, assignment.limits.promise_charges, moment.after)
    seen = Watched(disk, assignment, reading, origin, _LISTED, in_flight, tally)
    return Sighting(seen, awake=in_flight > 0 or reading != before)


def _unseen(
    watched: Watched, moment: Moment, gap: GapReason, trouble: str | None = None
) -> Sighting:
    """Keep what was counted; nothing is said of the time until the disk is seen again."""
    was_listed = watched.is_listed
    tally = watched.tally.settled(moment.before, moment.now_s) if was_listed else watched.tally
    unseen = msgspec.structs.replace(watched, is_listed=False, inflight=0, tally=tally)
    return Sighting(
        unseen, awake=trouble is not None, gap=gap if was_listed else None, trouble=trouble
    )


def _fitted(totals: Reading, reading: Reading) -> Reading:
    """Give totals as many fields as a reading has, should another kind of disk have come."""
    return (*totals, *(0,) * len(reading))[: len(reading)]


def _hinted_inflight(own: Line, partitions: list[str]) -> int:
    """Give the requests in flight as /proc/diskstats has them.

    From 6.12 on the whole disk's line leaves out what was sent to its partitions; before, it
    includes them. The larger of the two is right unless both are used at once.
    """
    return max(own.inflight or 0, sum(parse_line(line).inflight or 0 for line in partitions))
