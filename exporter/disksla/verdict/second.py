"""What is seen of a disk in one second of monotonic time: verdicts are made of these."""

from typing import NamedTuple

from disksla.interval import Interval, summed
from disksla.verdict.observation import Observation
from disksla.verdict.pauses import Pause, find_pauses


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
    is_close: bool
    """Whether the disk was looked at closer in most of it."""

    @property
    def requests_per_second(self) -> float:
        """Reads and writes per second, without flushes: no limiter charges those."""
        return self.served.without_flushes().requests / self.served.seconds


def second_of(number: int, observations: tuple[Observation, ...], before: Second | None) -> Second:
    """Return a second; `before` is the last one that is known, in which a pause may begin."""
    served = summed([each.window for each in observations])
    busy_s = sum(each.busy_s for each in observations)
    earlier = () if before is None else before.observations
    pauses = find_pauses(step for each in (*earlier, *observations) for step in each.steps)
    begin_s = observations[0].window.end_s - observations[0].window.seconds
    own = tuple(pause for pause in pauses if pause.end_s > begin_s)
    close = sum(each.is_close for each in observations)
    return Second(
        number=number,
        observations=observations,
        served=served,
        busy_share=busy_s / served.seconds,
        pauses=own,
        is_close=2 * close > len(observations),
    )
