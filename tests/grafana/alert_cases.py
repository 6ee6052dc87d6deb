"""A case for each alert: series on which it fires, and series on which it just does not."""

from collections.abc import Mapping

import msgspec

from grafana.promtool import Alert
from render import project_url

EVAL_MINUTE = 80
EVAL_AT = f"{EVAL_MINUTE}m"
NOW_S = 60 * EVAL_MINUTE
BREAK_MINUTE = 55
MINUTES_AFTER_BREAK = 45
MINUTES = 100
HOST = {"job": "disksla", "instance": "db1:10056"}
DISK = {**HOST, "device": "vdb"}
IDENTITY = {
    "serial": "6ea73b81-555e-4a74-9",
    "model": "QEMU HARDDISK",
    "terms": "vk.ef-nvme",
    "mountpoint": "/var/lib/postgresql",
}
PREFIX = (
    "Disk vdb on db1:10056 (serial 6ea73b81-555e-4a74-9, model QEMU HARDDISK, terms vk.ef-nvme,"
    " mounted at /var/lib/postgresql)"
)


class Counter(msgspec.Struct, frozen=True):
    """A counter that grows evenly."""

    per_minute: float

    def steady(self) -> str:
        return f"0+{self.per_minute}x{MINUTES}"

    def reset(self) -> str:
        """Restart at 0 without a missed scrape."""
        high = 1_000_000
        return f"{high}+{self.per_minute}x{BREAK_MINUTE} 0+{self.per_minute}x{MINUTES_AFTER_BREAK}"

    def restarted(self) -> str:
        """Restart at 0 after three missed scrapes."""
        before = f"{500}+{self.per_minute}x{BREAK_MINUTE}"
        return f"{before} stale _x3 0+{self.per_minute}x{MINUTES_AFTER_BREAK}"

    def ended(self) -> str:
        return f"0+{self.per_minute}x{MINUTES // 4} stale"


class Gauge(msgspec.Struct, frozen=True):
    """A gauge with a constant value."""

    value: float

    def steady(self) -> str:
        return f"{self.value}x{MINUTES}"

    def reset(self) -> str:
        return self.steady()

    def restarted(self) -> str:
        return f"{self.value}x{BREAK_MINUTE} stale _x3 {self.value}x{MINUTES_AFTER_BREAK}"

    def ended(self) -> str:
        return f"{self.value}x{MINUTES // 4} stale"


class ChangedGauge(msgspec.Struct, frozen=True):
    """A gauge that changed this many minutes before the evaluation."""

    minutes: int
    value: float
    before: float

    def steady(self) -> str:
        return f"{self.before}x{EVAL_MINUTE - 1 - self.minutes} {self.value}x{MINUTES}"

    def reset(self) -> str:
        return Gauge(self.before).reset()

    def restarted(self) -> str:
        return Gauge(self.before).restarted()

    def ended(self) -> str:
        return Gauge(self.before).ended()


class NewCounter(msgspec.Struct, frozen=True):
    """A counter that appeared this many minutes before the evaluation."""

    minutes: int
    per_minute: float

    def steady(self) -> str:
        return f"_x{EVAL_MINUTE - self.minutes} 0+{self.per_minute}x{MINUTES_AFTER_BREAK}"

    def reset(self) -> str:
        return self.steady()

    def restarted(self) -> str:
        return self.steady()

    def ended(self) -> str:
        return self.steady()


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


def info(**other: str) -> str:
    rest = {
        "wwn": "",
        "provider": "vk",
        "budget": "separate",
        "latency_kind": "guaranteed",
        "rotational": "false",
    }
    return of_disk("disk_info", **{**IDENTITY, **rest, **other})


def verdicts(**per_minute: float) -> World:
    return {
        of_disk("verdict_seconds_total", verdict=verdict): Counter(per_minute.get(verdict, 0))
        for verdict in ("idle", "unproven", "met", "throttled", "below", "stalled")
    }


