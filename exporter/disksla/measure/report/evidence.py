"""Evidence beside the verdicts: who used a disk, burst credits, probes, verifications, gaps.

It is read at equal steps, of five minutes or more, not sample by sample. Service level agreements
that providers publish are about disks that do not answer, not about slow ones. A share of the time
for which rates are stated is in the catalogue (`promised_time_share`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from disksla.base.package_files import file_beside
from disksla.measure.prometheus import Series
from disksla.measure.report.document import (
    Allowance,
    ConsumerEvidence,
    CreditsEvidence,
    ProbeEvidence,
    ProbeWindow,
    Uptime,
    Verification,
    VerificationTest,
)

_CREDITS = "disksla_burst_credits"
_LOWER, _UPPER = f"{_CREDITS}_lower_bound", f"{_CREDITS}_upper_bound"
_CAPACITY = f"{_CREDITS}_capacity"
_PROBES = {
    "read-latency": "disksla_probe_read_latency",
    "write-latency": "disksla_probe_write_latency",
}
_USED = ("disksla_consumer_requests_total", "disksla_consumer_bytes_total")
_MOST_CONSUMERS = 5
EVIDENCE = (
    *_USED,
    *(_CREDITS, _LOWER, _UPPER, _CAPACITY),
    *(f"{name}_seconds_{part}" for name in _PROBES.values() for part in ("sum", "count")),
)
"""Metrics of a disk that are read every five minutes."""
_VERIFIED = "disksla_verification_timestamp_seconds"
_OF_TEST = tuple(f"disksla_verification_{what}" for what in ("ratio", "required_ratio", "passed"))
VERIFICATION = (_VERIFIED, *_OF_TEST)
"""Metrics of a disk that are read every hour."""
_REFRESHED = "disksla_terms_last_refresh_timestamp_seconds"
OF_DAEMON = ("disksla_gaps_total", _REFRESHED)
"""Metrics of the daemon that are read every five minutes."""
PROBES_AROUND_S = 3600.0
_EMPTY_SHARE = 0.01

Curve = Mapping[float, float]
"""Values by time."""


def curves(series: Iterable[Series], label: str) -> dict[tuple[str, str], dict[float, float]]:
    """Return the samples by name of the metric and value of a label; parts of a series are one."""
    found: dict[tuple[str, str], dict[float, float]] = {}
    for each in series:
        key = each.name, each.metric.get(label, "")
        found.setdefault(key, {}).update(each.samples())
    return found


def credits_of(series: Iterable[Series]) -> tuple[CreditsEvidence, ...]:
    """Return the burst credits of each resource."""
    by_key = curves(series, "resource")
    resources = sorted(resource for name, resource in by_key if name == _CREDITS)
    found = (_credits(by_key, resource) for resource in resources)
    return tuple(each for each in found if each is not None)


def _credits(by_key: Mapping[tuple[str, str], Curve], resource: str) -> CreditsEvidence | None:
    estimate, lower, upper, capacity = (
        by_key.get((name, resource), {}) for name in (_CREDITS, _LOWER, _UPPER, _CAPACITY)
    )
    times = sorted(estimate.keys() & lower.keys() & upper.keys() & capacity.keys())
    if not times:
        return None
    lowest = min(times, key=lambda at_s: (estimate[at_s], at_s))
    empty_s = sum(
        after - before
        for before, after in pairwise(times)
        if upper[after] < _EMPTY_SHARE * capacity[after]
    )
    return CreditsEvidence(
        resource=resource,
        capacity_credits=capacity[times[-1]],
        lowest_credits=estimate[lowest],
        lowest_lower_bound_credits=lower[lowest],
        lowest_upper_bound_credits=upper[lowest],
        lowest_timestamp_s=lowest,
        last_credits=estimate[times[-1]],
        empty_s=empty_s,
    )


def consumers_of(series: Sequence[Series]) -> tuple[ConsumerEvidence, ...]:
    """Return who used a disk, as shares of what is known, the greatest first."""
    requests, bytes_ = (_shares(series, name) for name in _USED)
    found = [
        ConsumerEvidence(consumer, requests.get(consumer), bytes_.get(consumer))
        for consumer in {*requests, *bytes_}
    ]
    found.sort(
        key=lambda each: (-max(each.requests_ratio or 0, each.bytes_ratio or 0), each.consumer)
    )
    return tuple(found[:_MOST_CONSUMERS])


def _shares(series: Iterable[Series], name: str) -> dict[str, float]:
    """Return the share of each consumer in the increase of a counter; empty if that is zero."""
    increases: defaultdict[str, float] = defaultdict(float)
    for each in series:
        if each.name == name:
            consumer = each.metric.get("consumer", "")
            increases[consumer] += _increase(value for _, value in each.samples())
    whole = sum(increases.values())
    return {consumer: each / whole for consumer, each in increases.items()} if whole else {}


def _increase(values: Iterable[float]) -> float:
    """Return by how much a counter increased; after a reset, from zero."""
    return sum(after if after < before else after - before for before, after in pairwise(values))


class ProbeStep(NamedTuple):
    """What probes of one kind measured up to a time, since the step before."""

    end_s: float
    requests: float
    seconds: float


def probe_steps(series: Sequence[Series]) -> dict[str, list[ProbeStep]]:
    """Return what probes measured, by kind."""
    by_key = curves(series, "")
    found: dict[str, list[ProbeStep]] = {}
    for kind, name in _PROBES.items():
        count = by_key.get((f"{name}_seconds_count", ""), {})
        total = by_key.get((f"{name}_seconds_sum", ""), {})
        steps = []
        for before, after in pairwise(sorted(count.keys() & total.keys())):
            is_reset = count[after] < count[before]
            requests, seconds = (
                each[after] - (0.0 if is_reset else each[before]) for each in (count, total)
            )
            steps.append(ProbeStep(after, requests, seconds))
        if steps:
            found[kind] = steps
    return found


def probes_around(
    steps: Mapping[str, Sequence[ProbeStep]], start_s: float, end_s: float
) -> tuple[ProbeEvidence, ...]:
    """Return what probes measured around an incident; nothing where none ran."""
    ends_s = (start_s - PROBES_AROUND_S, start_s, end_s, end_s + PROBES_AROUND_S)
    found = (
        ProbeEvidence(kind, *(_window(of_kind, *times_s) for times_s in pairwise(ends_s)))
        for kind, of_kind in steps.items()
    )
    return tuple(each for each in found if each.before or each.during or each.after)


def _window(steps: Iterable[ProbeStep], start_s: float, end_s: float) -> ProbeWindow | None:
    inside = [step for step in steps if start_s < step.end_s <= end_s]
    requests = sum(step.requests for step in inside)
    if not requests:
        return None
    return ProbeWindow(round(requests), sum(step.seconds for step in inside) / requests)


def verifications(series: Sequence[Series]) -> tuple[Verification, ...]:
    """Return the verifications, the oldest first."""
    by_key = curves(series, "test")
    ended = by_key.get((_VERIFIED, ""), {})
    found: dict[float, float] = {}
    for at_s in sorted(ended):
        found.setdefault(ended[at_s], at_s)
    tests = sorted({test for name, test in by_key if test})
    return tuple(
        Verification(timestamp_s, tuple(_test(by_key, test, at_s) for test in tests))
        for timestamp_s, at_s in found.items()
    )


def _test(by_key: Mapping[tuple[str, str], Curve], test: str, at_s: float) -> VerificationTest:
    ratio, required, passed = (by_key.get((name, test), {}).get(at_s) for name in _OF_TEST)
    return VerificationTest(test, ratio, required, None if passed is None else bool(passed))


def sampling_gaps(series: Iterable[Series]) -> dict[str, int]:
    """Return how often the daemon could not assess its disks, by reason."""
    found: dict[str, int] = {}
    for (name, reason), counts in sorted(curves(series, "reason").items()):
        number = _increase(counts[at_s] for at_s in sorted(counts))
        if number and name != _REFRESHED:
            found[reason] = round(number)
    return found


def terms_refreshed(series: Iterable[Series], source: str, end_s: float) -> float | None:
    """Return when the terms of a source were last true, as known at a time; None if unknown."""
    times = curves(series, "source").get((_REFRESHED, source), {})
    known = [at_s for at_s in times if at_s <= end_s]
    return times[max(known)] if known else None


class _ServiceCredit(msgspec.Struct, frozen=True):
    below: float
    """Uptime, as a share of the time."""
    ratio: float
    """Share of the price."""


class _Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sla: Uptime
    """The date is that of a revision, or of reading a page without one."""
    credits: tuple[_ServiceCredit, ...] | None = None


_PUBLISHED = msgspec.json.decode(
    file_beside(__file__, "published_sla.json"), type=dict[str, _Published]
)


def uptime(provider: str, stalled_s: float, period_s: float) -> Uptime | None:
    """Return what the agreement of a provider says for stalled time; None if none is known.

    Time that was not assessed counts as uptime.
    """
    published = _PUBLISHED.get(provider)
    if published is None or published.sla.objective_ratio is None:
        return published.sla if published else None
    ratio = 1 - stalled_s / period_s
    credit = None
    if published.credits is not None:
        credit = max((each.ratio for each in published.credits if ratio < each.below), default=0.0)
    return msgspec.structs.replace(
        published.sla, stalled_s=stalled_s, uptime_ratio=ratio, credit_ratio=credit
    )


def allowance(
    time_share: float | None, noncompliant_s: float, period_s: float
) -> Allowance | None:
    """Return how much time the provider may be below its rates; None if it states no share.

    The allowed time is a share of the whole period, so that gaps are in favour of the provider.
    """
    if time_share is None:
        return None
    allowed_s = round((1 - time_share) * period_s, 3)
    return Allowance(time_share, allowed_s, noncompliant_s, noncompliant_s > allowed_s)
