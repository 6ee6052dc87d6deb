"""Metrics of groups of disks under limits of the machine, of consumers, of what AWS counts."""

from collections.abc import Callable, Iterator, Mapping

from disksla.kernel.consumers import ConsumerSums, ConsumerTotals
from disksla.promise.catalogue import Rates
from disksla.promise.configuration import Profile
from disksla.serve.metrics.metric import (
    Buckets,
    Labelled,
    Metric,
    Value,
    credits_rows,
    full,
    keyed,
    lean,
)
from disksla.state.pipeline import DiskSnapshot, GroupSnapshot
from disksla.state.provider_count import ProviderState


def _machine_info(group: GroupSnapshot) -> Labelled:
    budget = group.shared.limits.budget
    return {(group.shared.machine, group.shared.title, budget.kind if budget else ""): 1}


def _burst_rates(group: GroupSnapshot) -> Rates:
    burst = group.shared.limits.burst
    return Rates() if burst is None else burst.rates


def _limit_rows(
    name: str, when: str, rates_of: Callable[[GroupSnapshot], Rates], profile: Profile
) -> Iterator[Metric[GroupSnapshot]]:
    """Yield the rows `disksla_machine_NAME_iops` and `disksla_machine_NAME_bytes_per_second`."""
    for what, unit in (("Requests", "iops"), ("Bytes", "bytes_per_second")):

        def value(group: GroupSnapshot, unit: str = unit) -> Value:
            rates = rates_of(group)
            by_direction = {each: getattr(rates, f"{each}_{unit}") for each in ("read", "write")}
            return keyed(by_direction) or None

        text = f"{what} per second that the machine allows all disks of the group {when}, by"
        yield Metric(
            f"disksla_machine_{name}_{unit}",
            f"{text} direction.",
            value,
            ("direction",),
            profile=profile,
        )


_LOADS: Mapping[Profile, Buckets] = {"default": Buckets((0.95,))}

MACHINE_METRICS: tuple[Metric[GroupSnapshot], ...] = (
    lean(
        "disksla_machine_info",
        "Limits of the machine over a group of disks, always 1. machine is its type, or its number"
        " of vCPUs, title what the limit is over.",
        _machine_info,
        ("machine", "title", "budget"),
    ),
    lean(
        "disksla_machine_disk_info",
        "A monitored disk in the group, always 1.",
        lambda group: {(device,): 1 for device in group.devices},
        ("device",),
    ),
    *_limit_rows("limit", "together", lambda group: group.shared.limits.rates, "lean"),
    *_limit_rows("burst_limit", "together while its burst credits last", _burst_rates, "default"),
    Metric(
        "disksla_machine_load_ratio",
        "Load of each sampling window: the share of the limits of the machine that all disks of"
        " the group used together, 1 at the limit.",
        lambda group: group.totals.load,
        buckets=_LOADS,
        is_histogram=True,
    ),
    lean(
        "disksla_machine_throttled_seconds_total",
        "Seconds in which requests of the group waited for a limit of the machine (iops,"
        " bandwidth).",
        lambda group: {(limit,): seconds for limit, seconds in group.throttled_s.items()},
        ("limit",),
    ),
    *credits_rows(
        "disksla_machine_",
        left="Burst credits of the machine left, as an estimate between the bounds, in I/Os or"
        " bytes.",
        least="Lowest level of burst credits of the machine that the observations allow.",
        most="Highest level of burst credits of the machine that the observations allow.",
        capacity="Burst credits of a full token bucket of the machine.",
        exhaustion="Seconds until the burst credits of the machine are used up at the load of the"
        " last second. +Inf while they do not decrease.",
    ),
)


def _by_consumer(
    series: Callable[[ConsumerTotals], ConsumerSums],
) -> Callable[[DiskSnapshot], Value]:
    def value(snapshot: DiskSnapshot) -> Labelled | None:
        return {(*who,): total for who, total in series(snapshot.consumers).sums.items()} or None

    return value


CONSUMER_METRICS: tuple[Metric[DiskSnapshot], ...] = (
    Metric(
        "disksla_consumer_requests_total",
        "Requests by consumer, while the disk was watched (docs/consumers.md). consumer is a"
        " unit, container or pod, other, kernel or unattributed. program is empty where only the"
        " group is known. Divide by disksla_consumer_watched_seconds_total.",
        _by_consumer(lambda consumers: consumers.requests),
        ("consumer", "program"),
    ),
    Metric(
        "disksla_consumer_bytes_total",
        "Bytes read and written by consumer, while the disk was watched.",
        _by_consumer(lambda consumers: consumers.bytes),
        ("consumer", "program"),
    ),
    Metric(
        "disksla_consumer_watched_seconds_total",
        "Seconds in which the consumers of the disk were known.",
        lambda snapshot: snapshot.consumers.watched_s or None,
    ),
)


def _current(value: Callable[[ProviderState], Value]) -> Callable[[DiskSnapshot], Value]:
    """Return a function that has no value unless the page was read lately."""

    def of_disk(snapshot: DiskSnapshot) -> Value:
        if snapshot.provider is None or not snapshot.provider_is_current:
            return None
        return value(snapshot.provider)

    return of_disk


def _throttled_s(provider: ProviderState) -> Value:
    return keyed({limit: us / 1e6 for limit, us in provider.throttled_us.items()})


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
        _current(lambda it: None if it.last is None else it.last.statistics.queue_length),
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
        "Readings of the statistics page that gave no numbers, by reason. docs/clouds/aws.md"
        " lists them.",
        _failures,
        ("reason",),
    ),
)
