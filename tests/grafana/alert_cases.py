"""A case for each alert: series on which it fires, and series on which it just does not."""

import math
from collections.abc import Mapping
from typing import Literal

import msgspec

from grafana.alert_series import (
    CLAIM,
    DISK,
    GROUP,
    HOST,
    IDENTITY,
    MACHINE,
    NOW_S,
    SHARED_LIMITS,
    WITH_LIMITS,
    WITHOUT_LIMITS,
    ChangedGauge,
    Counter,
    Gauge,
    NewCounter,
    World,
    assessed,
    credits_left,
    errors,
    falling_credits,
    in_namespace,
    info,
    last_attempt,
    loaded,
    machine,
    machine_credits,
    machine_throttled,
    of_disk,
    of_group,
    of_host,
    probed,
    requests,
    sampled,
    series,
    throttled_by,
    throttling_symptoms,
    verdicts,
    verified,
    volume,
)
from grafana.metric_names import rules

MACHINE_PREFIX = "On db1:10056 (m6i.large), all EBS volumes of the instance together"
PREFIX = "Disk vdb on db1:10056"
BOUGHT = " Bought: 10k reads/s. Bought: 5k writes/s."
ABOUT = " Serial 6ea73b81-555e-4a74-9, terms vk.ef-nvme, mounted at /var/lib/postgresql."
"""Last sentence of the description of every alert on a disk."""


class Firing(msgspec.Struct, frozen=True):
    """Series on which an alert fires, its description, and its labels beside those of the disk."""

    world: World
    description: str
    labels: Mapping[str, str] = {}


