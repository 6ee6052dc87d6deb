"""Series of hosts, disks and machines, in promtool's notation, on which alerts fire or do not."""

from collections.abc import Mapping

import msgspec

EVAL_MINUTE = 80
EVAL_AT = f"{EVAL_MINUTE}m"
NOW_S = 60 * EVAL_MINUTE
BREAK_MINUTE = 55
MINUTES_AFTER_BREAK = 45
MINUTES = 100
HOST = {"job": "disksla", "instance": "db1:10056"}
DISK = {**HOST, "device": "vdb"}
IDENTITY = {"serial": "6ea73b81-555e-4a74-9", "model": "QEMU HARDDISK", "terms": "vk.ef-nvme"}
CLAIM = {"namespace": "db", "persistentvolumeclaim": "data-pg-0"}
GROUP = {**HOST, "group": "ebs"}
MACHINE = {
    "machine": "m6i.large",
    "title": "all EBS volumes of the instance together",
    "budget": "sum",
}


class Counter(msgspec.Struct, frozen=True):
    """A counter that grows evenly."""

    per_minute: float

    def steady(self) -> str:
        return f"0+{self.per_minute}x{MINUTES}"

    def restarted(self) -> str:
        """Restart at 0 after three missed scrapes."""
        before = f"{500}+{self.per_minute}x{BREAK_MINUTE}"
        return f"{before} stale _x3 0+{self.per_minute}x{MINUTES_AFTER_BREAK}"

    def missed(self) -> str:
        """Miss the scrape at EVAL_MINUTE, and restart at 0."""
        before = f"0+{self.per_minute}x{EVAL_MINUTE - 1}"
        return f"{before} stale 0+{self.per_minute}x{MINUTES - EVAL_MINUTE}"

    def ended(self) -> str:
        return f"0+{self.per_minute}x{MINUTES // 4} stale"


class Gauge(msgspec.Struct, frozen=True):
    """A gauge with a constant value."""

    value: float

    def steady(self) -> str:
        return f"{self.value}+0x{MINUTES}"

    def restarted(self) -> str:
        return f"{self.value}+0x{BREAK_MINUTE} stale _x3 {self.value}+0x{MINUTES_AFTER_BREAK}"

    def missed(self) -> str:
        value = self.value
        return f"{value}+0x{EVAL_MINUTE - 1} stale {value}+0x{MINUTES - EVAL_MINUTE}"

    def ended(self) -> str:
        return f"{self.value}+0x{MINUTES // 4} stale"


class ChangedGauge(msgspec.Struct, frozen=True):
    """A gauge that changed this many minutes before the evaluation."""

    minutes: int
    value: float
    before: float

    def steady(self) -> str:
        return f"{self.before}x{EVAL_MINUTE - 1 - self.minutes} {self.value}x{MINUTES}"

    def restarted(self) -> str:
        return Gauge(self.before).restarted()

    def missed(self) -> str:
        before = f"{self.before}x{EVAL_MINUTE - 1 - self.minutes}"
        return f"{before} {self.value}x{self.minutes - 1} stale {self.value}x{MINUTES}"

    def ended(self) -> str:
        return Gauge(self.before).ended()


class NewCounter(msgspec.Struct, frozen=True):
    """A counter that appeared this many minutes before the evaluation."""

    minutes: int
    per_minute: float

    def steady(self) -> str:
        return f"_x{EVAL_MINUTE - self.minutes} 0+{self.per_minute}x{MINUTES_AFTER_BREAK}"

    restarted = missed = ended = steady


class Falling(Gauge, frozen=True):
    """A gauge that falls evenly, to a value at the evaluation."""

    per_minute: float

    def steady(self) -> str:
        return f"{self.value + EVAL_MINUTE * self.per_minute}-{self.per_minute}x{MINUTES}"


Values = Counter | Gauge | ChangedGauge | NewCounter
World = Mapping[str, Values]
"""All series of a host."""


def series(metric: str, labels: Mapping[str, str]) -> str:
    matchers = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{metric}{{{matchers}}}"


def of_disk(metric: str, **labels: str) -> str:
    return series(f"disksla_{metric}", {**DISK, **labels})


