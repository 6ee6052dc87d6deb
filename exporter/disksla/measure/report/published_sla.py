"""Service level agreements that providers publish, and what they say for stalled time.

They are about disks that do not answer, not about slow ones. A share of the time for which rates
are stated is in the catalogue (`promised_time_share`).
"""

from msgspec.structs import replace

from disksla.measure.report.document import Allowance, Uptime

_PUBLISHED: dict[str, Uptime] = {
    "vk": Uptime(
        title="Volume SLA of VK Cloud",
        url="https://cloud.vk.com/docs/en/computing/iaas/concepts/volume-sla",
        date="2026-08-21",
        says="States rates and latencies of disks, for requests of a size with a queue depth. It"
        " names no share of the time and no compensation.",
    ),
    "aws": Uptime(
        title="Amazon Elastic Block Store Service Level Agreement, volume level",
        url="https://aws.amazon.com/ebs/sla/",
        date="2022-05-31",
        says="Counts the time in which a volume performs no reads and writes while some are"
        " pending, in a monthly billing cycle. It does not cover rates.",
        objective_ratio=0.999,
    ),
    "gcp": Uptime(
        title="Compute Engine Service Level Agreement, single instance",
        url="https://cloud.google.com/compute/sla",
        date="2026-11-23",
        says="Counts loss of external connectivity or of access to Persistent Disks, in a calendar"
        " month. 99.95 % for memory-optimized machines. It does not cover rates.",
        objective_ratio=0.999,
    ),
    "yandex": Uptime(
        title="Service Level for Yandex Compute Cloud, single virtual machine",
        url="https://yandex.com/legal/cloud_sla_compute",
        date="2026-11-23",
        says="Counts loss of connectivity or of the boot disk; for another disk, the line below"
        " does not apply. It does not cover rates.",
        objective_ratio=0.9995,
    ),
    "azure": Uptime(
        title="SLA for Virtual Machines",
        url="https://azure.microsoft.com/support/legal/sla/virtual-machines/",
        date="2026-11-23",
        says="Covers connectivity of virtual machines, not disks that do not answer, and not"
        " rates.",
    ),
}
"""The date is that of a revision, or of reading a page without one."""
_CREDITS = {
    "aws": ((0.999, 0.10), (0.99, 0.30), (0.95, 1.0)),
    "yandex": ((0.9995, 0.10), (0.99, 0.15), (0.95, 0.30)),
}
"""Service credits a share of the price, for an uptime below a share of the time."""


def uptime(provider: str, stalled_s: float, period_s: float) -> Uptime | None:
    """Return what the agreement of a provider says for stalled time; None if none is known.

    Time that was not assessed counts as uptime.
    """
    sla = _PUBLISHED.get(provider)
    if sla is None or sla.objective_ratio is None:
        return sla
    ratio = 1 - stalled_s / period_s
    credit = None
    if provider in _CREDITS:
        reached = [each for below, each in _CREDITS[provider] if ratio < below]
        credit = max(reached, default=0.0)
    return replace(sla, stalled_s=stalled_s, uptime_ratio=ratio, credit_ratio=credit)


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
