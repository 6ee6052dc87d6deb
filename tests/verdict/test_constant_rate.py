"""Throttling at a constant rate."""

from collections.abc import Iterable
from itertools import accumulate, pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.verdict.constant_rate import NO_LINE, Line, is_regular
from disksla.verdict.interval import Interval
from disksla.verdict.parameters import P
from support.releases import release
from support.scenario_verdicts import judged
from support.simulated_limiter import Closed, Limiter, Medium, Scenario, summed

STRAIGHT = [release(30, read_ms=960, inflight=32)] * 21
"""The first is where the line starts."""


def line_of(releases: Iterable[Interval]) -> Line:
    line = NO_LINE
    for each in releases:
        line = line.plus(each, 0.1)
    return line


def is_limiter(releases: Iterable[Interval]) -> bool:
    kept = tuple(releases)
    return line_of(kept).is_limiter(kept[-P.kept_releases :], 0.1)


def test_two_seconds_on_a_straight_line() -> None:
    assert is_limiter(STRAIGHT)
    assert not is_limiter(STRAIGHT[1:])
    assert is_limiter(STRAIGHT * 5)


def test_straight_line_needs_requests_in_flight() -> None:
    assert line_of([*STRAIGHT[:4], release(30, read_ms=960, inflight=0)]) == NO_LINE
    assert not is_limiter([release(30, read_ms=60, inflight=1)] * 21)  # a timer starts each
    assert is_limiter([release(30, read_ms=85, inflight=0)] * 21)  # missed by samples
    assert is_limiter([release(30, read_ms=95, inflight=1)] * 21)


@pytest.mark.parametrize(
    "unlike",
    [
        [release(30, read_ms=20, inflight=32)] * 21,  # requests do not wait
        [release(1, read_ms=960, inflight=32)] * 21,  # too few for a rate
        [release(5, read_ms=95, inflight=1)] * 21,  # too few, one at a time
        [release(20 + 2 * n, read_ms=960, inflight=32) for n in range(21)],
        [release(30 + (-1) ** n * 3, read_ms=96, inflight=1) for n in range(21)],
    ],
)
def test_other_curves_are_not_a_limiter(unlike: list[Interval]) -> None:
    assert not is_limiter(unlike)


SPLIT = [release(40, read_ms=960), release(20, read_ms=960, inflight=32)]
"""Samples were taken while a limiter let the requests of a window pass."""


def test_samples_may_split_few_releases_of_a_deep_queue() -> None:
    often = [*STRAIGHT[:9], *SPLIT, *STRAIGHT[:6], *SPLIT, *STRAIGHT[:3]]
    assert not is_limiter(often)  # so does a disk, by chance
    assert is_limiter([*often, *STRAIGHT, *STRAIGHT])
    assert not is_limiter([*STRAIGHT[:3], *SPLIT, *STRAIGHT[:16]])
    assert not is_limiter([*STRAIGHT[:9], *SPLIT * 6])
    far = [release(70, read_ms=960, inflight=32), release(-10, read_ms=960, inflight=32)]
    assert not is_limiter([*STRAIGHT[:9], *far, *STRAIGHT[:10]])
    one_deep = [msgspec.structs.replace(each, read_ms=95, inflight=1) for each in STRAIGHT]
    split = [release(33, read_ms=95, inflight=1), release(27, read_ms=95, inflight=1)]
    assert not is_limiter([*one_deep[:9], *split, *one_deep[:10]])


def test_late_sample_does_not_lose_the_line_of_windows() -> None:
    """A sample is late, and requests in proportion; later, one counts those of its neighbour."""
    late = [
        release(33, read_ms=960, inflight=32, seconds=0.11),
        release(27, read_ms=960, inflight=32, seconds=0.09),
    ]
    early = [release(33, read_ms=960, inflight=32), release(27, read_ms=960, inflight=32)]
    assert is_limiter([*STRAIGHT[:9], *late, *STRAIGHT[:4], *early, *(STRAIGHT * 2)])


FAST = [release(200, read_ms=95, inflight=1)] * 4
"""One request at a time, 0.48 ms each: a limiter, or a disk whose service times are constant."""