def of_host(metric: str) -> str:
    return series(metric, HOST)


def of_group(metric: str, **labels: str) -> str:
    return series(f"disksla_machine_{metric}", {**GROUP, **labels})


def info(**other: str) -> str:
    rest = {
        "wwn": "",
        "provider": "vk",
        "budget": "separate",
        "latency_kind": "guaranteed",
        "rotational": "false",
    }
    return of_disk("disk_info", **{**IDENTITY, **rest, **other})


def volume() -> str:
    about = {"csi_driver": "ebs.csi.aws.com", "volume_handle": "vol-0a1b", "storage_class": "fast"}
    return of_disk("kubernetes_volume_info", **about, **CLAIM)


def in_namespace(namespace: str, world: World) -> World:
    """Return the series as the Prometheus operator labels them, with `honorLabels`."""
    return {
        name
        if "namespace=" in name
        else name.replace("{", f'{{namespace="{namespace}",', 1): values
        for name, values in world.items()
    }


def verdicts(by_machine: float | None = None, **per_minute: float) -> World:
    """Return seconds by verdict, and those throttled by limit.

    `by_machine` of the throttled seconds are at a limit of the machine. None: the exporter is of a
    version that has no limits of machines.
    """
    throttled = {"iops": per_minute.get("throttled", 0) - (by_machine or 0)}
    if by_machine is not None:
        throttled |= {"machine_iops": by_machine / 4, "machine_bandwidth": by_machine * 3 / 4}
    return {
        **{
            of_disk("verdict_seconds_total", verdict=verdict): Counter(per_minute.get(verdict, 0))
            for verdict in ("idle", "unproven", "met", "throttled", "below", "stalled")
        },
        **throttled_by(bandwidth=0, unknown=0, **throttled),
    }


def throttled_by(**per_minute: float) -> World:
    return {
        of_disk("throttled_seconds_total", limit=limit): Counter(seconds)
        for limit, seconds in per_minute.items()
    }


_ANY: World = {
    of_disk("mount_info", mountpoint="/var/lib/postgresql"): Gauge(1),
    of_host("up"): Gauge(1),
}
WITHOUT_LIMITS: World = {**_ANY, info(budget=""): Gauge(1)}
WITH_LIMITS: World = {
    **_ANY,
    info(): Gauge(1),
    of_disk("limit_read_iops"): Gauge(10000),
    of_disk("limit_write_iops"): Gauge(5000),
    of_disk("limit_latency_seconds"): Gauge(0.0005),
}


SHARED_LIMITS: World = {
    **_ANY,
    info(budget="sum"): Gauge(1),
    of_disk("limit_read_iops"): Gauge(1000),
    of_disk("limit_write_iops"): Gauge(1000),
    of_disk("limit_read_bytes_per_second"): Gauge(60 * 2**20),
}


def loaded(above: float) -> World:
    """Return a disk whose load is above 80 % of its limit for so many seconds of a minute."""
    windows = {"0.8": 10 * (60 - above), "+Inf": 600}
    return {
        **WITH_LIMITS,
        **{of_disk("window_load_ratio_bucket", le=le): Counter(n) for le, n in windows.items()},
    }


def requests(latency_s: float, load: str = "0.5", request_bytes: int = 4096) -> World:
    """Return the series of 100 reads per second with one latency, in windows up to one load."""
    per_minute = 6000
    windows = {"0.8": 0.0, "0.95": 0.0, "1.05": 0.0, "+Inf": 600.0}
    for bound in windows:
        if float(bound) >= float(load):
            windows[bound] = 600.0
    return {
        **WITH_LIMITS,
        of_disk("reads_completed_total"): Counter(per_minute),
        of_disk("read_bytes_total"): Counter(per_minute * request_bytes),
        of_disk("read_time_seconds_total"): Counter(per_minute * latency_s),
        **{
            of_disk("window_load_ratio_bucket", le=bound): Counter(count)
            for bound, count in windows.items()
        },
    }


def probed(latency_s: float) -> World:
    return {
        **WITH_LIMITS,
        of_disk("probe_write_latency_seconds_sum"): Counter(10 * latency_s),
        of_disk("probe_write_latency_seconds_count"): Counter(10),
    }


