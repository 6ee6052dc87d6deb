"""Sentences on what the provider counts of a disk, and what that contradicts."""

from collections.abc import Iterator, Mapping

from disksla.pipeline import CONTRADICTIONS, NOT_THROTTLED, Agreement, Contradiction, DiskSnapshot
from disksla.units import format_duration, format_percent

LEAST_CONTRADICTED_S = 10.0
"""Below this, a contradiction may be by chance, as while a disk is resized."""

_LIMIT_NAMES: Mapping[str, str] = {
    "iops": "by the IOPS of the disk",
    "bandwidth": "by its bandwidth",
    "machine_iops": "by the IOPS of the machine",
    "machine_bandwidth": "by the bandwidth of the machine",
}
CONTRADICTION_TEXTS: Mapping[str, str] = {
    "limit_too_high": "the provider throttled the disk below the limits of its terms",
    "limit_too_low": (
        "the disk served more than the limits of its terms, and the provider did not throttle it"
    ),
    "credits_too_high": (
        "the provider throttled the disk below its burst rate, although burst credits should have"
        " been left"
    ),
}
"""What happened, as the rest of a sentence that begins with how long."""
_CONCLUSIONS: Mapping[Contradiction, str] = {
    "limit_too_high": "Its terms promise more than the provider enforces.",
    "limit_too_low": "The provider allows more than its terms say.",
    "credits_too_high": "Its burst credits are fewer than shown.",
}


def explain_provider(snapshot: DiskSnapshot) -> Iterator[str]:
    """Yield sentences on what the provider counted since the daemon started; none without it."""
    if snapshot.agreement is None or not any(snapshot.agreement.seconds):
        return
    yield _counted(snapshot.agreement)
    for contradiction in CONTRADICTIONS:
        seconds = snapshot.contradicted_s.get(contradiction, 0.0)
        if seconds >= LEAST_CONTRADICTED_S:
            what = CONTRADICTION_TEXTS[contradiction]
            yield f"For {format_duration(seconds)} {what}. {_CONCLUSIONS[contradiction]}"


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
