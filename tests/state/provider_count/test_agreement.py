"""Agreement of this program with the provider: both answers laid over each other."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.state.provider_count.agreement import (
    ANSWERS,
    NOT_THROTTLED,
    PROVIDER_ANSWERS,
    PROVIDER_LIMITS,
    Agreement,
    agreement_of,
    explain_provider,
    named_seconds,
    with_limit,
)
from disksla.verdict.throttling.throttle import LIMIT_KINDS, UNKNOWN_LIMIT, LimitKind, Throttle

SHARES = st.lists(st.floats(0, 1), min_size=6, max_size=6).filter(any)


def divided(duration_s: float, shares: Sequence[float], count: int) -> list[float]:
    """Return seconds of which the sum is at most the duration, as counters of one time have."""
    whole = sum(shares[: count + 1])
    return [duration_s * share / whole if whole else 0.0 for share in shares[:count]]


durations = st.floats(0.1, 3)
owns = st.builds(lambda shares: divided(1, shares, len(LIMIT_KINDS)), SHARES)
providers = st.builds(lambda shares: divided(1, shares, len(PROVIDER_LIMITS)), SHARES)
anything = st.lists(st.floats(0, 5), min_size=4, max_size=4)


def own_of(agreement: Agreement) -> dict[str, float]:
    return {
        answer: sum(s for (own, _), s in agreement.by_pair().items() if own == answer)
        for answer in ANSWERS
    }


def provider_of(agreement: Agreement) -> dict[str, float]:
    return {
        answer: sum(s for (_, provider), s in agreement.by_pair().items() if provider == answer)
        for answer in PROVIDER_ANSWERS
    }


@given(durations, owns, anything)
def test_sum_is_the_duration_and_own_answers_stay(
    duration_s: float, own: list[float], provider_s: list[float]
) -> None:
    own_s = [duration_s * each for each in own]
    agreement = agreement_of(duration_s, own_s, provider_s)
    assert min(agreement.seconds) >= 0
    assert sum(agreement.seconds) == pytest.approx(duration_s)
    assert own_of(agreement) == pytest.approx(
        {NOT_THROTTLED: duration_s - sum(own_s), **dict(zip(LIMIT_KINDS, own_s, strict=True))}
    )


@given(durations, owns, providers)
def test_answers_of_the_provider_stay_if_they_fit(
    duration_s: float, own: list[float], provider: list[float]
) -> None:
    provider_s = [duration_s * each for each in provider]
    agreement = agreement_of(duration_s, [duration_s * each for each in own], provider_s)
    by_limit = dict(zip(PROVIDER_LIMITS, provider_s, strict=True))
    none_s = duration_s - sum(provider_s)
    assert provider_of(agreement) == pytest.approx({NOT_THROTTLED: none_s, **by_limit}, abs=1e-9)


@given(owns, providers)
def test_both_agree_as_far_as_they_can(own: list[float], provider: list[float]) -> None:
    agreement = agreement_of(1.0, own, provider)
    by_pair = agreement.by_pair()
    for limit, own_s, provider_s in zip(PROVIDER_LIMITS, own, provider, strict=False):
        assert by_pair[limit, limit] == pytest.approx(min(own_s, provider_s), abs=1e-9)
    both_s = sum(s for pair, s in by_pair.items() if NOT_THROTTLED not in pair)
    assert both_s == pytest.approx(min(sum(own), sum(provider)), abs=1e-9)


def test_time_that_the_provider_counts_twice_is_of_the_limit_of_the_verdict() -> None:
    by_pair = agreement_of(1.0, [1.0, 0, 0, 0, 0], [1.0, 1.0, 0, 0]).by_pair()
    assert {pair: s for pair, s in by_pair.items() if s} == {("iops", "iops"): 1.0}


def test_time_that_the_provider_counts_twice_is_divided_if_no_verdict_says_it() -> None:
    by_pair = agreement_of(1.0, [0.0] * 5, [1.0, 1.0, 0, 0]).by_pair()
    assert {pair: s for pair, s in by_pair.items() if s} == {
        ("none", "iops"): 0.5,
        ("none", "bandwidth"): 0.5,
    }


def test_agreements_are_added() -> None:
    ours = agreement_of(1.0, [1.0, 0, 0, 0, 0], [0.0] * 4)
    both = ours.plus(agreement_of(2.0, [0.0] * 5, [0.0] * 4)).by_pair()
    assert (both["iops", "none"], both["none", "none"]) == (1.0, 2.0)


def named(
    own_s: dict[str, float], provider_s: dict[str, float], **around_s: float
) -> dict[str, float]:
    agreement = agreement_of(
        1.0,
        [own_s.get(limit, 0.0) for limit in LIMIT_KINDS],
        [provider_s.get(limit, 0.0) for limit in PROVIDER_LIMITS],
    )
    seconds = named_seconds(
        agreement,
        [provider_s.get(limit, 0.0) for limit in PROVIDER_LIMITS],
        [around_s.get(limit, 0.0) for limit in PROVIDER_LIMITS],
    )
    return {limit: s for limit, s in zip(LIMIT_KINDS, seconds, strict=True) if s}


@pytest.mark.parametrize(
    ("own_s", "provider_s", "around_s", "expected"),
    [
        ({"iops": 1.0}, {"machine_iops": 1.0}, {}, {"machine_iops": 1.0}),
        ({"unknown": 1.0}, {"bandwidth": 0.25}, {}, {"bandwidth": 1.0}),
        ({"iops": 1.0}, {"iops": 0.25}, {}, {"iops": 1.0}),
        ({"iops": 1.0}, {"iops": 0.25, "bandwidth": 0.5}, {}, {"iops": 0.5, "bandwidth": 0.5}),
        ({"iops": 0.5}, {}, {}, {"unknown": 0.5}),
        ({"iops": 0.5}, {}, {"iops": 1.0, "bandwidth": 2.0}, {"iops": 0.5}),
        ({"iops": 0.5}, {}, {"bandwidth": 1.0}, {"bandwidth": 0.5}),
        ({"unknown": 0.5}, {}, {}, {"unknown": 0.5}),
        ({}, {"iops": 1.0}, {}, {}),
    ],
)
def test_name_of_the_limit(
    own_s: dict[str, float],
    provider_s: dict[str, float],
    around_s: dict[str, float],
    expected: dict[str, float],
) -> None:
    assert named(own_s, provider_s, **around_s) == pytest.approx(expected)


@given(owns, anything, anything)
def test_no_throttled_second_is_lost_or_added(
    own: list[float], provider_s: list[float], around_s: list[float]
) -> None:
    seconds = named_seconds(agreement_of(1.0, own, provider_s), provider_s, around_s)
    assert sum(seconds) == pytest.approx(sum(own), abs=1e-9)
    assert min(seconds) >= 0


@pytest.mark.parametrize(
    ("throttle", "limit", "expected"),
    [
        (Throttle("base", "iops"), "machine_iops", Throttle("base", "machine_iops")),
        (Throttle("burst", "iops"), "bandwidth", Throttle("burst", "bandwidth")),
        (UNKNOWN_LIMIT, "iops", Throttle("base", "iops")),
        (Throttle("burst", "iops"), "unknown", UNKNOWN_LIMIT),
    ],
)
def test_level_with_the_limit_of_the_provider(
    throttle: Throttle, limit: LimitKind, expected: Throttle
) -> None:
    assert with_limit(throttle, limit) == expected


def sentences(agreement: Agreement | None) -> list[str]:
    return list(explain_provider(agreement))


def test_nothing_is_said_without_a_count() -> None:
    assert sentences(None) == []
    assert sentences(Agreement()) == []


def test_disk_that_was_not_throttled() -> None:
    [sentence] = sentences(agreement_of(3600.0, [0.0] * 5, [0.0] * 4))
    assert sentence == (
        "The provider counts how long it throttles this disk: of 60 min, none, and the"
        " verdicts agree."
    )


def test_limits_by_the_count() -> None:
    agreement = agreement_of(3600.0, (80.0, 0, 0, 0, 20.0), (75.0, 0, 25.0, 0))
    [sentence] = sentences(agreement)
    assert sentence == (
        "The provider counts how long it throttles this disk: of 60 min, 75 s by the IOPS of the"
        " disk, 25 s by the IOPS of the machine. The limits named here are those that it counts."
        " By themselves, the verdicts agree in 100 % of the throttled time, and name the same"
        " limit in 75 %."
    )


def test_throttled_only_by_the_verdicts() -> None:
    [sentence] = sentences(agreement_of(3600.0, (80.0, 0, 0, 0, 0), [0.0] * 4))
    assert "of 60 min, none. The limits named" in sentence
    assert "agree in 0 % of the throttled time" in sentence
