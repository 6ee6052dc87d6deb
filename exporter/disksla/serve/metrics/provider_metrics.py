"""Metrics of what the provider counts itself, on disks that have a statistics page.

The page is that of EBS and of instance store on AWS (docs/clouds/aws.md).
"""

from collections.abc import Callable

from disksla.serve.metrics.metric import Metric, Value, full, keyed
from disksla.state.pipeline import DiskSnapshot
from disksla.state.provider_count import ProviderState


def _current(value: Callable[[ProviderState], Value]) -> Callable[[DiskSnapshot], Value]:
    """Return a function that has no value unless the page was read lately."""

    def of_disk(snapshot: DiskSnapshot) -> Value:
        if snapshot.provider is None or not snapshot.provider_is_current:
            return None
        return value(snapshot.provider)

    return of_disk


def _throttled_s(provider: ProviderState) -> Value:
    return keyed({limit: us / 1e6 for limit, us in provider.throttled_us.items()})


def _queue_length(provider: ProviderState) -> Value:
    return None if provider.last is None else provider.last.statistics.queue_length


def _failures(snapshot: DiskSnapshot) -> Value:
    provider = snapshot.provider
    return None if provider is None else keyed(provider.failures)


_LATENCY = "as the provider counted each request. A bin of its page counts at its upper bound."

PROVIDER_METRICS: tuple[Metric[DiskSnapshot], ...] = (
    Metric(
        "disksla_provider_throttled_seconds_total",
        "Seconds in which the provider saw more demand than a limit of the volume or the instance"
        " allows, by its own count. Absent without its statistics page (docs/clouds/aws.md), and"
        " while it was not read for 10 s.",
        _current(_throttled_s),
        ("limit",),
    ),
    Metric(
        "disksla_provider_queue_length",
        "Requests at the volume when its statistics page was read last.",
        _current(_queue_length),
    ),
    full(
        "disksla_provider_read_latency_seconds",
        f"Seconds that reads took, {_LATENCY}",
        _current(lambda provider: provider.read_latency_s),
        is_histogram=True,
    ),
    full(
        "disksla_provider_write_latency_seconds",
        f"Seconds that writes took, {_LATENCY}",
        _current(lambda provider: provider.write_latency_s),
        is_histogram=True,
    ),
    Metric(
        "disksla_provider_statistics_failures_total",
        "Readings of the statistics page that gave no numbers, by reason. permission, removed,"
        " status (the disk refused) or device (another error); short, magic, version, bins or"
        " counter (a page that cannot be right); reset (its counters began again).",
        _failures,
        ("reason",),
    ),
)
