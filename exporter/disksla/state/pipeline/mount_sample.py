"""One NFS mount at one sample: from what the kernel counts of it to an interval, as of a disk.

The kernel counts a request when it is done, and has no number of those in flight. While requests
are done, it is how long they took: their time in I/O-seconds per second (Little's law). While
nothing is done, it is how many were sent over the connections and not answered, less those that
never will be. The latter is of all mounts that use the connections, so it is only that of a mount
which had requests in flight before.
"""

import msgspec

from disksla.kernel.nfs import MountReading
from disksla.verdict.interval import Interval
from disksla.verdict.throttling import LONGEST_WINDOW_S

_LEAST, _LEAST_WITH_SESSIONS = 1, 2
"""Requests on the wire that are in flight. With sessions, one may be an answer to the server."""


class MountState(msgspec.Struct, frozen=True, gc=False):
    """What the kernel counts of a mount, and what of it will never be answered."""

    reading: MountReading
    unanswered: int
    """Of the requests on the wire: those that were lost, with a connection or by the server, and
    what was no request, but an answer to a call of the server. What was on the wire at the first
    sample is among them: it is not known to be answered ever."""
    replied_s: float
    """Monotonic time at which the last reply was seen, or nothing else was on the wire."""

    @property
    def on_wire(self) -> int:
        """Requests on the wire that may be answered."""
        return self.reading.on_wire - self.unanswered

    @property
    def in_flight(self) -> int:
        """Requests that are certainly on the wire."""
        least = _LEAST_WITH_SESSIONS if self.reading.has_sessions else _LEAST
        return self.on_wire if self.on_wire >= least else 0

    def after(self, reading: MountReading, now_s: float, elapsed_s: float) -> "MountState":
        """Return the state after another reading, so long after the one before it.

        Where a connection was made anew, or the server answers after a long silence, what was on
        the wire may be lost. And with a delegation that is returned, an answer to the call for it
        may be on the wire. If not, the number falls below that, and that is the number.
        """
        has_replied = reading.replies != self.reading.replies
        may_be_lost = reading.connects != self.reading.connects or (
            has_replied and now_s - elapsed_s - self.replied_s > LONGEST_WINDOW_S
        )
        unanswered = self.unanswered + (self.on_wire if may_be_lost else 0)
        if reading.has_sessions:
            unanswered += max(0, reading.returned - self.reading.returned)
        unanswered = min(reading.on_wire, unanswered)
        is_quiet = has_replied or reading.on_wire == unanswered
        return MountState(reading, unanswered, now_s if is_quiet else self.replied_s)


def first_state(reading: MountReading, now_s: float) -> MountState:
    """Return the state after the first reading."""
    return MountState(reading, reading.on_wire, now_s)


def with_operations(interval: Interval, before: MountState, now: MountState) -> Interval:
    """Return an interval of a mount with other operations, and with the requests in flight."""
    took_s = interval.took_s
    if interval.requests:
        in_flight = round(took_s / interval.seconds) if interval.seconds else 0
    elif now.reading.replies != before.reading.replies:
        in_flight = 0  # the server answers, and what it answers is not data of this mount
    elif now.reading.shares_connections and not interval.inflight_before:
        in_flight = 0
    else:
        in_flight = now.in_flight
    busy_ms = round(1000 * min(took_s, interval.seconds))
    others = max(0, now.reading.besides_data - before.reading.besides_data)
    return msgspec.structs.replace(interval, inflight=in_flight, busy_ms=busy_ms, others=others)