WITHOUT_LIMITS: World = {info(): Gauge(1), of_host("up"): Gauge(1)}
WITH_LIMITS: World = {
    **WITHOUT_LIMITS,
    of_disk("limit_read_iops"): Gauge(10000),
    of_disk("limit_write_iops"): Gauge(5000),
    of_disk("limit_latency_seconds"): Gauge(0.0005),
}


class Firing(msgspec.Struct, frozen=True):
    """Series on which an alert fires, its description, and its labels beside those of the disk."""

    world: World
    description: str
    labels: Mapping[str, str] = {}


class Case(msgspec.Struct, frozen=True):
    """The test data of one alert."""

    name: str
    severity: str
    summary: str
    bad: Firing
    good: World
    """Just below the threshold."""
    also_bad: Mapping[str, Firing] = {}
    also_good: Mapping[str, World] = {}
    of: str = "disk"

    def alert(self, firing: Firing) -> Alert:
        """Return the alert with all labels and annotations."""
        identity = {**DISK, **IDENTITY} if self.of == "disk" else HOST
        url = project_url()
        runbook = {"runbook_url": f"{url}/docs/runbook.md#{self.name.lower()}"} if url else {}
        return Alert(
            {**identity, "severity": self.severity, **firing.labels},
            {"summary": self.summary, "description": firing.description, **runbook},
        )


def requests(latency_s: float, load: str = "0.5", request_bytes: int = 4096) -> World:
    """Return the series of 100 reads per second with one latency, in windows up to one load."""
    per_minute = 6000
    windows = {"0.5": 0.0, "1": 0.0, "+Inf": 600.0}
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


def assessed(**per_minute: float) -> World:
    return {**WITH_LIMITS, **verdicts(**per_minute)}


def throttling_symptoms(pressure: float, iowait: float) -> World:
    return {
        **WITH_LIMITS,
        of_disk("throttled_pressure_seconds_total", kind="some"): Counter(pressure),
        of_disk("throttled_pressure_seconds_total", kind="full"): Counter(pressure),
        of_disk("throttled_iowait_seconds_total"): Counter(iowait),
    }


