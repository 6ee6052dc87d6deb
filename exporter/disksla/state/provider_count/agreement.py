"""How long this program and the provider say that a disk was throttled, and whether they agree.

Both are seconds by limit in the same time. When within it a disk was throttled is not known of the
provider, so both are laid over each other as far as they can be: the same limit first.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from disksla.base.units import format_duration, format_percent
from disksla.verdict.throttling import LIMIT_KINDS, UNKNOWN_LIMIT, LimitKind, Throttle

PROVIDER_LIMITS: tuple[LimitKind, ...] = tuple(
    limit for limit in LIMIT_KINDS if limit != UNKNOWN_LIMIT.limit
)
"""The limits that a provider can name."""
NOT_THROTTLED = "none"
ANSWERS: tuple[str, ...] = (NOT_THROTTLED, *LIMIT_KINDS)
"""What this program says of a disk at one moment."""
PROVIDER_ANSWERS: tuple[str, ...] = (NOT_THROTTLED, *PROVIDER_LIMITS)
"""What the provider says of it."""
PAIRS: tuple[tuple[str, str], ...] = tuple(
    (own, provider) for own in ANSWERS for provider in PROVIDER_ANSWERS
)
"""Both answers, in the order of `Agreement.seconds`."""
NO_SECONDS: tuple[float, ...] = (0.0,) * len(PROVIDER_LIMITS)
"""Seconds by limit of the provider, if it did not throttle."""


def added(amounts: tuple[float, ...], more: tuple[float, ...]) -> tuple[float, ...]:
    """Return the sums, in the same order."""
    return tuple(a + b for a, b in zip(amounts, more, strict=True))


class Agreement(msgspec.Struct, frozen=True, gc=False):
    """Seconds by both answers; their sum is the time in which both are known."""

    seconds: tuple[float, ...] = (0.0,) * len(PAIRS)
    """In the order of PAIRS."""

    def plus(self, other: "Agreement") -> "Agreement":
        """Return the sum."""
        return Agreement(added(self.seconds, other.seconds))

    def by_pair(self) -> dict[tuple[str, str], float]:
        """Return the seconds by both answers, own first."""
        return dict(zip(PAIRS, self.seconds, strict=True))


def agreement_of(
    duration_s: float, own_s: Sequence[float], provider_s: Sequence[float]
) -> Agreement:
    """Return the agreement in a time.

    `own_s` are the throttled seconds by limit in the order of LIMIT_KINDS, of which the sum is at
    most the duration; `provider_s` are those of the provider in the order of PROVIDER_LIMITS. The
    provider may count the same time for several limits: what is beyond the duration is taken from
    the limits about which both disagree.

    Both are matched as far as they can be, which is the most that they may agree; the rest of one
    is divided over the rest of the other in proportion.
    """
    own = _with_none(duration_s, own_s)
    provider = _with_none(duration_s, [min(each_s, duration_s) for each_s in provider_s])
    both = [min(pair) for pair in zip(own, provider, strict=False)]
    own_left = [*own]
    for index, matched_s in enumerate(both):
        own_left[index] -= matched_s
    provider_left = [
        total_s - matched_s for total_s, matched_s in zip(provider, both, strict=True)
    ]
    whole_s = sum(provider_left)
    shares = [left_s / whole_s if whole_s else 0.0 for left_s in provider_left]
    if not whole_s:  # rounding has left nothing to divide
        shares[0] = 1.0
    return Agreement(
        tuple(
            own_left[row] * share + (both[row] if row == column else 0.0)
            for row in range(len(ANSWERS))
            for column, share in enumerate(shares)
        )
    )


def named_seconds(
    agreement: Agreement, provider_s: Sequence[float], around_s: Sequence[float]
) -> tuple[float, ...]:
    """Return the throttled seconds of this program by the limit that the provider names.

    They are in the order of LIMIT_KINDS. What the provider counts for a limit is of that limit.
    Where it counts less time than this program, the rest is of the own limit if the provider names
    it at all, else of the one that it counts most. `around_s` are its seconds right before and
    after; they decide where it counts none. If these have none either, no limit that the provider
    knows was reached, and the limit is unknown.
    """
    named_s: dict[str, float] = dict.fromkeys(LIMIT_KINDS, 0.0)
    reached_s = provider_s if any(provider_s) else around_s
    for (own, provider), seconds in agreement.by_pair().items():
        if own == NOT_THROTTLED:
            continue
        named = provider if provider != NOT_THROTTLED else named_limit(own, reached_s)
        named_s[named] += seconds
    return tuple(named_s.values())


def named_limit(own: str, provider_s: Sequence[float]) -> LimitKind:
    """Return the limit at which a verdict says that a disk was throttled, by the provider's count.

    It is the own one if the provider counts it, else the one that it counts most; unknown if none.
    """
    by_limit_s = dict(zip(PROVIDER_LIMITS, provider_s, strict=True))
    counted = [limit for limit in PROVIDER_LIMITS if by_limit_s[limit]]
    if not counted:
        return UNKNOWN_LIMIT.limit
    return max(counted, key=lambda limit: (limit == own, by_limit_s[limit]))


def with_limit(throttle: Throttle, limit: LimitKind) -> Throttle:
    """Return where a disk is throttled, with the limit that the provider counts."""
    if limit == UNKNOWN_LIMIT.limit:
        return UNKNOWN_LIMIT
    return Throttle("base" if throttle.level == "unknown" else throttle.level, limit)


def _with_none(duration_s: float, by_limit_s: Sequence[float]) -> tuple[float, ...]:
    """Return seconds by answer: those by limit, after the time in which it is not throttled."""
    return (max(0.0, duration_s - sum(by_limit_s)), *by_limit_s)


_LIMIT_NAMES: Mapping[str, str] = {
    "iops": "by the IOPS of the disk",
    "bandwidth": "by its bandwidth",
    "machine_iops": "by the IOPS of the machine",
    "machine_bandwidth": "by the bandwidth of the machine",
}


def explain_provider(agreement: Agreement | None) -> Iterator[str]:
    """Yield sentences on what the provider counted since the daemon started; none without it."""
    if agreement is None or not any(agreement.seconds):
        return
    yield _counted(agreement)


def _counted(agreement: Agreement) -> str:
    """Return how long the provider throttled the disk, and how well the verdicts agree."""
    by_pair = agreement.by_pair()
    whole = format_duration(sum(agreement.seconds))
    counts = f"The provider counts how long it throttles this disk: of {whole},"
    by_limit = {
        limit: sum(seconds for (_, named), seconds in by_pair.items() if named == limit)
        for limit in _LIMIT_NAMES
    }
    counted = ", ".join(
        f"{format_duration(seconds)} {_LIMIT_NAMES[limit]}"
        for limit, seconds in by_limit.items()
        if seconds
    )
    throttled_s = sum(agreement.seconds) - by_pair[NOT_THROTTLED, NOT_THROTTLED]
    if not throttled_s:
        return f"{counts} none, and the verdicts agree."
    both_s = sum(seconds for pair, seconds in by_pair.items() if NOT_THROTTLED not in pair)
    same_s = sum(by_pair[limit, limit] for limit in _LIMIT_NAMES)
    return (
        f"{counts} {counted or 'none'}. The limits named here are those that it counts. By"
        f" themselves, the verdicts agree in {format_percent(both_s / throttled_s)} of the"
        f" throttled time, and name the same limit in {format_percent(same_s / throttled_s)}."
    )