def with_late_samples(*requests: int) -> list[Interval]:
    """Return releases of one request at a time, of which every second ends 10 ms late."""
    return [
        release(each, read_ms=95, inflight=1, seconds=0.09 if number % 2 else 0.11)
        for number, each in enumerate(requests)
    ]


@pytest.mark.parametrize(
    ("late", "is_by_windows"),
    [
        ((), False),
        ((200, 200), False),  # one late sample may be by chance
        ((200, 200, 200, 200), True),
        ((210, 190, 210, 190), True),  # a limiter serves a part of a window by then
        ((240, 160, 240, 160), True),
        ((220, 180, 220, 180), False),  # a disk serves all the time
        ((222, 178, 219, 181), False),
        ((220, 180, 200, 200, 220, 180, 200, 200), True),
    ],
)
def test_late_samples_tell_windows_of_a_limiter_from_a_fast_disk(
    late: tuple[int, ...], is_by_windows: bool
) -> None:
    assert is_limiter([*FAST * 2, *with_late_samples(*late), *FAST * 4]) is is_by_windows


def test_late_samples_are_needed_while_it_is_unknown_what_makes_fast_requests_wait() -> None:
    line = [FAST[0], *FAST]
    late = with_late_samples(*[220, 180] * 4)
    assert line_of(line).needs_late_sample(0.1)
    assert line_of([*line, *late[:6]]).needs_late_sample(0.1)
    assert line_of([*line, *late[:6]]).is_open(0.1)
    assert not line_of([*line, *late]).needs_late_sample(0.1)
    assert not line_of([*line, *late]).is_open(0.1)
    assert not line_of(FAST).needs_late_sample(0.1)  # too short
    assert not line_of(STRAIGHT).needs_late_sample(0.1)  # deep
    slow = [release(30, read_ms=95, inflight=1)] * 10
    assert not line_of(slow).needs_late_sample(0.1)  # requests wait
    idle = [release(200, read_ms=20, inflight=1)] * 10
    assert not line_of(idle).needs_late_sample(0.1)


@pytest.mark.parametrize(
    ("limiter", "is_found"),
    [
        (Limiter(buckets=summed(1500), window_s=0.1), True),
        (Limiter(buckets=summed(1500), window_s=0.02), True),
        (Limiter(buckets=summed(1500), window_s=None), False),  # by time, as a disk
        (None, False),
    ],
)
def test_one_fast_request_at_a_time_is_throttled_by_windows(
    limiter: Limiter | None, is_found: bool
) -> None:
    scenario = Scenario(
        limiter=limiter,
        loads=(Closed(depth=1),),
        medium=Medium(service_s=0.00006 if limiter else 0.0006),
    )
    found = judged(scenario)
    assert found.throttled_s == pytest.approx(9.0 if is_found else 0.0, abs=1.0)
    assert {row.limit for row in found.with_verdict("throttled")} <= {"unknown"}


