"""What a disk really is, from how long it takes to get to places, and not from what it claims.

A platter has to turn and a head has to move: a read at a random place takes half a revolution
and a seek (2 ms at the very least, at 15000 rpm), scatters, takes longer the farther the places
lie apart, and is many times slower than reading on. Solid state has none of that, and a limiter
shows neither: it hands out answers at an even pace. Bandwidth tells nothing of the kind.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from disksla.benchmark.identify_evidence import (
    HALF_TURN_S,
    HIT_S,
    Evidence,
    LatencyShape,
    RequestStats,
    count,
    scatter_ratio,
    shape_of,
    slower_than,
)
from disksla.fio import quantile_s

Medium = Literal[
    "rotating", "rotating_with_cache", "ssd", "nvme", "network", "memory", "unknown"
]  # fmt: skip

TITLES: dict[Medium, str] = {
    "rotating": "a rotating disk",
    "rotating_with_cache": "a rotating disk with a cache",
    "ssd": "a solid-state disk",
    "nvme": "a local solid-state disk on PCIe, as NVMe is",
    "network": "a disk behind a network",
    "memory": "memory: a cache answers, or the medium is as fast as one",
    "unknown": "cannot tell",
}

SLOWEST_SEEK_S = 0.03
"""No disk that is in order takes longer in the middle, even at 4200 rpm and end to end."""
MEMORY_S = 0.00003
"""Flash takes longer."""
ROUND_TRIP_S = 0.00025
"""Local solid state answers sooner; a storage service on a network takes longer."""

_FLAT_RATIO = 0.1
_SCATTERED_RATIO = 0.25
_SMALL_PART_SHARE = 0.08
_READING_ON_RATIO = 1 / 3
_SAME_RATIO = 0.6
_FARTHER_S = 0.001
_FARTHER_RATIO = 1.15
_ONE_ARM_RATIO = 3.5
_MANY_ARMS_RATIO = 6.0
NO_GAIN_RATIO = 1.2
WAITS_RATIO = 2.0
_WINDOW_WAIT_S = 0.02
_WINDOW_WAIT_RATIO = 10.0
_SATA_BYTES_PER_SECOND = 600e6
_SLOW_FOR_FLASH_BYTES_PER_SECOND = 150e6


class Signs(NamedTuple):
    """What the evidence shows; None where it does not show."""

    middle_s: float
    quick_s: float
    hit_share: float
    scatter_ratio: float | None
    slow: bool
    """As slow as a platter, or slower."""
    travels: bool | None
    """Whether it takes longer the farther the places lie apart."""
    reading_on: bool | None
    """Whether reading on is far quicker than going elsewhere."""
    reads_ahead: bool
    gain_ratio: float | None
    """Requests per second many at a time, over those one at a time."""
    waits: bool
    """Whether a few requests wait so long that they make up most of the time."""
    deep_waits: bool
    """Whether some of many at a time wait as long as a limiter's window, while most do not."""
    some_seek: bool
    """Whether a part of the requests, too small to decide, looks like seeks."""
    stream_bytes_per_second: float | None

    @property
    def flat(self) -> bool:
        """Whether slow requests come at an even pace."""
        scatter = self.scatter_ratio
        return self.slow and scatter is not None and scatter < _FLAT_RATIO

    @property
    def scattered(self) -> bool:
        """Whether latencies vary as widely as those of a rotating disk."""
        return self.scatter_ratio is not None and self.scatter_ratio >= _SCATTERED_RATIO

    @property
    def many_arms(self) -> bool:
        """Whether a deep queue gets more done than one disk arm could do."""
        return self.gain_ratio is not None and self.gain_ratio >= _MANY_ARMS_RATIO

    @property
    def no_gain(self) -> bool:
        """Whether many at a time get no more done than one, though no head has to move."""
        gains = self.gain_ratio is None or self.gain_ratio >= NO_GAIN_RATIO
        return not gains and not self.seeks and self.middle_s >= MEMORY_S

    @property
    def seeks(self) -> bool:
        """Whether latency depends on where a request goes."""
        if not self.slow or self.flat:
            return False
        evenly = self.scatter_ratio is not None and not self.scattered
        one_arm = self.gain_ratio is None or self.gain_ratio < _ONE_ARM_RATIO
        return self.travels is True or (self.reading_on is True and one_arm and not evenly)

    @property
    def limited(self) -> bool:
        """Whether some of the numbers are those of a limiter and not of the medium."""
        return any((self.flat, self.no_gain, self.held, self.windowed, self.slow_stream))

    @property
    def held(self) -> bool:
        """Whether a few wait, as where a limiter lets so many pass in a window and then none.

        Where many at a time get more done, those are pauses of the disk's own.
        """
        pauses = self.some_seek or (self.gain_ratio is not None and not self.no_gain)
        return self.waits and not self.slow and not pauses

    @property
    def windowed(self) -> bool:
        """Whether a deep queue waits for the windows of a limiter."""
        return self.deep_waits and not self.slow and self.middle_s >= MEMORY_S

    @property
    def slow_stream(self) -> bool:
        """Whether solid state reads on slower than it could."""
        stream = self.stream_bytes_per_second
        local = MEMORY_S <= self.middle_s < ROUND_TRIP_S
        return local and stream is not None and stream < _SLOW_FOR_FLASH_BYTES_PER_SECOND


class Rule(NamedTuple):
    """What is concluded where something holds."""

    medium: Medium
    holds: Callable[[Signs], bool]
    conclusion: str


