"""What a Prometheus server has of disks.

- `query`: requests to its API, and the series that it answers.
- `selection`: which disks are asked about, and which of them it has.
- `period`: the time that is asked about.
- `step`: what counters increased by between two scrapes.
"""

from disksla.measure.prometheus.period import Period, parse_period
from disksla.measure.prometheus.query import (
    CHUNK_S,
    MOST_POINTS,
    Series,
    Server,
    find_series,
    read_steps,
    selector,
)
from disksla.measure.prometheus.selection import (
    DiskName,
    Selection,
    find_disks,
    is_selected,
    parse_matchers,
)
from disksla.measure.prometheus.step import (
    DATA_WRITES,
    FACTS,
    FLUSHES,
    CounterName,
    Facts,
    Key,
    Step,
    facts_of,
    read_increases,
    within,
)