BELOW = Case(
    "DiskBelowPromise",
    "warning",
    "A disk gives less than its terms promise.",
    bad=Firing(
        {
            **assessed(below=12, met=34, throttled=14),
            of_disk("reads_completed_total"): Counter(15000),
        },
        f"{PREFIX} was below its promise for 20% of the tested time of the last hour."
        " Reads now: 250/s. Reads promised: 10k/s. Writes promised: 5k/s.",
    ),
    good=assessed(below=5.9, met=27, throttled=27.1),
    also_good={
        "not in the last 5 minutes": {
            **assessed(met=60),
            of_disk("verdict_seconds_total", verdict="below"): ChangedGauge(7, 1800, 1800),
        },
        "only for seconds": assessed(below=0.9, met=0.1, idle=59),
        "not tested": assessed(unproven=30, idle=30),
    },
)
LATENCY = Case(
    "DiskLatencyAbovePromise",
    "warning",
    "The latency of a disk is above the latency that its terms guarantee.",
    bad=Firing(
        requests(0.0008),
        f"{PREFIX} has a mean latency of 800us for reads while its load is below the limit; its"
        " terms guarantee 500us.",
        {"requests": "reads"},
    ),
    good=requests(0.000599),
    also_bad={
        "of probes": Firing(
            probed(0.002),
            f"{PREFIX} has a mean latency of 2ms for writes of probes while its load is below the"
            " limit; its terms guarantee 500us.",
            {"requests": "writes of probes"},
        )
    },
    also_good={
        "at a high load": requests(0.0008, load="1"),
        "of large requests": requests(0.0008, request_bytes=65536),
        "that is not guaranteed": {
            (info(latency_kind="indicative") if name == info() else name): values
            for name, values in requests(0.0008).items()
        },
        "of probes, as promised": probed(0.000599),
    },
)
THROTTLED = Case(
    "DiskThrottled",
    "warning",
    "A disk is throttled much of the time.",
    bad=Firing(
        {
            **assessed(throttled=30, met=30),
            of_disk("observed_ceiling_iops"): Gauge(1000),
            of_disk("observed_ceiling_bytes_per_second"): Gauge(50 * 2**20),
        },
        f"{PREFIX} was throttled for 50% of the last 30m. Observed ceiling: 1k IOPS."
        " Observed ceiling: 50MiB/s.",
    ),
    good=assessed(throttled=14.9, idle=45.1),
    also_good={
        "in its first minutes": {
            **WITH_LIMITS,
            of_disk("verdict_seconds_total", verdict="throttled"): NewCounter(7, 60),
        },
    },
)
UNEXPLAINED = Case(
    "DiskLimitNotExplained",
    "info",
    "A disk is throttled at a rate that its terms do not explain.",
    bad=Firing(
        {
            **WITH_LIMITS,
            of_disk("throttled_seconds_total", limit="unknown"): Counter(6),
            of_disk("observed_ceiling_iops"): Gauge(460),
        },
        f"{PREFIX} was throttled for 10% of the last 30m at a constant rate that is not a limit of"
        " its terms. Observed ceiling: 460 IOPS. Is it of another type or size than configured, or"
        " does a limit of the machine apply?",
    ),
    good={**WITH_LIMITS, of_disk("throttled_seconds_total", limit="unknown"): Counter(2.9)},
    also_good={
        "without terms": {
            info(): Gauge(1),
            of_disk("throttled_seconds_total", limit="unknown"): Counter(30),
        },
        "at a known limit": {
            **WITH_LIMITS,
            of_disk("throttled_seconds_total", limit="iops"): Counter(30),
        },
    },
)
HURTS_HOST = Case(
    "DiskThrottlingHurtsHost",
    "warning",
    "Programs of a host wait for I/O because a disk is throttled.",
    bad=Firing(
        throttling_symptoms(15, 0),
        f"{PREFIX} is throttled. Meanwhile some tasks of the host were stalled for I/O for 25% of"
        " the last 15m.",
        {"symptom": "pressure"},
    ),
    good=throttling_symptoms(11.9, 29.9),
    also_bad={
        "in iowait": Firing(
            throttling_symptoms(0, 90),
            f"{PREFIX} is throttled. Meanwhile 1.5 CPUs on average were in iowait over the last"
            " 15m.",
            {"symptom": "iowait"},
        )
    },
)
EXHAUSTED = Case(
    "DiskBurstCreditsExhausted",
    "warning",
    "A disk has used up its burst credits.",
    bad=Firing(
        credits_left(30, 0, 40),
        f"{PREFIX} has at most 0.5% of its burst credits (iops) left and is limited to its"
        " baseline. Baseline of reads: 10k/s. Baseline of writes: 5k/s.",
        {"resource": "iops"},
    ),
    good=credits_left(30, 0, 81),
)
EXHAUST_SOON = Case(
    "DiskBurstCreditsExhaustSoon",
    "info",
    "A disk will soon use up its burst credits.",
    bad=Firing(
        credits_left(900, 3000, 6000),
        f"{PREFIX} will use up its burst credits (iops) in 15m 0s at the present rate. It may have"
        " less than 50 % of them left.",
        {"resource": "iops"},
    ),
    good=credits_left(1801, 3000, 6000),
    also_good={
        "with many for certain": credits_left(900, 4001, 6000),
        "with none left": credits_left(900, 0, 40),
    },
)
STALLED = Case(
    "DiskStalled",
    "critical",
    "A disk does not complete requests.",
    bad=Firing(
        {**assessed(stalled=12, idle=48), of_disk("inflight"): Gauge(7)},
        f"{PREFIX} had requests in flight and completed none for 1m 0s of the last 5m. In flight"
        " now: 7.",
    ),
    good=assessed(stalled=5.9, idle=54.1),
)
PROBE_FAILING = Case(
    "DiskProbeFailing",
    "warning",
    "Probes of a disk fail.",
    bad=Firing(
        {**WITH_LIMITS, of_disk("probe_success", kind="read-latency"): ChangedGauge(26, 0, 1)},
        f"{PREFIX}: the last read-latency probes failed. The latency of single requests is not"
        " known.",
        {"kind": "read-latency"},
    ),
    good={**WITH_LIMITS, of_disk("probe_success", kind="read-latency"): ChangedGauge(24, 0, 1)},
)
PROBE_STALE = Case(
    "DiskProbeStale",
    "warning",
    "A disk is no longer probed.",
    bad=Firing(
        last_attempt(NOW_S - 1900),
        f"{PREFIX}: for 31m 40s the read-latency probe has neither run nor been skipped for a"
        " temporary reason.",
        {"kind": "read-latency"},
    ),
    good=last_attempt(NOW_S - 1499),
    also_bad={
        "with an interval of an hour": Firing(
            last_attempt(NOW_S - 8400, 3600),
            f"{PREFIX}: for 2h 20m 0s the read-latency probe has neither run nor been skipped for"
            " a temporary reason.",
            {"kind": "read-latency"},
        ),
        "with a crontab line": Firing(
            last_attempt(NOW_S - 9 * 86400, None),
            f"{PREFIX}: for 9d 0h 0m 0s the read-latency probe has neither run nor been skipped"
            " for a temporary reason.",
            {"kind": "read-latency"},
        ),
    },
    also_good={
        "with an interval of an hour": last_attempt(NOW_S - 7499, 3600),
        "with a crontab line": last_attempt(NOW_S - 8 * 86400 + 1, None),
    },
)
VERIFICATION = Case(
    "DiskVerificationFailed",
    "warning",
    "A disk failed its acceptance test.",
    bad=Firing(
        verified(False),
        f"{PREFIX} reached 84% of the required result in the test write iops 4 KiB.",
        {"test": "write iops 4 KiB"},
    ),
    good=verified(True),
    also_good={"a month ago": verified(False, NOW_S - 30 * 86400 - 1)},
)
TERMS_UNKNOWN = Case(
    "DiskTermsUnknown",
    "info",
    "The terms of a disk are not known.",
    bad=Firing(
        WITHOUT_LIMITS,
        f"{PREFIX} has no limits to compare with. Add its terms to the configuration of disksla.",
        {
            "provider": "vk",
            "budget": "separate",
            "latency_kind": "guaranteed",
            "rotational": "false",
        },
    ),
    good={**WITHOUT_LIMITS, of_disk("limit_written_bytes_per_second"): Gauge(1)},
    also_good={
        f"with a limit of {limit}": {**WITHOUT_LIMITS, of_disk(f"limit_{limit}"): Gauge(1)}
        for limit in ("read_iops", "write_iops", "read_bytes_per_second")
    },
)
DOWN = Case(
    "DiskSlaExporterDown",
    "warning",
    "The disksla daemon of a host cannot be scraped.",
    bad=Firing(
        {of_host("up"): ChangedGauge(6, 0, 1)},
        "Prometheus cannot scrape disksla at db1:10056. There is no data about its disks.",
    ),
    good={of_host("up"): ChangedGauge(4, 0, 1)},
    of="host",
)
LATE = Case(
    "DiskSlaSamplerLate",
    "warning",
    "The disksla daemon samples less often than configured.",
    bad=Firing(
        sampled(60, 540),
        "disksla at db1:10056 missed 10% of its samples. Its windows are longer, and short bursts"
        " are averaged out.",
    ),
    good=sampled(29.9, 570.1),
    of="host",
)
CASES = (
    *(BELOW, LATENCY, VERIFICATION),
    *(THROTTLED, UNEXPLAINED, HURTS_HOST, EXHAUSTED, EXHAUST_SOON),
    *(STALLED, PROBE_FAILING, PROBE_STALE, TERMS_UNKNOWN),
    *(DOWN, LATE),
)
OF_COUNTERS = (BELOW, LATENCY, THROTTLED, UNEXPLAINED, HURTS_HOST, STALLED, LATE)
"""Alerts that depend on counters only, so they fire at any time."""
