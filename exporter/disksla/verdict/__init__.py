"""The verdict on each window of a disk.

Theory of operation. A sample every 100 ms gives the increase of the counters of a disk: a window
(`interval`). A window has exactly one verdict:

| verdict | meaning |
|---|---|
| idle | no I/O and nothing in flight |
| unproven | the load is less than the promise and is served: the promise is not tested |
| met | the load is at or above the promise, and nothing throttles |
| throttled | a limiter makes requests wait: the disk's, the machine's or an unknown one |
| below | requests wait, deep enough for the promise to apply, and the disk gives less |
| stalled | requests are in flight, and none completes for longer than any limiter explains |

Let C(t) be what a disk has served up to t: requests, bytes, or seconds of its limit. A limiter of
rate L keeps C below a line of slope L, and while requests wait for it, C lies on that line. So
throttling has two signs, and neither is sufficient alone: requests wait (which they do at any busy
disk), and C is on a line (which any program can arrange that paces itself). Where no request waits
in a window, or is in flight after it, no line is looked for. iowait and PSI are not
used: they miss I/O submitted by libaio. The kernel's time with requests in flight (io_ticks) is
used only where none is at any sample: before Linux 6.10, time is lost when a request starts while
others are in flight, and then throttling is missed there.

- **Releases.** A limiter lets requests pass once per window of its own: 10 ms to 1 s, or all the
  time. Samples fall anywhere in its windows, and between two releases there may be windows without
  a completion. These belong to the release that ends them, and wait for its verdict. From release
  to release, the rate is that of the limiter, whatever its window is (`span`). Only silence for
  longer than any limiter explains is a stall.
- **A limit of the terms** (`known_limit`). The disk is throttled if requests wait and a span of
  the last releases has the rate of the limit, and none is far from it. It is throttled for as long
  as requests waited, not for the whole window: those that are in flight together wait together.
  Those of a load that was near the limit before, and did not wait, arrive one after another.
  While requests have waited for less than a second and the curve is neither on the limit nor far
  from it, verdicts wait, too: the first releases may be few requests, or a part of a window. No
  limiter admits more than its rate for longer. So the first release, which may begin within a
  window, is throttled only if later ones do not exceed the limit; and where earlier ones did, two
  at the limit are needed, because a load may end within a window.
- **A limit that the terms do not explain, or no terms at all** (`constant_rate`). The curve of a
  limiter differs from a straight line by less than a request. That of a disk drifts off: by the
  spread of its service times, multiplied by the square root of the number of requests. So a disk
  is throttled at an unknown limit after two seconds and 200 requests, with requests in flight all
  the time, if no sum of consecutive releases differs from a constant rate by much more. Few
  releases of a deep queue may end off the line, where samples split them: then 1,600 requests are
  needed. While the line is straight but not long enough, verdicts wait. One request at a time that
  takes less than a millisecond may as well be served by a fast disk at a constant rate. There,
  some samples are taken 5 to 10 ms late, until it is known: a disk has served more by then, in
  proportion, and a limiter with windows has not (`Line.needs_late_sample`). The rate is
  remembered: later loads at that rate are throttled at once, as long as they never exceed it.
  Where the windows of the limiter are no multiple of samples, the curve rises in equal steps: at
  samples, it is a whole number of windows, in proportion to time (`limiter_window`). Their length
  is published, also at limits of the terms, unless as many fall into each sample. On a busy
  machine, samples see completed requests some milliseconds late. With 400 requests of a deep
  queue, a quarter of the samples may be below a line along the top of the curve (`late_samples`).
  A sample that is late itself counts a part of the next window, so half as many may be above a
  line along the bottom.
- **A limit of the machine** over several disks. The sum of what they served is a curve like that
  of one disk. While it lies on the limit, a disk of the group at which requests wait is throttled
  by the machine, unless its own limit is used more. What requests took one at a time while the
  group had little load is not waiting.
- **Flushes.** /proc/diskstats counts empty flushes as writes, so the number of data writes is a
  range (`interval`). No limiter charges a flush: both ends of the range are tried, and the one
  that lies on a line is believed. `met` needs the smaller number. A database that also commits to
  a journal is between both ends (`flush_share`): for a limit of the terms, the share of the
  flushes is found with which the curve is on the limit from each release to each other, but for
  few that end below it because nothing was in flight. The share is that of a program, so it is
  kept. Where concurrent flushes are merged, it varies; there, several requests in flight and a
  limit in nearly every range suffice, and windows wait while all ranges had one.
- **Waiting** (`service_time`) is the time that requests take beyond that of a request which did
  not wait. That time is learned only from windows that cannot have been throttled, or are shorter
  on average, and from those in which a limiter with windows admits many requests at once: the one
  with which a throttled load begins, and the rest of a release that takes several samples. Whether
  the rate is constant does not depend on it. Where requests overlap and their latencies vary,
  those of a load that comes near the limit wait only if they take longer than usual
  (`usual_time`).
- **The ceiling** (`ceiling`) is the rate while throttled, where the number of data writes is
  certain. The **burst depth** (`burst_depth`) of its limiter is the most that was served beyond
  that rate from any time before until it throttled: what its token bucket holds, or less.
- **Below** (`promise`) is a deep queue that is served at less than the promise for a second.

`finding` asks these in order, `verdict.classify` makes the verdicts, and `parameters` has every
constant. `agreement` compares their seconds with those that a provider counts.

Sources: Le Boudec and Thiran, "Network Calculus" (2001), for curves and envelopes; Kanuparthy and
Dovrolis, "ShaperProbe: end-to-end detection of ISP traffic shaping using active methods" (IMC
2011), for level shifts of a token bucket; the throttle windows of 100 ms in
https://yandex.cloud/en/docs/compute/concepts/storage-read-write.
"""

