"""Sentences on what the provider counts of a disk."""

from collections.abc import Iterator, Mapping

from disksla.provider_count.agreement import NOT_THROTTLED, Agreement
from disksla.units import format_duration, format_percent

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
