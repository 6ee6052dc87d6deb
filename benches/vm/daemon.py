"""Metrics of one disk, or of the machine, from the daemon in the virtual machine."""

from collections import defaultdict

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from vm.guest import Guest

_METRICS = "http://localhost:10056/metrics"


class Scrape(msgspec.Struct, frozen=True):
    """Metrics of a disk or the machine, and the times of the guest that they were read between."""

    begun_s: float
    ended_s: float
    metrics: str


class DiskMetrics(msgspec.Struct, frozen=True):
    """What the daemon said of one disk, or of all under the limits of the machine."""

    limits: dict[str, float]
    """Throttled seconds by limit."""
    limit_iops: float | None
    """Limit by the terms."""
    ceiling_iops: float | None
    ceiling_bytes_per_second: float | None
    credits: dict[str, tuple[float, float]]
    """Bounds, by resource."""

    @property
    def throttled_s(self) -> float:
        """Throttled seconds in all, at any limit."""
        return sum(self.limits.values())


def of_device(device: str) -> str:
    """Return what the metrics of a disk contain."""
    return f'device="{device}"'


MACHINE_PREFIX = "disksla_machine_"
OF_MACHINE = f"^{MACHINE_PREFIX}"
"""What the metrics of the machine contain."""


def scrape(guest: Guest, pattern: str) -> Scrape:
    """Read the metrics that contain a pattern; raise OSError if the daemon does not answer."""
    uptime = "cut -d' ' -f1 /proc/uptime"
    curl = f"curl --silent --show-error --fail --max-time 30 {_METRICS}"
    output = guest.run(f"{uptime}; {curl} | grep '{pattern}' | grep -v _bucket; {uptime}")
    first, *lines, last = output.splitlines()
    metrics = "".join(f"{line}\n" for line in lines if not line.startswith("#"))
    return Scrape(float(first), float(last), metrics)


def disk_metrics(page: str, prefix: str = "disksla_") -> DiskMetrics:
    """Return the metrics with a prefix from a page that has only one disk or machine."""
    values: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            labels = sample.labels
            values[sample.name][labels.get("limit") or labels.get("resource") or ""] = sample.value
    lower = values[f"{prefix}burst_credits_lower_bound"]
    upper = values[f"{prefix}burst_credits_upper_bound"]
    return DiskMetrics(
        values[f"{prefix}throttled_seconds_total"],
        values["disksla_limit_read_iops"].get(""),
        values["disksla_observed_ceiling_iops"].get(""),
        values["disksla_observed_ceiling_bytes_per_second"].get(""),
        {resource: (lower[resource], upper[resource]) for resource in lower},
    )
