"""The metric tables as a page for people; `python -m disksla.exposition.reference` prints it."""

import sys
from collections.abc import Iterable
from typing import Any

from disksla.exposition.metrics import ABOUT_METRICS, DISK_METRICS, SAMPLER_METRICS, Metric

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
    of_disks = _table(DISK_METRICS, ("device",))
    of_ourselves = _table((*SAMPLER_METRICS, *ABOUT_METRICS), ())
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