RULES = (
    Rule(
        "unknown",
        lambda signs: signs.flat,
        "A head that moves and a platter that turns would scatter by a third and more: this is"
        " the even pace of a limiter, and the medium behind it does not show.",
    ),
    Rule(
        "unknown",
        lambda signs: signs.middle_s > SLOWEST_SEEK_S,
        "That is longer than any platter takes: the disk is overloaded or held back, and its"
        " medium does not show.",
    ),
    Rule(
        "rotating",
        lambda signs: signs.slow and signs.travels is True,
        "Something has to travel and to turn.",
    ),
    Rule(
        "network",
        lambda signs: signs.slow and signs.many_arms,
        "One head cannot do that: the work is spread over many disks behind a network or an"
        " array. Single requests are slow enough that those may rotate.",
    ),
    Rule(
        "rotating",
        lambda signs: signs.seeks,
        "Where a request goes decides how long it takes: something has to travel and to turn.",
    ),
    Rule(
        "unknown",
        lambda signs: signs.slow and signs.no_gain and signs.reading_on is False,
        "Neither the place nor the number of requests matters: a limiter decides, and the medium"
        " behind it does not show.",
    ),
    Rule(
        "network",
        lambda signs: signs.slow and signs.reading_on is False and signs.travels is False,
        "The place does not matter, so nothing has to travel; and solid state does not take so"
        " long by itself: a network lies between.",
    ),
    Rule(
        "rotating",
        lambda signs: signs.slow and signs.reading_on is None and signs.scattered,
        "It is slow and scatters as a platter does. Nothing else was measured that would tell it"
        " from a slow network, so this is likely rather than sure.",
    ),
    Rule(
        "unknown",
        lambda signs: signs.slow,
        "It is slow enough for a platter, but the evidence does not show whether the place"
        " matters.",
    ),
    Rule(
        "unknown",
        lambda signs: signs.some_seek,
        "Some requests take as long, and scatter as much, as where a platter turns: a cache hides"
        " the medium, or the disk was busy.",
    ),
    Rule(
        "memory",
        lambda signs: signs.middle_s < MEMORY_S,
        "Flash takes longer: memory of this machine, of its host or of the disk answered. Space"
        " that was never written is answered without a medium, too.",
    ),
    Rule(
        "network",
        lambda signs: signs.quick_s >= ROUND_TRIP_S,
        "Nothing seeks, but local solid state would answer sooner: a network lies between.",
    ),
    Rule(
        "nvme",
        lambda signs: (signs.stream_bytes_per_second or 0.0) > _SATA_BYTES_PER_SECOND,
        "Nothing seeks, and it reads on faster than a SATA cable carries.",
    ),
    Rule("ssd", lambda _: True, "Nothing seeks: no platter turns so fast."),
)
"""First what holds decides."""


def signs_of(evidence: Evidence, random: RequestStats) -> Signs:
    """Return what the measurements show of the medium."""
    shape = shape_of(random)
    return Signs(
        shape.middle_s,
        shape.quick_s,
        shape.hit_share,
        shape.scatter_ratio,
        slow=shape.middle_s >= HALF_TURN_S,
        travels=_travels(evidence.near, shape),
        reading_on=_reading_on(evidence, min(shape.middle_s, random.mean_s)),
        reads_ahead=any(on.mean_s < HALF_TURN_S for on in sequential_reads(evidence)),
        gain_ratio=None if evidence.deep is None else evidence.deep.iops / random.iops,
        waits=random.mean_s >= WAITS_RATIO * shape.middle_s,
        deep_waits=evidence.deep is not None and _deep_waits(evidence.deep),
        some_seek=_some_seek(random, shape),
        stream_bytes_per_second=max(
            (
                *(on.iops * on.request_bytes for on in sequential_reads(evidence)),
                evidence.buffered_bytes_per_second or 0.0,
            )
        )
        or None,
    )


def _travels(near: RequestStats | None, shape: LatencyShape) -> bool | None:
    if near is None:
        return None
    near_s = shape_of(near).middle_s
    return shape.middle_s >= max(near_s + _FARTHER_S, near_s * _FARTHER_RATIO)


def _reading_on(evidence: Evidence, going_s: float) -> bool | None:
    """Compare reading on with going elsewhere.

    A large request that takes less shows it as well; one that takes as long may do so for its
    size.
    """
    if any(on.mean_s <= _READING_ON_RATIO * going_s for on in sequential_reads(evidence)):
        return True
    on = evidence.sequential
    return False if on is not None and on.mean_s >= _SAME_RATIO * going_s else None


def sequential_reads(evidence: Evidence) -> tuple[RequestStats, ...]:
    """Return the sequential measurements that there are."""
    both = (evidence.sequential, evidence.streamed)
    return tuple(requests for requests in both if requests is not None)


def _deep_waits(deep: RequestStats) -> bool:
    if not deep.bins:
        return False
    middle_s, top_s = quantile_s(deep.bins, 0.5), quantile_s(deep.bins, 0.99)
    return top_s >= max(_WINDOW_WAIT_S, _WINDOW_WAIT_RATIO * middle_s)


def _some_seek(random: RequestStats, shape: LatencyShape) -> bool:
    slow = slower_than(random.bins, HALF_TURN_S)
    if shape.middle_s >= HIT_S or count(slow) < max(1, _SMALL_PART_SHARE * count(random.bins)):
        return False
    return quantile_s(slow, 0.5) <= SLOWEST_SEEK_S and scatter_ratio(slow) >= _SCATTERED_RATIO
