"""Service level agreements that providers publish, and what they say for stalled time.

They are about disks that do not answer, not about slow ones. A share of the time for which rates
are stated is in the catalogue (`promised_time_share`).
"""

import msgspec

from disksla.base.package_files import file_beside
from disksla.measure.report.document import Allowance, Uptime


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
