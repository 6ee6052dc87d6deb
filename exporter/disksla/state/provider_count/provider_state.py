"""What the provider says of one disk, by readings of its statistics page.

Counters begin at 0 with the first reading (ADR 7), and go on after a reset of the page.
"""

from collections.abc import Mapping

import msgspec

from disksla.base.histogram import Histogram
from disksla.clouds.ebs_statistics import Bin, Change, EbsLimit, Failure, Reading, change_between

PROVIDER_LATENCY_BOUNDS_S = tuple(2**power / 1e6 for power in range(6, 25))
"""64 us to 16.8 s, the powers of two that the bins of the page have."""

STALE_S = 10.0
"""Without a reading for this long, nothing is published: a counter that stands still would say
that nothing is throttled."""

_NO_LATENCY = Histogram.empty(PROVIDER_LATENCY_BOUNDS_S)


class ProviderState(msgspec.Struct, frozen=True, gc=False):
    """Sums over the readings of one disk, and the last of them."""

    last: Reading | None = None
    change: Change | None = None
    """Between the last two readings; None after a reset."""
    throttled_us: Mapping[EbsLimit, int] = {}
    """Since the first reading, by limit, those that the page has."""
    read_latency_s: Histogram = _NO_LATENCY
    write_latency_s: Histogram = _NO_LATENCY
    failures: Mapping[str, int] = {}
    """Pages that could not be read or used, by reason, and `reset`."""

    def plus(self, message: Reading | Failure) -> "ProviderState":
        """Add a reading, or count a failure."""
        if isinstance(message, Failure):
            return self.counted(message.reason)
        begun = dict.fromkeys(message.statistics.exceeded_us, 0)
        state = msgspec.structs.replace(
            self, last=message, change=None, throttled_us={**begun, **self.throttled_us}
        )
        if self.last is None:
            return state
        change = change_between(self.last, message)
        if change is None:
            return state.counted("reset")
        return msgspec.structs.replace(
            state,
            change=change,
            throttled_us={
                limit: self.throttled_us.get(limit, 0) + us
                for limit, us in change.exceeded_us.items()
            },
            read_latency_s=_observed(self.read_latency_s, change.read_latency, change.read_us),
            write_latency_s=_observed(self.write_latency_s, change.write_latency, change.write_us),
        )

    @property
    def is_throttled(self) -> bool:
        """Whether a limit was exceeded between the last two readings."""
        return self.change is not None and any(self.change.exceeded_us.values())

    def is_current(self, now_s: float) -> bool:
        """Return whether there was a reading lately; `now_s` is monotonic time."""
        return self.last is not None and now_s - self.last.monotonic_s < STALE_S

    def counted(self, reason: str) -> "ProviderState":
        """Count a failure."""
        failures = {**self.failures, reason: self.failures.get(reason, 0) + 1}
        return msgspec.structs.replace(self, failures=failures)


def _observed(histogram: Histogram, bins: tuple[Bin, ...], total_us: int) -> Histogram:
    """Add the requests of bins that took this long in all.

    A bin that is not within one bucket counts in that of its upper bound, so no quantile is shown
    too low.
    """
    counted = histogram
    for each in bins:
        if each.count:
            upper_s = float("inf") if each.upper_us is None else each.upper_us / 1e6
            counted = counted.observe(upper_s, each.count)
    return Histogram(histogram.bounds, counted.counts, histogram.total + total_us / 1e6)
