"""Metrics of each group of disks that share limits of the machine, and of who uses each disk."""

from collections.abc import Callable, Iterator, Mapping

from disksla.kernel.consumers import ConsumerSums, ConsumerTotals
from disksla.promise.catalogue import Rates
from disksla.promise.configuration import Profile
from disksla.serve.metrics.metric import Buckets, Labelled, Metric, Value, credits_row, keyed
from disksla.state.pipeline import DiskSnapshot, GroupSnapshot


def _machine_info(group: GroupSnapshot) -> Labelled:
    budget = group.shared.limits.budget
    return {(group.shared.machine, group.shared.title, budget.kind if budget else ""): 1}


_SHARED = "with the budget sum or time_shared, reads and writes share it. Absent without a limit."


def _rates(group: GroupSnapshot) -> Rates:
    return group.shared.limits.rates


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
        help_text = f"{text} direction (read, write); {_SHARED}"
        yield Metric(
            f"disksla_machine_{name}_{unit}", help_text, value, ("direction",), profile=profile
        )


_UNIT = "in the unit of resource: iops (I/Os) or bytes. Absent if the machine has no burst."
_LOADS: Mapping[Profile, Buckets] = {"default": Buckets((0.95,))}

MACHINE_METRICS: tuple[Metric[GroupSnapshot], ...] = (
    Metric(
        "disksla_machine_info",
        "Always 1. Labels have the machine type, or its number of vCPUs, what the limit is over,"
        " and the budget; the label of an unknown value is empty.",
        _machine_info,
        ("machine", "title", "budget"),
        profile="lean",
    ),
    Metric(
        "disksla_machine_disk_info",
        "Always 1. The label device is a monitored disk in the group.",
        lambda group: {(device,): 1 for device in group.devices},
        ("device",),
        profile="lean",
    ),
    *_limit_rows("limit", "together", _rates, "lean"),
    *_limit_rows("burst_limit", "together while its burst credits last", _burst_rates, "default"),
    Metric(
        "disksla_machine_load_ratio",
        "Load of each sampling window (100 ms by default): share of the limits of the machine that"
        " the requests of all disks of the group used together, 1 at the limit.",
        lambda group: group.totals.load,
        buckets=_LOADS,
        is_histogram=True,
    ),
    Metric(
        "disksla_machine_throttled_seconds_total",
        "Seconds in which requests of the group waited for a limit of the machine, by limit (iops,"
        " bandwidth). disksla_throttled_seconds_total has those of each disk.",
        lambda group: {(limit,): seconds for limit, seconds in group.throttled_s.items()},
        ("limit",),
        profile="lean",
    ),
    credits_row(
        "disksla_machine_burst_credits",
        f"Burst credits of the machine left, as an estimate between the bounds, {_UNIT}",
        lambda level: level.estimate_credits,
    ),
    credits_row(
        "disksla_machine_burst_credits_lower_bound",
        f"Lowest level of burst credits of the machine that the observations allow, {_UNIT}",
        lambda level: level.lower_credits,
    ),
    credits_row(
        "disksla_machine_burst_credits_upper_bound",
        f"Highest level of burst credits of the machine that the observations allow, {_UNIT}",
        lambda level: level.upper_credits,
    ),
    credits_row(
        "disksla_machine_burst_credits_capacity",
        f"Burst credits of a full token bucket of the machine, {_UNIT}",
        lambda level: level.capacity_credits,
    ),
    credits_row(
        "disksla_machine_burst_exhaustion_seconds",
        "Seconds until the burst credits of the machine are used up at the load of the last"
        " second, from the estimate; +Inf while they do not decrease. Absent if the machine has no"
        " burst.",
        lambda level: level.exhaustion_s,
    ),
)


def _by_consumer(
    series: Callable[[ConsumerTotals], ConsumerSums],
) -> Callable[[DiskSnapshot], Value]:
    def value(snapshot: DiskSnapshot) -> Labelled | None:
        return {(*who,): total for who, total in series(snapshot.consumers).sums.items()} or None

    return value


_WATCHED = (
    "while the disk was watched: throttled or busy, and a minute after. Divide by"
    " disksla_consumer_watched_seconds_total. consumer is a unit, container or pod (at most five"
    " of a disk have series), other, kernel (such as journals) or unattributed (groups that ended"
    " before they were known). program is empty where only the group is known. Absent where"
    " consumers are not known (docs/consumers.md)."
)

CONSUMER_METRICS: tuple[Metric[DiskSnapshot], ...] = (
    Metric(
        "disksla_consumer_requests_total",
        f"Requests by consumer, {_WATCHED} By control groups only where few requests are merged.",
        _by_consumer(lambda consumers: consumers.requests),
        ("consumer", "program"),
    ),
    Metric(
        "disksla_consumer_bytes_total",
        f"Bytes read and written by consumer, {_WATCHED}",
        _by_consumer(lambda consumers: consumers.bytes),
        ("consumer", "program"),
    ),
    Metric(
        "disksla_consumer_watched_seconds_total",
        "Seconds in which the consumers of the disk were known. Absent while there were none.",
        lambda snapshot: snapshot.consumers.watched_s or None,
    ),
)
