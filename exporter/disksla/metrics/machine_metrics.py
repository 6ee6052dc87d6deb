"""Metrics of each group of disks that share limits of the machine."""

from collections.abc import Mapping

from disksla.config import Profile
from disksla.limits import Rates
from disksla.metrics.metric import Buckets, Labelled, Metric, Value, credit_values, keyed
from disksla.pipeline import GroupSnapshot


def _machine_info(group: GroupSnapshot) -> Labelled:
    budget = group.shared.limits.budget
    return {(group.shared.machine, group.shared.title, budget.kind if budget else ""): 1}


def _directions(read: float | None, write: float | None) -> Value:
    rates = {"read": read, "write": write}
    return keyed({name: rate for name, rate in rates.items() if rate is not None}) or None


def _burst_rates(group: GroupSnapshot) -> Rates:
    burst = group.shared.limits.burst
    return Rates() if burst is None else burst.rates


_SHARED = "with the budget sum or time_shared, reads and writes share it. Absent without a limit."
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
    Metric(
        "disksla_machine_limit_iops",
        "Requests per second that the machine allows all disks of the group together, by"
        f" direction (read, write); {_SHARED}",
        lambda group: _directions(
            group.shared.limits.rates.read_iops, group.shared.limits.rates.write_iops
        ),
        ("direction",),
        profile="lean",
    ),
    Metric(
        "disksla_machine_limit_bytes_per_second",
        "Bytes per second that the machine allows all disks of the group together, by direction"
        f" (read, write); {_SHARED}",
        lambda group: _directions(
            group.shared.limits.rates.read_bytes_per_second,
            group.shared.limits.rates.write_bytes_per_second,
        ),
        ("direction",),
        profile="lean",
    ),
    Metric(
        "disksla_machine_burst_limit_iops",
        "Requests per second that the machine allows all disks of the group together while its"
        f" burst credits last, by direction (read, write); {_SHARED}",
        lambda group: _directions(_burst_rates(group).read_iops, _burst_rates(group).write_iops),
        ("direction",),
    ),
    Metric(
        "disksla_machine_burst_limit_bytes_per_second",
        "Bytes per second that the machine allows all disks of the group together while its burst"
        f" credits last, by direction (read, write); {_SHARED}",
        lambda group: _directions(
            _burst_rates(group).read_bytes_per_second, _burst_rates(group).write_bytes_per_second
        ),
        ("direction",),
    ),
    Metric(
        "disksla_machine_load_ratio",
        "Load of each sampling window (100 ms by default): share of the limits of the machine that"
        " the requests of all disks of the group used together, 1 at the limit.",
        lambda group: group.load,
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
    Metric(
        "disksla_machine_burst_credits",
        f"Burst credits of the machine left, as an estimate between the bounds, {_UNIT}",
        credit_values(lambda level: level.estimate_credits),
        ("resource",),
        profile="lean",
    ),
    Metric(
        "disksla_machine_burst_credits_lower_bound",
        f"Lowest level of burst credits of the machine that the observations allow, {_UNIT}",
        credit_values(lambda level: level.lower_credits),
        ("resource",),
        profile="lean",
    ),
    Metric(
        "disksla_machine_burst_credits_upper_bound",
        f"Highest level of burst credits of the machine that the observations allow, {_UNIT}",
        credit_values(lambda level: level.upper_credits),
        ("resource",),
        profile="lean",
    ),
    Metric(
        "disksla_machine_burst_credits_capacity",
        f"Burst credits of a full token bucket of the machine, {_UNIT}",
        credit_values(lambda level: level.capacity_credits),
        ("resource",),
        profile="lean",
    ),
    Metric(
        "disksla_machine_burst_exhaustion_seconds",
        "Seconds until the burst credits of the machine are used up at the load of the last"
        " second, from the estimate; +Inf while they do not decrease. Absent if the machine has no"
        " burst.",
        credit_values(lambda level: level.exhaustion_s),
        ("resource",),
        profile="lean",
    ),
)
