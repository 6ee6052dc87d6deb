"""What a Prometheus server has of disks.

- `query`: requests to its API, and the series that it answers.
- `selection`: which disks are asked about, and which of them it has.
- `period`: the time that is asked about.
- `step`: what counters increased by between two scrapes.
"""

from disksla.prometheus.period import Period, parse_period
from disksla.prometheus.query import (
    CHUNK_S,
    MOST_POINTS,
    Series,
    Server,
    read_instant,
    read_samples,
    read_steps,
    selector,
)
from disksla.prometheus.selection import DiskName, Selection, find_disks, parse_matchers
from disksla.prometheus.step import (
    FACTS,
    CounterName,
    Facts,
    Key,
    Scrape,
    Step,
    facts_of,
    scrapes_of,
    steps_between,
    within,
)
