"""Metrics of one disk from the daemon in the virtual machine."""

from collections import defaultdict

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from vm.guest import Guest

_METRICS = "http://localhost:10056/metrics"


class Scrape(msgspec.Struct, frozen=True):
    """Metrics of one disk, and the times of the guest that they were read between."""

    begun_s: float
    ended_s: float
    metrics: str


class DiskMetrics(msgspec.Struct, frozen=True):
    """What the daemon said of one disk."""

    throttled_s: float
    """In all, at any limit."""
    limit_iops: float | None
    """Limit by the terms."""
    ceiling_iops: float | None
    ceiling_bytes_per_second: float | None
    credits: dict[str, tuple[float, float]]
    """Bounds, by resource."""


def scrape(guest: Guest, device: str) -> Scrape:
    """Read the metrics of a disk; raise OSError if the daemon does not answer."""
    uptime = "cut -d' ' -f1 /proc/uptime"
    curl = f"curl --silent --show-error --fail --max-time 30 {_METRICS}"
    output = guest.run(
        f"{uptime}; {curl} | grep 'device=\"{device}\"' | grep -v _bucket; {uptime}"
    )
    first, *lines, last = output.splitlines()
    metrics = "".join(f"{line}\n" for line in lines if not line.startswith("#"))
    return Scrape(float(first), float(last), metrics)


def disk_metrics(page: str) -> DiskMetrics:
    """Return the metrics of one disk from a page that has only this disk."""
    values: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            labels = sample.labels
            values[sample.name][labels.get("limit") or labels.get("resource") or ""] = sample.value
    lower = values["disksla_burst_credits_lower_bound"]
    upper = values["disksla_burst_credits_upper_bound"]
    return DiskMetrics(
        sum(values["disksla_throttled_seconds_total"].values()),
        values["disksla_limit_read_iops"].get(""),
        values["disksla_observed_ceiling_iops"].get(""),
        values["disksla_observed_ceiling_bytes_per_second"].get(""),
        {resource: (lower[resource], upper[resource]) for resource in lower},
    )
