"""Close samples of real disks, with and without limiters, beside the truth."""

from functools import cache
from itertools import pairwise

import msgspec
import pytest

from disksla.base.units import KIB
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.verdict.interval.interval import Interval
from disksla.verdict.throttling.observation import observe
from disksla.verdict.throttling.pauses import find_clock, find_pauses
from support.close_recordings import DISK, NAMES, ORIGIN_S, CloseRecording, Judged, close_recording
from support.close_recordings import judged as judge

pytestmark = pytest.mark.no_coverage

FROM_S, TO_S = 4.0, 12.0
"""Times of the recordings that are compared: 13 s, of which the last second may be undecided."""
STEADY_S = 7.0
"""When an even limiter was followed for some seconds."""
NEAR = 0.08
"""Of the time."""
AGAIN_S = 10.0
"""When a daemon takes close samples again, after the first four seconds."""
WINDOWS = {name: 0.1 for name in NAMES if "windows_100_ms" in name} | {
    "windows_50_ms_postgresql_8_clients": 0.05,
    "windows_1_s_postgresql_16_clients": 1.0,
}
RARELY_THROTTLED = "network_2_ms_gamma_windows_100_ms_80_percent_load"
LEAKY = [name for name in NAMES if name.startswith("leaky")]
FREE = [name for name in NAMES if name.startswith("no_limit")]
LARGE_BYTES = 64 * KIB


@cache
def judged(name: str, share: float | None = None, *, always_looked_at: bool = True) -> Judged:
    """Judge a recording, with the limit as terms, multiplied by a share, or without terms."""
    recording = close_recording(name)
    terms = None if share is None else scaled_terms(true_terms(recording), share)
    return judge(recording, terms, always_looked_at=always_looked_at)


def true_terms(recording: CloseRecording) -> SumTerms:
    """Return the limit, or what a disk without one served."""
    if recording.terms is not None:
        return recording.terms
    iops, bytes_per_second = recording.rates
    if bytes_per_second > LARGE_BYTES * iops:
        return SumTerms(bytes_per_second=bytes_per_second)
    return SumTerms(iops=iops)


def scaled_terms(terms: SumTerms, share: float) -> SumTerms:
    rates = {"iops": terms.iops, "bytes_per_second": terms.bytes_per_second}
    return msgspec.structs.replace(
        terms, **{name: rate * share for name, rate in rates.items() if rate is not None}
    )


def true_share(name: str, from_s: float = FROM_S, to_s: float = TO_S) -> float:
    return close_recording(name).throttled_s(from_s, to_s) / (to_s - from_s)


def test_all_recordings_are_tested() -> None:
    assert {*WINDOWS, *LEAKY, *FREE} == set(NAMES)


@pytest.mark.parametrize("terms", [None, 1.0], ids=["no-terms", "terms"])
@pytest.mark.parametrize("name", WINDOWS)
def test_pauses_are_the_throttled_time(name: str, terms: float | None) -> None:
    found = judged(name, terms).throttled_share(FROM_S, TO_S)
    assert found == pytest.approx(true_share(name), abs=NEAR)


@pytest.mark.parametrize("terms", [None, 1.0], ids=["no-terms", "terms"])
@pytest.mark.parametrize("name", WINDOWS)
def test_time_in_between_is_like_that_which_is_looked_at(name: str, terms: float | None) -> None:
    """Four seconds of a load are looked at, and it varies."""
    found = judged(name, terms, always_looked_at=False).throttled_share(FROM_S, TO_S)
    assert found == pytest.approx(true_share(name), abs=2 * NEAR)


@pytest.mark.parametrize("name", WINDOWS)
def test_pauses_are_found_again_when_the_disk_is_looked_at_again(name: str) -> None:
    found = judged(name, always_looked_at=False).throttled_share(AGAIN_S, TO_S)
    assert found == pytest.approx(true_share(name, AGAIN_S, TO_S), abs=NEAR)


NAMED = [name for name in WINDOWS if name != RARELY_THROTTLED]
PARTLY_NAMED = "network_2_ms_gamma_windows_100_ms_postgresql_32_clients"
"""Its rate is too low for the terms where every third of the windows is used to the end, and
flushes are counted in each."""


@pytest.mark.parametrize("always_looked_at", [True, False], ids=["always", "at-times"])
@pytest.mark.parametrize("name", NAMED)
def test_limit_has_its_name_if_the_terms_have_its_rate(name: str, always_looked_at: bool) -> None:
    expected = "iops" if true_terms(close_recording(name)).iops else "bandwidth"
    assert set(judged(name, always_looked_at=always_looked_at).limits) == {"unknown"}
    with_terms = judged(name, 1.0, always_looked_at=always_looked_at).limits
    if name != PARTLY_NAMED:
        assert with_terms[expected] >= 0.95 * sum(with_terms.values())
    else:
        assert with_terms.keys() <= {expected, "unknown"}
    above = judged(name, 3.0, always_looked_at=always_looked_at)
    assert set(above.limits) <= {"unknown"}
    seen = above.between(STEADY_S, TO_S)
    assert [row.verdict for row in seen].count("below") > 0.9 * len(seen), "depth is no reason"


@pytest.mark.parametrize("name", NAMED)
def test_length_of_the_window_is_exact(name: str) -> None:
    """Also where the rate of the limit is uncertain, because flushes are counted as writes."""
    close = [tick.close[DISK.name] for tick in close_recording(name).ticks()]
    lasting = Interval(1, 0, 4 * KIB, 0, 0.0, 0.1, 0, 0, 1, inflight_before=1)
    observations = [observe(lasting, before[-1], samples) for before, samples in pairwise(close)]
    steps = [step for each in observations for step in each.steps]
    for from_s in (0.0, 1.5, 3.0):
        within = [step for step in steps if from_s < step.end_s - ORIGIN_S <= from_s + 10]
        clock = find_clock(find_pauses(within))
        assert clock is not None
        assert clock.window_s == pytest.approx(WINDOWS[name], rel=0.02)
    published = {row.limiter_window_s for row in judged(name).rows if row.limiter_window_s}
    assert published
    assert all(each == pytest.approx(WINDOWS[name], rel=0.02) for each in published)


def test_load_that_rarely_waits_is_not_throttled() -> None:
    assert judged(RARELY_THROTTLED, 1.0).limits == {}


@pytest.mark.parametrize("always_looked_at", [True, False], ids=["always", "at-times"])
@pytest.mark.parametrize("name", LEAKY)
def test_leaky_bucket_is_that_of_the_terms(name: str, always_looked_at: bool) -> None:
    """That of one reader is seen for all of the time in which a request is in flight."""
    found = judged(name, 1.0, always_looked_at=always_looked_at)
    assert set(found.limits) == {"iops"}
    share, true = found.throttled_share(STEADY_S, TO_S), true_share(name, STEADY_S)
    if name == "leaky_bucket_one_reader":
        assert true <= share <= 1
    else:
        assert share == pytest.approx(true, rel=0.25)
    for terms in (None, 3.0):
        without = judged(name, terms, always_looked_at=always_looked_at)
        assert without.limits == {}, "it has no pauses"


@pytest.mark.parametrize(
    ("promise", "always_looked_at"),
    [(None, True), (None, False), (1.1, True), (1.1, False), (1.3, True), (3.0, True)],
)
@pytest.mark.parametrize("name", FREE)
def test_disk_without_a_limiter_is_not_throttled(
    name: str, promise: float | None, always_looked_at: bool
) -> None:
    found = judged(name, promise, always_looked_at=always_looked_at)
    assert found.limits == {}
    assert len(found.rows) >= 115
