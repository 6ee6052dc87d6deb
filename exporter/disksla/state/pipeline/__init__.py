"""From ticks to state: `advance`, and what is recorded, saved and shown of a state.

START READING HERE. These modules, in this order, explain the program:

- `tick`: everything that was read from the machine at one moment, normally every 100 ms.
- `state`: everything known after a tick, as an immutable record.
- `advance`: `advance(state, tick)` returns the next state. It is a pure function, called by the
  sampler thread (`sampler`), by `disksla replay` and `disksla explain` on recorded ticks
  (`recording`), and by the tests.
- `disk_state`: the part of the state that belongs to one disk, and its update by one sample:
  counters, interval or gap, verdict, credits, totals.
- `group_state`: the same of a group of disks that share limits of the machine.
- `assessment`: what both have in common.
- `totals`: sums over the windows of one disk, from which counters and histograms are published.
- `snapshot`: the values that a scrape, the status page and the commands show.

The sampler thread is the only writer. It publishes a new state by assigning `Sampler.state`;
readers (HTTP server, probe scheduler, commands) use whatever state is published, without a lock.
`saved_state` and `restore` carry credits, ceilings and the bytes used by probes over a restart.
"""

from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.changed_lines import counters_of
from disksla.state.pipeline.disk_state import DiskState
from disksla.state.pipeline.probe_results import (
    FioFailure,
    ProbeFailure,
    ProbeResult,
    ProbeTotals,
    Skip,
    SkipReason,
)
from disksla.state.pipeline.restore import PreviousRun
from disksla.state.pipeline.sampler_stats import SamplerStats
from disksla.state.pipeline.saved_state import DiskEvent, EventCause
from disksla.state.pipeline.slow import Direction
from disksla.state.pipeline.snapshot import (
    ArraySnapshot,
    DiskSnapshot,
    GroupSnapshot,
    Snapshot,
    TermsSnapshot,
    disk_snapshot,
)
from disksla.state.pipeline.state import State, to_read_often, to_saved_state
from disksla.state.pipeline.tick import Tick
from disksla.state.pipeline.totals import Traffic
from disksla.state.pipeline.window_records import (
    WindowRecord,
    ended,
    present_periods,
    window_records,
)
