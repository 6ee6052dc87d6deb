"""Service level agreements that providers publish, and what they say for stalled time.

They are about disks that do not answer, not about slow ones. A share of the time for which rates
are stated is in the catalogue (`promised_time_share`).
"""

from typing import NamedTuple

from disksla.report.document import Allowance, Uptime


class ServiceCredit(NamedTuple):
    """A service credit: a share of the price, for an uptime below a share of the time."""

    below_ratio: float
    credit_ratio: float


class PublishedSla(NamedTuple):
    """The agreement of one provider."""

    title: str
    url: str
    date: str
    """Day of its revision, or of reading a page without one."""
    says: str
    objective_ratio: float | None = None
    """None if it does not count disks that do not answer."""
    tiers: tuple[ServiceCredit, ...] | None = None
    """From the mildest; None if the credits are not known."""


_PUBLISHED = {
    "vk": PublishedSla(
        title="Volume SLA of VK Cloud",
        url="https://cloud.vk.com/docs/en/computing/iaas/concepts/volume-sla",
        date="2026-08-21",
        says="States rates and latencies of disks, for requests of a size with a queue depth. It"
        " names no share of the time and no compensation.",
    ),
    "aws": PublishedSla(
        title="Amazon Elastic Block Store Service Level Agreement, volume level",
        url="https://aws.amazon.com/ebs/sla/",
        date="2022-05-31",
        says="Counts the time in which a volume performs no reads and writes while some are"
        " pending, in a monthly billing cycle. It does not cover rates.",
        objective_ratio=0.999,
        tiers=(ServiceCredit(0.999, 0.10), ServiceCredit(0.99, 0.30), ServiceCredit(0.95, 1.0)),
    ),
    "gcp": PublishedSla(
        title="Compute Engine Service Level Agreement, single instance",
        url="https://cloud.google.com/compute/sla",
        date="2026-11-23",
        says="Counts loss of external connectivity or of access to Persistent Disks, in a calendar"
        " month. 99.95 % for memory-optimized machines. It does not cover rates.",
        objective_ratio=0.999,
    ),
    "yandex": PublishedSla(
        title="Service Level for Yandex Compute Cloud, single virtual machine",
        url="https://yandex.com/legal/cloud_sla_compute",
        date="2026-11-23",
        says="Counts loss of connectivity or of the boot disk; for another disk, the line below"
        " does not apply. It does not cover rates.",
        objective_ratio=0.9995,
        tiers=(ServiceCredit(0.9995, 0.10), ServiceCredit(0.99, 0.15), ServiceCredit(0.95, 0.30)),
    ),
    "azure": PublishedSla(
        title="SLA for Virtual Machines",
        url="https://azure.microsoft.com/support/legal/sla/virtual-machines/",
        date="2026-11-23",
        says="Covers connectivity of virtual machines, not disks that do not answer, and not"
        " rates.",
    ),
}


def uptime(provider: str, stalled_s: float, period_s: float) -> Uptime | None:
    """Return what the agreement of a provider says for stalled time; None if none is known.

    Time that was not assessed counts as uptime.
    """
    sla = _PUBLISHED.get(provider)
    if sla is None:
        return None
    ratio = credit = None
    if sla.objective_ratio is not None:
        ratio = 1 - stalled_s / period_s
        if sla.tiers is not None:
            reached = [tier.credit_ratio for tier in sla.tiers if ratio < tier.below_ratio]
            credit = max(reached, default=0.0)
    return Uptime(
        title=sla.title,
        url=sla.url,
        date=sla.date,
        says=sla.says,
        stalled_s=None if ratio is None else stalled_s,
        uptime_ratio=ratio,
        objective_ratio=sla.objective_ratio,
        credit_ratio=credit,
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
