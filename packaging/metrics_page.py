"""Write docs/metrics.md, from the tables of metrics: `make docs`."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prometheus_client import ProcessCollector

from disksla.serve.metrics.disk_metrics import DISK_METRICS
from disksla.serve.metrics.limit_metrics import LAW_OF_DISKS
from disksla.serve.metrics.machine_metrics import (
    CONSUMER_METRICS,
    MACHINE_METRICS,
    PROVIDER_METRICS,
)
from disksla.serve.metrics.metric import Metric
from disksla.serve.metrics.probe_metrics import PROBE_METRICS, VERIFICATION_METRICS
from disksla.serve.metrics.self_metrics import BUILD_METRICS, SAMPLER_METRICS, TERMS_METRICS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"

OF_DISKS: tuple[Metric[Any], ...] = (
    *DISK_METRICS,
    *PROVIDER_METRICS,
    *CONSUMER_METRICS,
    *PROBE_METRICS,
    *VERIFICATION_METRICS,
)
OF_THE_MACHINE: tuple[Metric[Any], ...] = MACHINE_METRICS
OF_THE_DAEMON: tuple[Metric[Any], ...] = (*SAMPLER_METRICS, *TERMS_METRICS, *BUILD_METRICS)
METRICS = (*OF_DISKS, *OF_THE_MACHINE, *OF_THE_DAEMON)
_LIMITS = """
## Limits, without a daemon

The file of `disksla limits --textfile` has `disksla_disk_info`, `disksla_mount_info`, the limits,
and those of the machine as above, for [node_exporter](fleet.md#without-a-daemon). Its rules need
these, too; those of the machine are `disksla_machine_limit_...` with `group` instead of `device`.

"""

_INTRODUCTION = """\
# Metrics

Generated from the metric tables by `make docs`; do not edit.

Units are seconds, bytes and ratios. An unknown value has no sample, and an unknown label is empty.
A metric is absent where it does not apply, and where the kernel does not count it.

- **Counters** start at 0 when disksla first samples a disk. Those of requests are the fields of
  /proc/diskstats, since the Linux version in brackets.
- **Sampling windows** last 100 ms by default. Latencies are means over such windows, counted once
  per request.
- **Writes** in latencies, loads and peaks are the kernel's without any flush, unless
  `disksla_data_writes_total` has the exact number.
- **Limits** are for reads and writes each; if `budget` of `disksla_disk_info` is `sum` or
  `time_shared`, they share it.
- **Credits** are in the unit of `resource`: I/Os, bytes, or seconds of service.

Labels other than `device` that describe a disk are on `disksla_disk_info`; join it to add them:

```promql
rate(disksla_reads_completed_total[1m]) * on (instance, device) group_left (serial, terms)
  disksla_disk_info
```

By mount point:

```promql
rate(disksla_reads_completed_total[1m])
  and on (instance, device) disksla_mount_info{mountpoint="/var/lib/postgresql"}
```

## Profiles

`metrics: {profile: ...}` of the [configuration](configuration.md#metrics) selects what is
published:

- `lean`: what the alerts and the dashboard *Fleet* need;
- `default`: what all dashboards need;
- `full`: everything.

The column *profile* has the smallest profile that publishes a metric. Smaller profiles have fewer
buckets of histograms. Add up the buckets of disks only at bounds that all of them have.

"""

_NO_SUM = """
A histogram without sum and count has the number of observations in its bucket `+Inf`. Collectors
of OpenTelemetry drop such a histogram, and with it DiskLatencyAbovePromise; Prometheus, its agents
and VictoriaMetrics keep it.
"""

_MACHINE = """\
## Machine

Of each group of disks that share [limits of the machine](configuration.md#limits-of-the-machine).
"""

_PROCESS = """
## Process

As published by all Prometheus client libraries, in every profile.

"""


def documented(page: str) -> set[str]:
    """Return the names of the metrics that the tables of a page have."""
    return set(re.findall(r"^\| `(\w+)` \| (?:counter|gauge|histogram) \|", page, re.MULTILINE))


def rewritten(page: str) -> str:
    """Return the page of today instead of `page`.

    Queries of users end with a metric. Exit if one that `page` has is gone from the tables.
    """
    gone = documented(page) - documented(reference())
    if gone:
        sys.exit(
            f"docs/metrics.md not written: {', '.join(sorted(gone))} gone from the tables of"
            " metrics; to remove a metric, delete its row of the page by hand first"
        )
    return reference()


def reference() -> str:
    """Return the text of docs/metrics.md."""
    disks = _table(OF_DISKS, ("device",))
    machine = _table(OF_THE_MACHINE, ("group",))
    daemon = _table(OF_THE_DAEMON, ())
    return (
        f"{_INTRODUCTION}{_table_of_buckets()}{_NO_SUM}"
        f"\n## Each disk\n\n{disks}\n{_MACHINE}\n{machine}"
        f"\n## Sampler and daemon\n\n{daemon}{_PROCESS}{_table_of_process()}"
        f"{_LIMITS}{_table_of_limits()}"
    )


def _table_of_buckets() -> str:
    rows = ["| histogram | profile | bounds | sum and count |", "|---|---|---|---|"]
    for metric in METRICS:
        for profile, buckets in metric.buckets.items():
            bounds = ", ".join([*map(str, buckets.bounds), "+Inf"])
            has_sum = "yes" if buckets.has_sum else "no"
            rows.append(f"| `{metric.name}` | {profile} | {bounds} | {has_sum} |")
    return "\n".join(rows) + "\n"


def _table(metrics: Iterable[Metric[Any]], common_labels: tuple[str, ...]) -> str:
    rows = ["| metric | kind | labels | profile | description |", "|---|---|---|---|---|"]
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in common_labels + metric.labels)
        rows.append(
            f"| `{metric.name}` | {metric.kind} | {labels} | {metric.profile} | {metric.help} |"
        )
    return "\n".join(rows) + "\n"


def _table_of_process() -> str:
    rows = ["| metric | kind | description |", "|---|---|---|"]
    for family in ProcessCollector(registry=None).collect():
        [sample] = family.samples
        rows.append(f"| `{sample.name}` | {family.type} | {family.documentation} |")
    return "\n".join(rows) + "\n"


def _table_of_limits() -> str:
    rows = ["| metric | kind | labels | description |", "|---|---|---|---|"]
    for metric in LAW_OF_DISKS:
        labels = ", ".join(f"`{label}`" for label in ("device", *metric.labels))
        rows.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
