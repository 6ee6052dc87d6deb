"""The verdict on each window of a disk.

Theory of operation. A sample every 100 ms gives the increase of the counters of a disk: a window
(`disksla.verdict.interval`). A window has exactly one verdict:

| verdict | meaning |
|---|---|
| idle | no I/O and nothing in flight |
| unproven | the load is less than the promise and is served: the promise is not tested |
| met | the load is at or above the promise, and nothing throttles |
| throttled | a limiter makes requests wait: the disk's, the machine's or an unknown one |
| below | requests wait, deep enough for the promise to apply, and the disk gives less |
| stalled | requests are in flight, and none completes for longer than any limiter explains |

While requests are in flight for much of the time, the disk is looked at closer: its counters are
read every 10 ms for some seconds of each ten (`observation`). That shows a limiter directly. It
has two signs (`signs`):

1. **Pauses** (`pauses`): requests are in flight and no data is transferred, again and again, and
   the ends of these times are apart by a constant window, as those of a clock. Throttled time is
   the pauses. What is transferred from one to the next is what the limiter admits in a window.
2. **The law of the bucket** (`bucket`): while requests wait, a limit of the terms, or of the
   machine over its disks, serves its rate times the time, but for a request or two, in each piece
   of that time. So even limiters are seen, which have no pauses, under any load. Throttled time is
   that in which more requests were in flight than the bucket had let pass.

A limiter that is seen by pauses is named by the limit of the terms or of the machine whose rate it
has (`naming`), else it is unknown. What the signs do not show is not throttled: a false accusation
is worse than a miss. iowait, PSI, latencies and service times are not used. An even flow alone is
no sign: a disk that is used to its full has it, too.

- **Bounded memory.** Windows are decided when their second of monotonic time ends, by what was
  seen in ten seconds. Nothing else is remembered, so any two detectors agree on every window that
  ends ten seconds after the later one started.
- **Flushes.** /proc/diskstats counts empty flushes as writes, and no limiter charges them. A pause
  has no transferred data, whatever flushes complete, and does not count where a flush explains it.
  Where the number of data writes is a range, the limit has to be in it.
- **Silent windows** at the end of a second wait for the next completion, for 1.1 s at most. Then
  they are a stall.
- **The ceiling** (`ceiling`) is the rate of the limiter that was seen last, with its window. It is
  published for longer, and no verdict reads it.
- **Below** (`promise`) is a deep queue that is served at less than the promise for a second; or a
  limiter that is seen and admits less, at any depth, unless it may be the machine's.

`verdict.classify` makes the verdicts. docs/adr/0040 has the reasons, and what each sign gives and
costs.
"""

from disksla.verdict.throttling.pauses import LONGEST_WINDOW_S
from disksla.verdict.throttling.promise import NEARLY, needed_depth
from disksla.verdict.throttling.second import Second
from disksla.verdict.throttling.signs import SIGNS, Sign
from disksla.verdict.throttling.throttle import (
    LIMIT_KINDS,
    MACHINE_LIMITS,
    OF_MACHINE,
    UNKNOWN_LIMIT,
    Ceiling,
    LimitKind,
    MachineWindow,
    SharedWindow,
    Throttle,
    ThrottleLevel,
    binding_limit,
    limit_at,
)
from disksla.verdict.throttling.verdict import (
    LIMITED_VERDICTS,
    VERDICTS,
    DetectorState,
    Verdict,
    WindowVerdict,
    after_gap,
    classify,
)