from disksla.verdict.agreement import (
    ANSWERS,
    NO_SECONDS,
    NOT_THROTTLED,
    PAIRS,
    PROVIDER_ANSWERS,
    PROVIDER_LIMITS,
    Agreement,
    agreement_of,
    named_limit,
    named_seconds,
    with_limit,
)
from disksla.verdict.burst_depth import ServedCurve
from disksla.verdict.ceiling import Ceiling, ObservedLimiter
from disksla.verdict.interval import (
    GAP_REASONS,
    Clocks,
    GapReason,
    Interval,
    elapsed_or_gap,
    interval_of,
    load_of,
)
from disksla.verdict.service_time import ServiceTime
from disksla.verdict.throttle import (
    LIMIT_KINDS,
    MACHINE_LIMITS,
    OF_MACHINE,
    UNKNOWN_LIMIT,
    LimitKind,
    SharedThrottle,
    SharedWindow,
    Throttle,
    ThrottleLevel,
)
from disksla.verdict.verdict import (
    VERDICTS,
    DetectorState,
    Verdict,
    WindowVerdict,
    after_gap,
    classify,
    shared_throttle,
)

__all__ = [
    "ANSWERS",
    "GAP_REASONS",
    "LIMIT_KINDS",
    "MACHINE_LIMITS",
    "NOT_THROTTLED",
    "NO_SECONDS",
    "OF_MACHINE",
    "PAIRS",
    "PROVIDER_ANSWERS",
    "PROVIDER_LIMITS",
    "UNKNOWN_LIMIT",
    "VERDICTS",
    "Agreement",
    "Ceiling",
    "Clocks",
    "DetectorState",
    "GapReason",
    "Interval",
    "LimitKind",
    "ObservedLimiter",
    "ServedCurve",
    "ServiceTime",
    "SharedThrottle",
    "SharedWindow",
    "Throttle",
    "ThrottleLevel",
    "Verdict",
    "WindowVerdict",
    "after_gap",
    "agreement_of",
    "classify",
    "elapsed_or_gap",
    "interval_of",
    "load_of",
    "named_limit",
    "named_seconds",
    "shared_throttle",
    "with_limit",
]
