"""Who uses a disk: units, containers and pods, by control groups and by samples of requests.

- `consumption`: what one reading adds, as ticks and recordings have it; `io.stat` and `io.max`.
- `names`: the name of a control group, a pod or a program, as it is shown.
- `sharing`: what lies between two readings of `io.stat`, by consumer; groups that are held at
  their own `io.max`.
- `groups`: scans the directories of the groups, and knows which of them have all I/O once.
- `io_stat`: reads `io.stat` while a disk is throttled or busy.
- `attribution`: requests by consumer and program, from samples of them.
- `readers`: the thread that reads both, so that their readings do not overlap.
- `consumer_totals`: sums by consumer, for metrics and for sentences.
"""

from disksla.kernel.consumers.consumer_totals import (
    FORGOTTEN_S,
    MOST_NAMES,
    MOST_SERIES,
    NO_CONSUMERS,
    ConsumerSums,
    ConsumerTotals,
    Usages,
    Watched,
    Who,
    total_usages,
)
from disksla.kernel.consumers.consumption import (
    KERNEL,
    NOT_NAMED,
    OTHER,
    UNATTRIBUTED,
    ConsumerReading,
    Consumption,
    OwnLimit,
    WatchedDisk,
)