def test_release_may_be_off_the_line_in_bytes() -> None:
    """Requests of different sizes at a bandwidth limit; one sample was early, one late."""
    sizes = [4096 * (1 + number % 3) for number in range(21)]
    amounts = [240 * 4096] * 21
    assert is_limiter(
        release(amount // size, read_ms=960, inflight=32, request_bytes=size)
        for amount, size in zip(amounts, sizes, strict=True)
    )
    amounts[9:11] = [280 * 4096, 200 * 4096]
    line = line_of(
        release(amount // size, read_ms=960, inflight=32, request_bytes=size)
        for amount, size in zip(amounts, sizes, strict=True)
    )
    assert line.is_limiter((), 0.1)
    assert line.slopes[0][0] > line.slopes[0][1]


@pytest.mark.parametrize("seconds", [0.2, 0.5, 1.0])
def test_limiter_with_long_windows_has_a_constant_rate(seconds: float) -> None:
    once = release(round(300 * seconds), read_ms=9600, inflight=32, seconds=seconds)
    assert is_limiter([once] * (1 + max(4, round(2 / seconds))))
    assert not is_limiter([once] * 4)


@given(requests=st.integers(20, 2000), late=st.integers(0, 18), late_at=st.integers(1, 18))
def test_rate_is_constant_despite_a_late_sample(requests: int, late: int, late_at: int) -> None:
    """A limiter without windows serves in proportion to the time between samples."""
    more = requests * late // 100
    amounts = [requests] * 21
    amounts[late_at] += more
    amounts[late_at + 1] -= more
    assert is_limiter(
        release(each, read_ms=each * 20, inflight=32, seconds=0.1 * each / requests)
        for each in amounts
    )


@given(late_s=st.floats(-0.03, 0.03), late_at=st.integers(1, 18))
def test_rate_by_windows_is_constant_despite_a_late_sample(late_s: float, late_at: int) -> None:
    """A limiter with windows serves the same amount in each, whenever samples are taken."""
    lengths = [0.1] * 21
    lengths[late_at] += late_s
    lengths[late_at + 1] -= late_s
    assert is_limiter(
        release(30, read_ms=960, inflight=32, seconds=seconds) for seconds in lengths
    )


@given(
    st.lists(st.integers(1, 400), min_size=2, max_size=60),
    st.sampled_from([1, 8]),
)
def test_line_is_near_all_its_releases(amounts: list[int], inflight: int) -> None:
    """There is a slope at which no sum differs by more than the filter allows."""
    line, start = NO_LINE, 0
    for number, each in enumerate(amounts):
        line = line.plus(release(each, read_ms=200, inflight=inflight), 0.1)
        if line.releases == 0:
            start = number + 1
    own = amounts[start:]
    assert line.releases == len(own)
    assert line.requests == sum(own)
    low, high = line.slopes[0]
    if own and low <= high:
        for number, total in enumerate(accumulate(own), start=1):
            allowed = 1 + 0.0025 * total / number
            assert abs(total - (low + high) / 2 * number) <= allowed + 1e-6


def differs_by(amounts: list[int], rate: float) -> float:
    """Return by how much the sums of amounts differ from a line of a rate, from least to most."""
    ends = [end - rate * number for number, end in enumerate(accumulate(amounts, initial=0))]
    return max(ends) - min(ends)


@given(
    rate=st.floats(10.0, 200.0),
    changes=st.dictionaries(st.integers(1, 19), st.sampled_from([-2, -1, 1, 2]), max_size=3),
)
def test_releases_are_regular_if_one_rate_is_near_all_of_them(
    rate: float, changes: dict[int, int]
) -> None:
    ends = [int(rate * number) + changes.get(number, 0) for number in range(21)]
    amounts = [end - before for before, end in pairwise(ends)]
    near = P.irregular_requests + P.straight_share * sum(amounts) / len(amounts)
    found = is_regular(tuple(release(each, read_ms=960) for each in amounts), 0.1)
    mean = sum(amounts) / len(amounts)
    rates = [mean + step / 2000 for step in range(-1000, 1001)]
    nearest = min(differs_by(amounts, each) for each in rates)
    if sum(amounts) < P.regular_requests or nearest > near + 0.02:
        assert not found
    elif nearest <= near:
        assert found


@given(
    iops=st.floats(105.0, 5000.0),
    window_s=st.sampled_from([0.01, 0.05, 0.1]),
    phase=st.floats(0.0, 0.99),
)
def test_limiter_is_regular_whatever_it_admits_in_a_window(
    iops: float, window_s: float, phase: float
) -> None:
    """It admits whole requests, and keeps the rest of its tokens."""
    each = iops * window_s
    windows = round(0.1 / window_s)
    ends = [int(each * windows * number + phase) for number in range(22)]
    assert is_limiter(
        release(end - before, read_ms=960, inflight=32) for before, end in pairwise(ends)
    )


def test_limiter_of_reads_is_regular_whatever_is_written() -> None:
    written = [3, 17, 8, 30, 1, 22, 14, 9, 27, 5] * 2
    releases = tuple(
        msgspec.structs.replace(
            release(20, read_ms=960, inflight=32), writes=each, written_bytes=each * 4096
        )
        for each in written
    )
    assert is_regular(releases, 0.1)
    assert not is_regular(tuple(each.without_reads() for each in releases), 0.1)
