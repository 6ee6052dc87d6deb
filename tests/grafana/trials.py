"""Every alert: a disk, or daemon, that it is for, and one that is just well enough."""

from collections.abc import Mapping
from typing import Any

import msgspec

from grafana.promtool import Alert
from render import project_url

LOOKED_AT_MINUTE = 80
AT = f"{LOOKED_AT_MINUTE}m"
NOW_S = 60 * LOOKED_AT_MINUTE
BROKEN_OFF_AFTER = 55
REST = 45
SCRAPES = 100
HOST = {"job": "disksla", "instance": "db1:10056"}
DISK = {**HOST, "device": "vdb"}
KNOWN_BY = {
    "serial": "6ea73b81-555e-4a74-9",
    "model": "QEMU HARDDISK",
    "terms": "vk.ef-nvme",
    "mountpoint": "/var/lib/postgresql",
}
WHO = (
    "Disk vdb of db1:10056, mounted at /var/lib/postgresql, (serial 6ea73b81-555e-4a74-9,"
    " model QEMU HARDDISK, vk.ef-nvme)"
)


class Counter(msgspec.Struct, frozen=True):
    """A counter that grows evenly."""

    per_minute: float

    def steady(self) -> str:
        return f"0+{self.per_minute}x{SCRAPES}"

    def reset(self) -> str:
        """Begin again at 0 without a scrape being missed."""
        high = 1_000_000
        return f"{high}+{self.per_minute}x{BROKEN_OFF_AFTER} 0+{self.per_minute}x{REST}"

    def restarted(self) -> str:
        """Be away for three scrapes, and begin again at 0."""
        return f"{500}+{self.per_minute}x{BROKEN_OFF_AFTER} stale _x3 0+{self.per_minute}x{REST}"

    def gone(self) -> str:
        return f"0+{self.per_minute}x{SCRAPES // 4} stale"


class Gauge(msgspec.Struct, frozen=True):
    """A level that stays."""

    value: float

    def steady(self) -> str:
        return f"{self.value}x{SCRAPES}"

    def reset(self) -> str:
        return self.steady()

    def restarted(self) -> str:
        return f"{self.value}x{BROKEN_OFF_AFTER} stale _x3 {self.value}x{REST}"

    def gone(self) -> str:
        return f"{self.value}x{SCRAPES // 4} stale"


class Since(msgspec.Struct, frozen=True):
    """A level that has changed so many minutes before we look."""

    minutes: int
    value: float
    before: float

    def steady(self) -> str:
        return f"{self.before}x{LOOKED_AT_MINUTE - 1 - self.minutes} {self.value}x{SCRAPES}"

    def reset(self) -> str:
        return f"{self.before}x{SCRAPES}"

    def restarted(self) -> str:
        return f"{self.before}x{BROKEN_OFF_AFTER} stale _x3 {self.before}x{REST}"

    def gone(self) -> str:
        return f"{self.before}x{SCRAPES // 4} stale"


class Young(msgspec.Struct, frozen=True):
    """A counter that is there since so many minutes before we look."""

    minutes: int
    per_minute: float

    def steady(self) -> str:
        return f"_x{LOOKED_AT_MINUTE - self.minutes} 0+{self.per_minute}x{REST}"

    def reset(self) -> str:
        return self.steady()

    def restarted(self) -> str:
        return self.steady()

    def gone(self) -> str:
        return self.steady()


Course = Counter | Gauge | Since | Young
World = Mapping[str, Course]
"""What is scraped, by series."""


def series(metric: str, labels: Mapping[str, str]) -> str:
    told = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{metric}{{{told}}}"


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
    return of_disk("disk_info", **{**KNOWN_BY, **rest, **other})


def verdicts(**per_minute: float) -> World:
    return {
        of_disk("verdict_seconds_total", verdict=verdict): Counter(per_minute.get(verdict, 0))
        for verdict in ("idle", "unproven", "met", "throttled", "below", "stalled")
    }


UNKNOWN: World = {info(): Gauge(1), of_host("up"): Gauge(1)}
PROMISED: World = {
    **UNKNOWN,
    of_disk("limit_read_iops"): Gauge(10000),
    of_disk("limit_write_iops"): Gauge(5000),
    of_disk("limit_latency_seconds"): Gauge(0.0005),
}


