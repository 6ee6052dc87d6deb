"""What the provider counts of a disk, by its statistics page (`disksla.clouds.ebs_statistics`).

Its count is a sign of a limiter that needs no other: in windows between two readings, it decides
whether the disk was throttled, for how long, and by which limit. The verdicts on them by the signs
wait for the next reading (docs/clouds/aws.md).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from disksla.base.histogram import Histogram
from disksla.clouds.ebs_statistics import Bin, EbsLimit, Failure, Reading, change_between
from disksla.verdict.interval import Interval
from disksla.verdict.throttling import Throttle, WindowVerdict

PROVIDER_LATENCY_BOUNDS_S = tuple(2**power / 1e6 for power in range(6, 25))
"""64 us to 16.8 s, the powers of two that the bins of the page have."""
STALE_S = 10.0
"""Without a reading for this long, nothing is published: a counter that stands still would say
that nothing is throttled."""
LONGEST_SPAN_S = 1.25
"""Between two readings; there is one a second. In a longer time, the two signs decide: verdicts
do not wait longer, and when in it the disk was throttled is not known."""
MOST_OVER_S = 0.1
"""A reading is within a window, of which the count of the rest is that of the next reading."""

_NO_LATENCY = Histogram.empty(PROVIDER_LATENCY_BOUNDS_S)


class ProviderState(msgspec.Struct, frozen=True, gc=False):
    """Sums over the readings of one disk, which begin at 0 (ADR 7), and the last of them."""

    last: Reading | None = None
    tick_s: float = float("-inf")  # monotonic time of the tick with the last reading
    exceeded_us: Mapping[EbsLimit, int] | None = None
    """Since the reading before it; None after a reset, and where that is longer ago than
    LONGEST_SPAN_S."""
    throttled_us: Mapping[EbsLimit, int] = {}
    """Since the first reading, by limit, those that the page has."""
    read_latency_s: Histogram = _NO_LATENCY
    write_latency_s: Histogram = _NO_LATENCY
    failures: Mapping[str, int] = {}
    """Pages that could not be read or used, by reason, and `reset`."""

    def after(self, messages: Iterable[Reading | Failure], tick_s: float) -> "ProviderState":
        """Return the state after the readings and the failures of a tick."""
        reading = self.last
        failures = Counter(self.failures)
        for message in messages:
            if isinstance(message, Failure):
                failures[message.reason] += 1
            else:
                reading = message
        if reading is None or reading is self.last:
            return msgspec.structs.replace(self, failures=dict(failures))
        change = None if self.last is None else change_between(self.last, reading)
        if change is None and self.last is not None:
            failures["reset"] += 1
        state = msgspec.structs.replace(
            self,
            last=reading,
            tick_s=tick_s,
            exceeded_us=None,
            throttled_us={**dict.fromkeys(reading.statistics.exceeded_us, 0), **self.throttled_us},
            failures=dict(failures),
        )
        if change is None:
            return state
        return msgspec.structs.replace(
            state,
            exceeded_us=change.exceeded_us if tick_s - self.tick_s <= LONGEST_SPAN_S else None,
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
        return self.exceeded_us is not None and any(self.exceeded_us.values())

    def is_current(self, now_s: float) -> bool:
        """Return whether there was a reading lately; `now_s` is monotonic time."""
        return self.last is not None and now_s - self.last.monotonic_s < STALE_S


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


class WindowCount(NamedTuple):
    """What the provider counted of one window."""

    limit: EbsLimit
    throttled_share: float


class WaitingVerdicts(msgspec.Struct, frozen=True, gc=False):
    """Of the undecided windows of a disk, the oldest first."""

    verdicts: tuple[WindowVerdict, ...] = ()
    """By the signs; fewer than windows, as the last second is not decided."""
    counts: tuple[WindowCount | None, ...] = ()
    """By the provider, up to its last reading; None where it has not counted."""
    over_s: float = 0.0  # counted by the last reading, and more than its windows were long


NONE_WAITING = WaitingVerdicts()


def decided_by_count(
    waiting: WaitingVerdicts,
    windows: Sequence[Interval],
    by_signs: tuple[WindowVerdict, ...],
    provider: ProviderState,
    now_s: float,
) -> tuple[WaitingVerdicts, tuple[WindowVerdict, ...]]:
    """Return what waits after a tick, and the verdicts that do not, in whole seconds.

    `windows` are all that are undecided, and `by_signs` are the verdicts that the signs give now.
    """
    verdicts, counts, over_s = (*waiting.verdicts, *by_signs), waiting.counts, waiting.over_s
    not_counted = windows[len(counts) :]
    if provider.tick_s == now_s and provider.exceeded_us is not None:
        more, over_s = _shared(provider.exceeded_us, over_s, not_counted)
        counts += more
    elif provider.tick_s == now_s or now_s - provider.tick_s > LONGEST_SPAN_S:
        counts, over_s = (*counts, *[None] * len(not_counted)), 0.0
    ready = min(len(verdicts), len(counts))
    if all(each.verdict == "idle" for each in verdicts):
        ready = len(verdicts)  # nothing can be throttled
        counts = (*counts, *[None] * (ready - len(counts)))
    while 0 < ready < len(verdicts) and int(windows[ready - 1].end_s) == int(windows[ready].end_s):
        ready -= 1
    decided = tuple(map(_by_count, windows, verdicts[:ready], counts[:ready]))
    return WaitingVerdicts(verdicts[ready:], counts[ready:], over_s), decided


def _shared(
    exceeded_us: Mapping[EbsLimit, int], over_s: float, windows: Sequence[Interval]
) -> tuple[tuple[WindowCount, ...], float]:
    """Return the count of each window since the reading before, and what is left.

    When it was throttled in that time is not known: those with I/O have the same share. Each is of
    one limit, so that in all of them the limits have what was counted.
    """
    left_us: dict[EbsLimit, float] = dict(exceeded_us)
    active = [each.seconds if each.requests or each.inflight else 0.0 for each in windows]
    counted_s = sum(left_us.values()) / 1e6
    counted_s += over_s if counted_s else 0.0
    share = min(1.0, counted_s / sum(active)) if any(active) else 0.0
    counts = []
    for active_s in active:
        limit = max(left_us, key=left_us.__getitem__)
        left_us[limit] -= share * active_s * 1e6
        counts.append(WindowCount(limit, share if active_s else 0.0))
    return tuple(counts), min(MOST_OVER_S, counted_s - share * sum(active))


def _by_count(
    window: Interval, by_signs: WindowVerdict, count: WindowCount | None
) -> WindowVerdict:
    """Return the verdict on a window by what the provider counted, or by the signs if nothing."""
    if count is None:
        return by_signs
    limit, share = count
    own = by_signs.throttle
    otherwise = by_signs.verdict if own is None else by_signs.instead
    if not share:
        return by_signs if own is None else WindowVerdict(otherwise)
    level = "base" if own is None or own.level == "unknown" else own.level
    return WindowVerdict(
        verdict="throttled",
        throttle=Throttle(level, limit),
        wait_s=share * window.without_flushes().took_s,
        throttled_share=share,
        otherwise=otherwise,
        is_seen=by_signs.is_seen and own is not None and own.limit == limit,
    )
