"""The metric tables as a page for people; `python -m disksla.metrics.reference` prints it."""

import sys
from collections.abc import Iterable
from typing import Any

from disksla.metrics.disk_metrics import DISK_METRICS
from disksla.metrics.metric import Metric
from disksla.metrics.probe_metrics import PROBE_METRICS
from disksla.metrics.self_metrics import BUILD_METRICS, SAMPLER_METRICS
from disksla.metrics.verification_metrics import VERIFICATION_METRICS

OF_DISKS: tuple[Metric[Any], ...] = (*DISK_METRICS, *PROBE_METRICS, *VERIFICATION_METRICS)
OF_THE_DAEMON: tuple[Metric[Any], ...] = (*SAMPLER_METRICS, *BUILD_METRICS)

_INTRODUCTION = """\
# Metrics

Made from the metric tables by `make docs`; do not edit.

Units are seconds, bytes and ratios. What is not known has no sample; nothing is ever published
as 0 in its place. Counters start at 0 when disksla first sees a disk, and a disk that goes takes
its series with it. Join `disksla_disk_info` for everything descriptive:

```promql
rate(disksla_reads_completed_total[1m]) * on (instance, device) group_left (serial, terms)
  disksla_disk_info
```

A histogram `NAME` is published as `NAME_bucket` with the label `le`, `NAME_count` and `NAME_sum`.
"""

_PROCESS = """
## Of the process

`process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_virtual_memory_bytes`,
`process_start_time_seconds`, `process_open_fds` and `process_max_fds`, as every Prometheus client
library publishes them.
"""


def reference() -> str:
    """Give docs/metrics.md."""
    of_disks = _table(OF_DISKS, ("device",))
    of_ourselves = _table(OF_THE_DAEMON, ())
    return (
        f"{_INTRODUCTION}\n## Of each disk\n\n{of_disks}"
        f"\n## Of the sampling and the daemon\n\n{of_ourselves}{_PROCESS}"
    )


def _table(metrics: Iterable[Metric[Any]], common_labels: tuple[str, ...]) -> str:
    rows = ["| metric | kind | labels | what |", "|---|---|---|---|"]
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in common_labels + metric.labels)
        rows.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
