"""One disk under our eyes, from sample to sample."""

from collections.abc import Collection, Mapping

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
from disksla.core.hostwait import HostWait
from disksla.core.interval import GapReason, interval_of
from disksla.core.probeledger import ProbeLedger
from disksla.core.probeoutcome import ProbeOutcome
from disksla.core.purse import Purse, open_purse
from disksla.core.settings import ProbeKind
from disksla.core.tally import Assessed, Tally
from disksla.core.verdict import Judgement, Past, after_a_break, judge
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
    past: Past = Past()
    judgement: Judgement | None = None
    """On the last window; None after a gap."""
    purse: Purse | None = None
    """Its burst credits; None if its terms have none."""
    probes: Mapping[ProbeKind, ProbeLedger] = {}
    """What its probes came to, by kind."""

    @property
    def totals(self) -> Counters | None:
        """What the counters rose by since the disk was first seen; None before that."""
        if self.reading is None or self.origin is None:
            return None
        return named(difference(self.reading, self.origin))

    def purse_at(self, boottime_s: float) -> Purse | None:
        """Give its credits at a time up to which no more was seen of it; None if it has none.

        A disk that is listed did nothing since; one that is not may have done anything.
        """
        limits = self.assignment.limits
        if self.purse is None or limits.burst is None:
            return None
        if self.is_listed:
            return self.purse.after_rest(limits.burst.buckets, boottime_s)
        return self.purse.after_gap(limits, None, boottime_s)

    def with_host_wait(self, part: HostWait) -> "Watched":
        """Add this disk's part of what the host waited in the last window."""
        tally = msgspec.structs.replace(self.tally, ledger=self.tally.ledger.plus_host(part))
        return msgspec.structs.replace(self, tally=tally)

    def with_probe(self, outcome: ProbeOutcome) -> "Watched":
        """Add one turn of a probe."""
        ledger = self.probes.get(outcome.kind, ProbeLedger()).plus(outcome)
        return msgspec.structs.replace(self, probes={**self.probes, outcome.kind: ledger})

    def with_probes_asked_for(self, kinds: Collection[ProbeKind], timestamp_s: float) -> "Watched":
        """Take note which kinds of probes are asked for, from a Unix time on if they were not."""
        probes = {
            kind: self.probes.get(kind, ProbeLedger()).asked_for(
                timestamp_s if kind in kinds else None
            )
            for kind in {*self.probes, *kinds}
        }
        return msgspec.structs.replace(self, probes=probes)


class Moment(msgspec.Struct, frozen=True, gc=False):
    """What one sample is to all disks."""

    now_s: float
    """Monotonic time."""
    boottime_s: float
    """Time since boot, suspended time included: limiters do not sleep."""
    last_boottime_s: float
    """The same at the sample before."""
    elapsed_s: float
    """Since the sample before; 0 if the time between cannot be judged."""
    before: Assessed
    """Time judged up to the sample before."""
    after: Assessed
    """Time judged including this sample."""
    tick_s: float
    """Time that should lie between samples."""
    tolerance_ratio: float
    """Share by which a limit may be missed."""


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
    before, origin, reading = watched.reading, watched.origin, line.reading
    if before is None or origin is None:
        return Sighting(
            _restarted(watched, moment, reading, reading, in_flight), awake=in_flight > 0
        )
    if fell(before, reading):
        unwrapped_before = unwrapped(before, reading)
        if unwrapped_before is None:
            totals = _fitted(difference(before, origin), reading)
            anew = _restarted(watched, moment, reading, difference(reading, totals), in_flight)
            return Sighting(anew, awake=True, gap="reset")
        origin = difference(origin, difference(before, unwrapped_before))
        watched = msgspec.structs.replace(watched, reading=unwrapped_before, origin=origin)
    seen = _after_interval(watched, reading, in_flight, moment)
    return Sighting(seen, awake=in_flight > 0 or reading != before)


def _after_interval(watched: Watched, reading: Reading, inflight: int, moment: Moment) -> Watched:
    """Take what the counters rose by since the last sample."""
    limits = watched.assignment.limits
    tally, past = watched.tally, watched.past
    slept = tally.settled_at.windows != moment.before.windows
    if slept and watched.is_listed:
        tally = tally.settled(moment.before, moment.now_s)
    elapsed_s = moment.elapsed_s if watched.is_listed else 0.0
    if slept or not elapsed_s:
        past = after_a_break(past)
    interval = interval_of(moment.now_s, elapsed_s, watched.reading or (), reading, inflight)
    judgement = None
    purse = watched.purse or open_purse(limits, moment.boottime_s)
    if elapsed_s:
        past, judgement = judge(past, interval, limits, moment.tolerance_ratio, moment.tick_s)
        if purse is not None:
            proven = judgement.hold if judgement.is_proof else None
            purse = purse.after_window(limits, interval, proven, moment.boottime_s)
    elif purse is not None:
        purse = _rested(watched, moment) or purse
        purse = purse.after_gap(limits, interval, moment.boottime_s, inflight)
    return Watched(
        watched.disk,
        watched.assignment,
        reading,
        watched.origin,
        _LISTED,
        inflight,
        tally.plus(interval, limits.promise_charges, judgement, moment.after),
        past,
        judgement,
        purse,
        watched.probes,
    )


def _restarted(
    watched: Watched, moment: Moment, reading: Reading, origin: Reading, inflight: int
) -> Watched:
    """Begin to look, or begin again: there is no window yet."""
    return Watched(
        watched.disk,
        watched.assignment,
        reading,
        origin,
        _LISTED,
        inflight,
        msgspec.structs.replace(watched.tally, settled_at=moment.after),
        after_a_break(watched.past),
        purse=_out_of_sight(watched, moment, inflight),
        probes=watched.probes,
    )


def _out_of_sight(watched: Watched, moment: Moment, inflight: int) -> Purse | None:
    """Give what is left of credits after a time in which anybody may have used them."""
    limits = watched.assignment.limits
    purse = _rested(watched, moment)
    if purse is None:
        return open_purse(limits, moment.boottime_s)
    return purse.after_gap(limits, None, moment.boottime_s, inflight)


def _rested(watched: Watched, moment: Moment) -> Purse | None:
    """Give credits up to when the disk was last seen: to the last sample, if it was listed."""
    return watched.purse_at(moment.last_boottime_s) if watched.is_listed else watched.purse


def _unseen(
    watched: Watched, moment: Moment, gap: GapReason, trouble: str | None = None
) -> Sighting:
    """Keep what was counted; nothing is said of the time until the disk is seen again."""
    was_listed = watched.is_listed
    tally = watched.tally.settled(moment.before, moment.now_s) if was_listed else watched.tally
    unseen = msgspec.structs.replace(
        watched,
        is_listed=False,
        inflight=0,
        tally=tally,
        past=after_a_break(watched.past),
        judgement=None,
        purse=_rested(watched, moment),
    )
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
