"""What is seen of a disk in one second of monotonic time: verdicts are made of these."""

from collections.abc import Sequence
from typing import NamedTuple

from disksla.base.counts import total
from disksla.promise.catalogue import Limits
from disksla.verdict.interval import Interval
from disksla.verdict.throttling.bucket import EVIDENCE_S, MEMORY_S, Followed, follow
from disksla.verdict.throttling.observation import Observation
from disksla.verdict.throttling.pauses import Pause, find_pauses


class Second(NamedTuple):
    """What is seen of a disk in one second of monotonic time."""

    number: int
    observations: tuple[Observation, ...]
    """Its windows; none where no sign needs them any more."""
    served: Interval
    """What was served in it, as one window."""
    busy_share: float
    """Share of the time in which requests were in flight."""
    pauses: tuple[Pause, ...]
    """Those that ended in it, and one that has not."""
    buckets: tuple[Followed | None, ...]
    """Those of the limits, as `buckets_of` has them."""
    is_close: bool
    """Whether the disk was looked at closer in most of it."""

    @property
    def requests_per_second(self) -> tuple[float, float]:
        """Return the reads and writes per second, without flushes and with all.

        No limiter charges flushes, but not all of them are empty writes.
        """
        fewest = self.served.without_flushes().requests
        return fewest / self.served.seconds, self.served.requests / self.served.seconds


def second_of(
    number: int, observations: tuple[Observation, ...], before: Sequence[Second], limits: Limits
) -> Second:
    """Return a second; `before` are those that are known: a pause may have begun in the last."""
    windows = [each.window for each in observations]
    served = total(windows)
    busy_s = sum(each.busy_s for each in observations)
    earlier = before[-1].observations if before else ()
    pauses = find_pauses(step for each in (*earlier, *observations) for step in each.steps)
    begin_s = windows[0].end_s - windows[0].seconds
    own = tuple(pause for pause in pauses if pause.end_s > begin_s)
    followed = [each.buckets for each in before if each.number >= number - (MEMORY_S - EVIDENCE_S)]
    # Idle time is in no second. Before the first, the bucket had time to get full.
    rest_s = begin_s - before[-1].served.end_s if before else MEMORY_S
    close = sum(each.is_close for each in observations)
    return Second(
        number=number,
        observations=observations,
        served=served,
        busy_share=busy_s / served.seconds,
        pauses=own,
        buckets=follow(windows, followed, 0.0 if windows[0].inflight_before else rest_s, limits),
        is_close=2 * close > len(observations),
    )