class Case(msgspec.Struct, frozen=True):
    """The test data of one alert."""

    name: str
    bad: Firing
    good: World
    """Just below the threshold."""
    also_bad: Mapping[str, Firing] = {}
    also_good: Mapping[str, World] = {}
    of: Literal["disk", "machine", "host"] = "disk"
    runbook_of: str = HOST["instance"]
    """Daemon whose runbook the alert links to."""

    def alert(self, firing: Firing, host: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return all labels that are not empty, and all annotations, of the alert on a host."""
        of = {"disk": {**DISK, **IDENTITY}, "machine": {**GROUP, **MACHINE}, "host": HOST}
        [rule] = [each for each in rules() if each.get("alert") == self.name]
        texts = {
            "summary": rule["annotations"]["summary"],
            "description": firing.description + (ABOUT if self.of == "disk" else ""),
            "runbook_url": f"http://{self.runbook_of}/runbook#{self.name}",
        }
        labels = {**of[self.of], **rule["labels"], **firing.labels}

        def renamed(each: Mapping[str, str]) -> dict[str, str]:
            return {
                name: text.replace(HOST["instance"], host) for name, text in each.items() if text
            }

        return renamed(labels), renamed(texts)


BELOW = Case(
    "DiskBelowPromise",
    bad=Firing(
        {
            **assessed(below=12, met=34, throttled=14),
            of_disk("reads_completed_total"): Counter(15000),
        },
        f"{PREFIX} gave less than promised for 20% of the tested time of the last hour."
        " Reads now: 250/s. Reads promised: 10k/s. Writes promised: 5k/s.",
    ),
    good=assessed(below=5.9, met=27, throttled=27.1),
    also_bad={
        "and at an unknown limit": Firing(
            {**assessed(below=12, throttled=2.9), **throttled_by(iops=0, unknown=2.9)},
            f"{PREFIX} gave less than promised for 100% of the tested time of the last hour."
            " Reads promised: 10k/s. Writes promised: 5k/s.",
        ),
        "and throttled by the machine": Firing(
            assessed(by_machine=30, below=12, met=4, throttled=34, idle=10),
            f"{PREFIX} gave less than promised for 60% of the tested time of the last hour."
            " Reads promised: 10k/s. Writes promised: 5k/s.",
        ),
    },
    also_good={
        "not in the last 5 minutes": {
            **assessed(met=60),
            of_disk("verdict_seconds_total", verdict="below"): ChangedGauge(7, 1800, 1800),
        },
        "only for seconds": assessed(below=0.9, met=0.1, idle=59),
        "not tested": assessed(unproven=30, idle=30),
        "throttled by the machine": assessed(by_machine=60, throttled=60),
        "at an unknown limit": {**assessed(throttled=60), **throttled_by(iops=0, unknown=60)},
        "between times throttled by the machine": assessed(
            by_machine=54, throttled=54, below=3, met=3
        ),
    },
)
LATENCY = Case(
    "DiskLatencyAbovePromise",
    bad=Firing(
        requests(0.0008),
        f"{PREFIX} has a mean latency of 800us for reads while its load is below the limit."
        " Guaranteed: 500us.",
        {"requests": "reads"},
    ),
    good=requests(0.000599),
    also_bad={
        "of probes": Firing(
            probed(0.002),
            f"{PREFIX} has a mean latency of 2ms for writes of probes while its load is below the"
            " limit. Guaranteed: 500us.",
            {"requests": "writes of probes"},
        ),
        "throttled at another limit": Firing(
            {**requests(0.0008), **verdicts(by_machine=0.5, throttled=14, unproven=46)},
            f"{PREFIX} has a mean latency of 800us for reads while its load is below the limit."
            " Guaranteed: 500us.",
            {"requests": "reads"},
        ),
    },
    also_good={
        "at a high load": requests(0.0008, load="1"),
        "of large requests": requests(0.0008, request_bytes=65536),
        "that is not guaranteed": {
            (info(latency_kind="indicative") if name == info() else name): values
            for name, values in requests(0.0008).items()
        },
        "of probes, as promised": probed(0.000599),
        "throttled by the machine": {
            **requests(0.0008),
            **verdicts(by_machine=0.7, throttled=0.7, unproven=59.3),
        },
        "of probes, throttled by the machine": {**probed(0.002), **throttled_by(machine_iops=0.7)},
    },
)
THROTTLED = Case(
    "DiskThrottled",
    bad=Firing(
        {
            **verdicts(by_machine=6, throttled=36, met=24),
            **SHARED_LIMITS,
            of_disk("throttle_wait_seconds_total"): Counter(2160),
            of_disk("reads_completed_total"): Counter(50000),
            of_disk("writes_completed_total"): Counter(10000),
            of_disk("observed_ceiling_iops"): Gauge(1000),
            of_disk("observed_ceiling_bytes_per_second"): Gauge(50 * 2**20),
            of_disk("consumer_requests_total", consumer="a.service", program="x"): Counter(30),
            of_disk("consumer_requests_total", consumer="a.service", program="y"): Counter(30),
            of_disk("consumer_requests_total", consumer="b.service", program=""): Counter(40),
            of_disk("consumer_requests_total", consumer="kernel", program=""): Counter(20),
            of_disk("consumer_bytes_total", consumer="b.service", program=""): Counter(4096),
        },
        f"{PREFIX} was throttled for 50% of the last 30m. You: iops 50%. The machine: bandwidth"
        " 7.5%. The machine: iops 2.5%. Requests waited 36ms each. Bought: 1k IOPS. Bought:"
        " 60MiB/s. Served: 1k IOPS. Served: 50MiB/s. Most requests: a.service. Most bytes:"
        " b.service.",
        {"budget": "sum"},
    ),
    good=assessed(throttled=14.9, idle=45.1),
    also_bad={
        "and by the machine": Firing(
            assessed(by_machine=30, throttled=54, idle=6),
            f"{PREFIX} was throttled for 40% of the last 30m. You: iops 40%. The machine:"
            f" bandwidth 37.5%. The machine: iops 12.5%.{BOUGHT}",
            {"budget": "separate"},
        ),
        "partly at an unknown limit": Firing(
            {**assessed(throttled=30), **throttled_by(iops=27.6, unknown=2.4)},
            f"{PREFIX} was throttled for 50% of the last 30m. You: iops 46%. Unknown limit: 4%."
            f"{BOUGHT}",
            {"budget": "separate"},
        ),
        "of a claim": Firing(
            {**assessed(throttled=30, met=30), volume(): Gauge(1)},
            "Disk vdb (claim db/data-pg-0) on db1:10056 was throttled for 50% of the last 30m."
            f" You: iops 50%.{BOUGHT}",
            {"budget": "separate", **CLAIM},
        ),
        "of a claim, and with a namespace of the target": Firing(
            in_namespace("disksla", {**assessed(throttled=30, met=30), volume(): Gauge(1)}),
            "Disk vdb (claim db/data-pg-0) on db1:10056 was throttled for 50% of the last 30m."
            f" You: iops 50%.{BOUGHT}",
            {"budget": "separate", **CLAIM},
        ),
        "of no claim, and with a namespace of the target": Firing(
            in_namespace("disksla", assessed(throttled=30, met=30)),
            f"{PREFIX} was throttled for 50% of the last 30m. You: iops 50%.{BOUGHT}",
            {"budget": "separate", "namespace": "disksla"},
        ),
    },
    also_good={
        "in its first minutes": {
            **WITH_LIMITS,
            of_disk("throttled_seconds_total", limit="iops"): NewCounter(7, 60),
        },
        "by the machine": assessed(by_machine=46, throttled=60),
    },
)
NEAR = Case(
    "DiskNearLimit",
    bad=Firing(
        {
            **loaded(above=36),
            of_disk("consumer_requests_total", consumer="a.service", program="x"): Counter(30),
        },
        f"{PREFIX} had a load above 80 % of its limit for 60% of the last 30m. It is not throttled"
        " much yet. Most requests: a.service.",
    ),
    good=loaded(above=29.9),
    also_bad={
        "and at the limit at times": Firing(
            {**loaded(above=45), **throttled_by(iops=14)},
            f"{PREFIX} had a load above 80 % of its limit for 75% of the last 30m. It is not"
            " throttled much yet.",
        )
    },
    also_good={
        "throttled": {**loaded(above=60), **throttled_by(iops=30)},
        "throttled since a few minutes": {
            **loaded(above=60),
            of_disk("throttled_seconds_total", limit="iops"): NewCounter(7, 60),
        },
        "of the baseline": {**loaded(above=60), **credits_left(math.inf, 8000, 8000)},
    },
)
UNEXPLAINED = Case(
    "DiskLimitNotExplained",
    bad=Firing(
        {
            **WITH_LIMITS,
            of_disk("throttled_seconds_total", limit="unknown"): Counter(6),
            of_disk("observed_ceiling_iops"): Gauge(460),
        },
        f"{PREFIX} was throttled for 10% of the last 30m by a limiter whose rate is not a limit of"
        " its terms: its promise is not tested. Observed ceiling: 460 IOPS. Check its type and"
        " size, and the machine type.",
    ),
    good={**WITH_LIMITS, of_disk("throttled_seconds_total", limit="unknown"): Counter(2.9)},
    also_good={
        "without terms": {
            **WITHOUT_LIMITS,
            of_disk("throttled_seconds_total", limit="unknown"): Counter(30),
        },
        "at known limits": {**WITH_LIMITS, **throttled_by(iops=30, machine_iops=30)},
    },
)
SLOW = Case(
    "DiskSlow",
    bad=Firing(
        {
            **WITH_LIMITS,
            of_disk("slow_seconds_total", than="usual"): Counter(30),
            of_disk("usual_latency_seconds", direction="read"): Gauge(0.0007),
        },
        f"{PREFIX} was slow for 50% of the last 30m. A small read usually takes 700us.",
    ),
    good={**WITH_LIMITS, of_disk("slow_seconds_total", than="usual"): Counter(12)},
    also_good={
        "above its promise only": {
            **WITH_LIMITS,
            of_disk("slow_seconds_total", than="promise"): Counter(50),
        }
    },
)
HURTS_HOST = Case(
    "DiskThrottlingHurtsHost",
    bad=Firing(
        throttling_symptoms(15, 0),
        f"{PREFIX} is throttled, and tasks of the host were stalled for I/O for 25% of the last"
        " 15m.",
        {"symptom": "pressure"},
    ),
    good=throttling_symptoms(11.9, 29.9),
    also_bad={
        "in iowait": Firing(
            throttling_symptoms(0, 90),
            f"{PREFIX} is throttled, and 1.5 CPUs were in iowait over the last 15m.",
            {"symptom": "iowait"},
        ),
        "at a limit of the machine": Firing(
            {
                **throttling_symptoms(15, 0),
                **verdicts(by_machine=24, throttled=30, idle=30),
                of_disk("consumer_requests_total", consumer="a.service", program="x"): Counter(30),
            },
            f"{PREFIX} is throttled, and tasks of the host were stalled for I/O for 25% of the"
            " last 15m. You: iops 10%. The machine: bandwidth 30%. The machine: iops 10%."
            " Most requests: a.service.",
            {"symptom": "pressure"},
        ),
    },
)
EXHAUSTED = Case(
    "DiskBurstCreditsExhausted",
    bad=Firing(
        credits_left(30, 0, 40),
        f"{PREFIX} has at most 0.5% of its burst credits (iops) left. It is limited to its"
        " baseline. Baseline of reads: 10k/s. Baseline of writes: 5k/s.",
        {"resource": "iops"},
    ),
    good=credits_left(30, 0, 81),
)
EXHAUST_SOON = Case(
    "DiskBurstCreditsExhaustSoon",
    bad=Firing(
        credits_left(900, 3000, 6000),
        f"{PREFIX} will use up its burst credits (iops) in 15m 0s at this rate. It may have less"
        " than 50 % of them left.",
        {"resource": "iops"},
    ),
    good=credits_left(1801, 3000, 6000),
    also_bad={
        "by the trend of an hour": Firing(
            {**credits_left(math.inf, 3000, 6000), **falling_credits("burst", to=4100)},
            f"{PREFIX} will use up its burst credits (iops) in 3h 25m 0s at this rate. It may have"
            " less than 50 % of them left.",
            {"resource": "iops"},
        )
    },
    also_good={
        "in five hours": {**credits_left(3e4, 3000, 6000), **falling_credits("burst", to=6000)},
        "with many for certain": credits_left(900, 4001, 6000),
        "with none left": credits_left(900, 0, 40),
    },
)
MACHINE_LIMIT = Case(
    "MachineLimitReached",
    bad=Firing(
        {**machine(), **machine_throttled(6, 18)},
        f"{MACHINE_PREFIX} were at the limit of the machine for 40% of the last 1h."
        " By limit: bandwidth 30%, iops 10%. Disks: vdb, vdc. Limit: 3.6k IOPS. Limit: 90MiB/s."
        " A larger disk does not help.",
    ),
    good={**machine(), **machine_throttled(7, 7.9)},
    also_bad={
        "with separate limits of reads and writes, of an unknown type": Firing(
            {**machine(budget="separate", machine=""), **machine_throttled(0, 60)},
            "On db1:10056, all EBS volumes of the instance together were at the limit of the"
            " machine for 100% of the last 1h. By limit: bandwidth 100%. Disks: vdb, vdc."
            " Limit: 3.6k IOPS. Limit: 90MiB/s."
            " A larger disk does not help.",
            {"budget": "separate", "machine": ""},
        ),
        "with a claim": Firing(
            {**machine(), **machine_throttled(0, 60), volume(): Gauge(1)},
            f"{MACHINE_PREFIX} were at the limit of the machine for 100% of the last 1h."
            " By limit: bandwidth 100%. Disks: vdb (claim db/data-pg-0), vdc."
            " Limit: 3.6k IOPS. Limit: 90MiB/s. A larger disk does not help.",
        ),
    },
    also_good={
        "in its first minutes": {
            **machine(),
            of_group("throttled_seconds_total", limit="iops"): NewCounter(14, 60),
        },
        "without limits of the machine": assessed(throttled=60),
    },
    of="machine",
)
MACHINE_CREDITS = Case(
    "MachineBurstCreditsLow",
    bad=Firing(
        machine_credits(900, 3000, 6000),
        f"{MACHINE_PREFIX} have at most 75% of the burst credits of the machine (iops)"
        " left. At the present rate they are used up in 15m 0s."
        " Disks: vdb, vdc. Limit: 3.6k IOPS."
        " Limit: 90MiB/s.",
        {"resource": "iops"},
    ),
    good=machine_credits(1801, 3000, 6000),
    also_bad={
        "used up": Firing(
            machine_credits(math.inf, 0, 40),
            f"{MACHINE_PREFIX} have at most 0.5% of the burst credits of the"
            " machine (iops) left."
            " Disks: vdb, vdc. Limit: 3.6k IOPS. Limit: 90MiB/s.",
            {"resource": "iops"},
        ),
        "by the trend of an hour": Firing(
            {
                **machine_credits(math.inf, 3000, 6000),
                **falling_credits("machine_burst", to=4100, of=GROUP),
            },
            f"{MACHINE_PREFIX} have at most 75% of the burst credits of the machine (iops) left."
            " Disks: vdb, vdc. Limit: 3.6k IOPS. Limit: 90MiB/s.",
            {"resource": "iops"},
        ),
    },
    also_good={
        "many for certain": machine_credits(900, 4001, 6000),
        "perhaps none, and not used": machine_credits(math.inf, 0, 81),
    },
    of="machine",
)
STALLED = Case(
    "DiskStalled",
    bad=Firing(
        {**assessed(stalled=12, idle=48), of_disk("inflight"): Gauge(7)},
        f"{PREFIX} had requests in flight and completed none for 1m 0s of the last 5m. In flight"
        " now: 7.",
    ),
    good=assessed(stalled=5.9, idle=54.1),
)
PROBE_FAILING = Case(
    "DiskProbeFailing",
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
    bad=Firing(
        last_attempt(NOW_S - 1900),
        f"{PREFIX} was not probed (read-latency) for 31m 40s, nor skipped for a temporary reason.",
        {"kind": "read-latency"},
    ),
    good=last_attempt(NOW_S - 1499),
    also_bad={
        "with an interval of an hour": Firing(
            last_attempt(NOW_S - 8400, 3600),
            f"{PREFIX} was not probed (read-latency) for 2h 20m 0s, nor skipped for a"
            " temporary reason.",
            {"kind": "read-latency"},
        ),
        "with a crontab line": Firing(
            last_attempt(NOW_S - 9 * 86400, None),
            f"{PREFIX} was not probed (read-latency) for 9d 0h 0m 0s, nor skipped for a"
            " temporary reason.",
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
    bad=Firing(
        WITHOUT_LIMITS,
        f"{PREFIX} has no limits to compare with. Add its terms to the configuration of disksla.",
        {"provider": "vk", "latency_kind": "guaranteed", "rotational": "false"},
    ),
    good=WITH_LIMITS,
)
EXPIRY = series("disksla_terms_expiry_timestamp_seconds", {**HOST, "source": "api"})
TERMS_OUT_OF_DATE = Case(
    "DiskSlaTermsOutOfDate",
    bad=Firing(
        {EXPIRY: Gauge(NOW_S - 3600)},
        "The terms on db1:10056 (source: api) are 1h 0m 0s older than they may be. They stay"
        " in force, but may have changed.",
        {"source": "api"},
    ),
    good={EXPIRY: Gauge(NOW_S + 60)},
    of="host",
)
DOWN = Case(
    "DiskSlaExporterDown",
    bad=Firing(
        {of_host("up"): ChangedGauge(6, 0, 1)},
        "Prometheus cannot scrape disksla at db1:10056. There is no data about its disks.",
    ),
    good={of_host("up"): ChangedGauge(4, 0, 1)},
    of="host",
    runbook_of="DiskBelowPromise bad",  # the first host of all cases that is up
)
LATE = Case(
    "DiskSlaSamplerLate",
    bad=Firing(
        sampled(60, 540),
        "disksla at db1:10056 missed 10% of its samples. Its windows are longer, and short bursts"
        " are averaged out.",
    ),
    good=sampled(29.9, 570.1),
    of="host",
)
FAILED = Case(
    "DiskSlaSamplerFailed",
    bad=Firing(
        errors("sampler", 2),
        "disksla at db1:10056 failed at 10 ticks of the last 5m. What its disks did then may be"
        " missing. Its log has the reason.",
        {"source": "sampler"},
    ),
    good=errors("sampler", 0),
    also_good={"errors of another source": errors("diskstats", 600)},
    of="host",
)
CASES = (
    *(BELOW, LATENCY, VERIFICATION),
    *(THROTTLED, NEAR, UNEXPLAINED, SLOW, HURTS_HOST, EXHAUSTED, EXHAUST_SOON),
    *(MACHINE_LIMIT, MACHINE_CREDITS),
    *(STALLED, PROBE_FAILING, PROBE_STALE, TERMS_UNKNOWN, TERMS_OUT_OF_DATE),
    *(DOWN, LATE, FAILED),
)