def _runbook(alert: str) -> dict[str, str]:
    url = project_url()
    return {"runbook_url": f"{url}/docs/runbook.md#{alert.lower()}"} if url else {}


class Case(msgspec.Struct, frozen=True):
    """One alert on trial."""

    name: str
    severity: str
    summary: str
    description: str
    bad: World
    """In which it fires."""
    good: World
    """In which it just does not."""
    labels: Mapping[str, str] = {}
    """Beside those of the disk."""
    also_bad: Mapping[str, tuple[World, Alert]] = {}
    also_good: Mapping[str, World] = {}
    of: str = "disk"

    def alert(self) -> Alert:
        return self._alert(self.description, self.labels)

    def _alert(self, description: str, labels: Mapping[str, str]) -> Alert:
        whose = {**DISK, **KNOWN_BY} if self.of == "disk" else HOST
        return Alert(
            {**whose, "severity": self.severity, **labels},
            {
                "summary": self.summary,
                "description": description,
                **_runbook(self.name),
            },
        )

    def other(self, description: str, **labels: str) -> Alert:
        return self._alert(description, labels)


def requests(latency_s: float, load: str = "0.5", request_bytes: int = 4096) -> World:
    """Give a hundred reads a second of one latency, in windows below one load."""
    a_minute = 6000
    windows = {"0.5": 0.0, "1": 0.0, "+Inf": 600.0}
    for bound in windows:
        if float(bound) >= float(load):
            windows[bound] = 600.0
    return {
        **PROMISED,
        of_disk("reads_completed_total"): Counter(a_minute),
        of_disk("read_bytes_total"): Counter(a_minute * request_bytes),
        of_disk("read_time_seconds_total"): Counter(a_minute * latency_s),
        **{
            of_disk("window_load_ratio_bucket", le=bound): Counter(count)
            for bound, count in windows.items()
        },
    }


def probed(latency_s: float) -> World:
    return {
        **PROMISED,
        of_disk("probe_write_latency_seconds_sum"): Counter(10 * latency_s),
        of_disk("probe_write_latency_seconds_count"): Counter(10),
    }


def bucket(exhaustion_s: float, lower: float, upper: float) -> World:
    return {
        **PROMISED,
        of_disk("burst_credits_lower_bound", resource="iops"): Gauge(lower),
        of_disk("burst_credits_upper_bound", resource="iops"): Gauge(upper),
        of_disk("burst_credits_capacity", resource="iops"): Gauge(8000),
        of_disk("burst_exhaustion_seconds", resource="iops"): Gauge(exhaustion_s),
    }


def verified(passed: bool, ended_s: float = 0) -> World:
    test = "write iops 4 KiB"
    return {
        **PROMISED,
        of_disk("verification_ratio", test=test): Gauge(0.63),
        of_disk("verification_required_ratio", test=test): Gauge(0.75),
        of_disk("verification_passed", test=test): Gauge(float(passed)),
        of_disk("verification_timestamp_seconds"): Gauge(ended_s),
    }


def last_attempt(ended_s: float, interval_s: float | None = 600) -> World:
    kind = "read-latency"
    every = {of_disk("probe_interval_seconds", kind=kind): Gauge(interval_s)} if interval_s else {}
    return {
        **PROMISED,
        **every,
        of_disk("probe_last_attempt_timestamp_seconds", kind=kind): Gauge(ended_s),
    }


def sampled(missed: float, ticks: float) -> World:
    return {
        of_host("disksla_sampler_ticks_total"): Counter(ticks),
        of_host("disksla_sampler_missed_ticks_total"): Counter(missed),
    }


def asked_for(**per_minute: float) -> World:
    return {**PROMISED, **verdicts(**per_minute)}


def hurt(pressure: float, iowait: float) -> World:
    return {
        **PROMISED,
        of_disk("throttled_pressure_seconds_total", kind="some"): Counter(pressure),
        of_disk("throttled_pressure_seconds_total", kind="full"): Counter(pressure),
        of_disk("throttled_iowait_seconds_total"): Counter(iowait),
    }


def _with(case: Case, **changes: Any) -> Case:
    return msgspec.structs.replace(case, **changes)