def credits_left(exhaustion_s: float, lower: float, upper: float) -> World:
    return {
        **WITH_LIMITS,
        of_disk("burst_credits_lower_bound", resource="iops"): Gauge(lower),
        of_disk("burst_credits_upper_bound", resource="iops"): Gauge(upper),
        of_disk("burst_credits_capacity", resource="iops"): Gauge(8000),
        of_disk("burst_exhaustion_seconds", resource="iops"): Gauge(exhaustion_s),
    }


def falling_credits(prefix: str, to: float, of: Mapping[str, str] = DISK) -> World:
    """Return credits that fall by 20 a minute, to a level at the evaluation."""
    name = series(f"disksla_{prefix}_credits", {**of, "resource": "iops"})
    return {name: Falling(to, 20)}


def verified(passed: bool, ended_s: float = 0) -> World:
    test = "write iops 4 KiB"
    return {
        **WITH_LIMITS,
        of_disk("verification_ratio", test=test): Gauge(0.63),
        of_disk("verification_required_ratio", test=test): Gauge(0.75),
        of_disk("verification_passed", test=test): Gauge(float(passed)),
        of_disk("verification_timestamp_seconds"): Gauge(ended_s),
    }


def last_attempt(ended_s: float, interval_s: float | None = 600) -> World:
    kind = "read-latency"
    every = {of_disk("probe_interval_seconds", kind=kind): Gauge(interval_s)} if interval_s else {}
    return {
        **WITH_LIMITS,
        **every,
        of_disk("probe_last_attempt_timestamp_seconds", kind=kind): Gauge(ended_s),
    }


def sampled(missed: float, ticks: float) -> World:
    return {
        of_host("disksla_sampler_ticks_total"): Counter(ticks),
        of_host("disksla_sampler_missed_ticks_total"): Counter(missed),
    }


def errors(source: str, per_minute: float) -> World:
    """Return the errors of a source of data, or of a part of the daemon."""
    return {series("disksla_errors_total", {**HOST, "source": source}): Counter(per_minute)}


def assessed(by_machine: float | None = None, **per_minute: float) -> World:
    return {**WITH_LIMITS, **verdicts(by_machine, **per_minute)}


def machine(budget: str = "sum", **other: str) -> World:
    """Return the series of a machine with a limit over two disks."""
    about = {**MACHINE, "budget": budget, **other}
    return {
        of_host("up"): Gauge(1),
        of_group("info", **about): Gauge(1),
        of_group("disk_info", device="vdc"): Gauge(1),
        of_group("disk_info", device="vdb"): Gauge(1),
        info(): Gauge(1),
        info(device="vdc"): Gauge(1),
        of_group("limit_iops", direction="read"): Gauge(3600),
        of_group("limit_iops", direction="write"): Gauge(3600),
        of_group("limit_bytes_per_second", direction="read"): Gauge(90 * 2**20),
        of_group("limit_bytes_per_second", direction="write"): Gauge(90 * 2**20),
    }


def machine_throttled(iops: float, bandwidth: float) -> World:
    return {
        of_group("throttled_seconds_total", limit="iops"): Counter(iops),
        of_group("throttled_seconds_total", limit="bandwidth"): Counter(bandwidth),
    }


def machine_credits(exhaustion_s: float, lower: float, upper: float) -> World:
    return {
        **machine(),
        of_group("burst_credits", resource="iops"): Gauge((lower + upper) / 2),
        of_group("burst_credits_lower_bound", resource="iops"): Gauge(lower),
        of_group("burst_credits_upper_bound", resource="iops"): Gauge(upper),
        of_group("burst_credits_capacity", resource="iops"): Gauge(8000),
        of_group("burst_exhaustion_seconds", resource="iops"): Gauge(exhaustion_s),
    }


def throttling_symptoms(pressure: float, iowait: float) -> World:
    return {
        **WITH_LIMITS,
        of_disk("throttled_pressure_seconds_total", kind="some"): Counter(pressure),
        of_disk("throttled_pressure_seconds_total", kind="full"): Counter(pressure),
        of_disk("throttled_iowait_seconds_total"): Counter(iowait),
    }