BELOW = Case(
    "DiskBelowPromise",
    "warning",
    "A disk gives less than its terms promise.",
    f"{WHO} gave less than promised in 20% of the last hour, as far as the promise was put to the"
    " test. Reads now: 250/s. Reads promised: 10k/s. Writes promised: 5k/s.",
    bad={
        **asked_for(below=12, met=24, throttled=24),
        of_disk("reads_completed_total"): Counter(15000),
    },
    good=asked_for(below=5.9, met=27, throttled=27.1),
    also_good={
        "no more since five minutes": {
            **asked_for(met=60),
            of_disk("verdict_seconds_total", verdict="below"): Since(7, 1800, 1800),
        },
        "for seconds only": asked_for(below=0.9, met=0.1, idle=59),
        "proven by nothing": asked_for(unproven=30, idle=30),
    },
)
LATENCY = Case(
    "DiskLatencyAbovePromise",
    "warning",
    "A disk is slower than its terms guarantee.",
    f"{WHO} takes 800us for reads on average, at a load that leaves it room, where 500us is"
    " guaranteed.",
    bad=requests(0.0008),
    good=requests(0.000599),
    labels={"requests": "reads"},
    also_good={
        "at a load of its own making": requests(0.0008, load="1"),
        "of big requests": requests(0.0008, request_bytes=65536),
        "that nobody guarantees": {
            (info(latency_kind="indicative") if name == info() else name): course
            for name, course in requests(0.0008).items()
        },
        "of probes, as promised": probed(0.000599),
    },
)
LATENCY = _with(
    LATENCY,
    also_bad={
        "seen by probes": (
            probed(0.002),
            LATENCY.other(
                f"{WHO} takes 2ms for writes of probes on average, at a load that leaves it room,"
                " where 500us is guaranteed.",
                requests="writes of probes",
            ),
        )
    },
)
THROTTLED = Case(
    "DiskThrottled",
    "warning",
    "A disk is held at its limit for much of the time.",
    f"{WHO} was held at its limit for 50% of the last 30m while requests waited. Held at: 1k IOPS."
    " Held at: 50MiB/s.",
    bad={
        **asked_for(throttled=30, met=30),
        of_disk("observed_ceiling_iops"): Gauge(1000),
        of_disk("observed_ceiling_bytes_per_second"): Gauge(50 * 2**20),
    },
    good=asked_for(throttled=14.9, idle=45.1),
    also_good={
        "in its first minutes": {
            **PROMISED,
            of_disk("verdict_seconds_total", verdict="throttled"): Young(7, 60),
        },
    },
)
HURTS = Case(
    "DiskThrottlingHurtsHost",
    "warning",
    "Programs of a host wait because a disk is held at its limit.",
    f"{WHO} is held at its limit, and meanwhile some programs of the host stood still for I/O in"
    " 25% of the time, over the last 15m.",
    bad=hurt(15, 0),
    good=hurt(11.9, 29.9),
    labels={"symptom": "pressure"},
)
HURTS = _with(
    HURTS,
    also_bad={
        "in iowait": (
            hurt(0, 90),
            HURTS.other(
                f"{WHO} is held at its limit, and meanwhile 1.5 CPUs stood in iowait, over the"
                " last 15m.",
                symptom="iowait",
            ),
        )
    },
)
EXHAUSTED = Case(
    "DiskBurstCreditsExhausted",
    "warning",
    "A disk has used up its burst credits.",
    f"{WHO} has at most 0.5% of its burst credits (iops) left and falls back to its base limit."
    " Reads: 10k/s. Writes: 5k/s.",
    bad=bucket(30, 0, 40),
    good=bucket(30, 0, 81),
    labels={"resource": "iops"},
)
SOON = Case(
    "DiskBurstCreditsExhaustSoon",
    "info",
    "A disk will soon have used up its burst credits.",
    f"{WHO} uses up its burst credits (iops) in 15m 0s if it goes on like this, and may have less"
    " than 50 % of them left.",
    bad=bucket(900, 3000, 6000),
    good=bucket(1801, 3000, 6000),
    labels={"resource": "iops"},
    also_good={
        "but has many for certain": bucket(900, 4001, 6000),
        "and has none already": bucket(900, 0, 40),
    },
)
STALLED = Case(
    "DiskStalled",
    "critical",
    "A disk does not answer.",
    f"{WHO} had requests in flight and completed none for 1m 0s of the last 5m. In flight now: 7.",
    bad={**asked_for(stalled=12, idle=48), of_disk("inflight"): Gauge(7)},
    good=asked_for(stalled=5.9, idle=54.1),
)
FAILING = Case(
    "DiskProbeFailing",
    "warning",
    "Probes of a disk fail.",
    f"{WHO}: the last read-latency probes failed, so nobody knows what a single request takes.",
    bad={**PROMISED, of_disk("probe_success", kind="read-latency"): Since(26, 0, 1)},
    good={**PROMISED, of_disk("probe_success", kind="read-latency"): Since(24, 0, 1)},
    labels={"kind": "read-latency"},
)
STALE = Case(
    "DiskProbeStale",
    "warning",
    "A disk is no longer probed.",
    f"{WHO}: for 31m 40s no read-latency probe was run, or put off for a reason that passes.",
    bad=last_attempt(NOW_S - 1900),
    good=last_attempt(NOW_S - 1499),
    labels={"kind": "read-latency"},
    also_good={
        "of which an hour may pass between two": last_attempt(NOW_S - 7499, 3600),
        "which a crontab line asks for": last_attempt(NOW_S - 8 * 86400 + 1, None),
    },
)
STALE = _with(
    STALE,
    also_bad={
        "within two hours and more": (
            last_attempt(NOW_S - 8400, 3600),
            STALE.other(
                f"{WHO}: for 2h 20m 0s no read-latency probe was run, or put off for a reason that"
                " passes.",
                kind="read-latency",
            ),
        ),
        "which a crontab line asks for": (
            last_attempt(NOW_S - 9 * 86400, None),
            STALE.other(
                f"{WHO}: for 9d 0h 0m 0s no read-latency probe was run, or put off for a reason"
                " that passes.",
                kind="read-latency",
            ),
        ),
    },
)
VERIFICATION = Case(
    "DiskVerificationFailed",
    "warning",
    "A disk failed its acceptance test.",
    f"{WHO} reached 84% of what its provider stands by in the test write iops 4 KiB.",
    bad=verified(False),
    good=verified(True),
    labels={"test": "write iops 4 KiB"},
    also_good={"a month ago": verified(False, NOW_S - 30 * 86400 - 1)},
)
DOWN = Case(
    "DiskSlaExporterDown",
    "warning",
    "The daemon that watches the disks of a host cannot be reached.",
    "Prometheus gets no answer from disksla at db1:10056: nobody watches the disks there.",
    bad={of_host("up"): Since(6, 0, 1)},
    good={of_host("up"): Since(4, 0, 1)},
    of="host",
)
LATE = Case(
    "DiskSlaSamplerLate",
    "warning",
    "The daemon looks at the disks less often than it should.",
    "disksla at db1:10056 missed 10% of its samples: its windows are longer, and short bursts are"
    " lost in them.",
    bad=sampled(60, 540),
    good=sampled(29.9, 570.1),
    of="host",
)
TERMS = Case(
    "DiskTermsUnknown",
    "info",
    "Nothing is known of what a disk was sold as.",
    f"{WHO} is held against nothing: tell the daemon its terms, and it tells whether they are"
    " kept.",
    bad=UNKNOWN,
    good={**UNKNOWN, of_disk("limit_written_bytes_per_second"): Gauge(1)},
    labels={
        "provider": "vk",
        "budget": "separate",
        "latency_kind": "guaranteed",
        "rotational": "false",
    },
    also_good={
        f"for its {limit} is promised": {**UNKNOWN, of_disk(f"limit_{limit}"): Gauge(1)}
        for limit in ("read_iops", "write_iops", "read_bytes_per_second")
    },
)
CASES = (
    *(BELOW, LATENCY, VERIFICATION),
    *(THROTTLED, HURTS, EXHAUSTED, SOON),
    *(STALLED, FAILING, STALE, TERMS),
    *(DOWN, LATE),
)
OF_COUNTERS = (BELOW, LATENCY, THROTTLED, HURTS, STALLED, LATE)
"""Those that go by what counters do, whenever that is."""
