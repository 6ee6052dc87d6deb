"""Burst credits: their level, as a lower and an upper bound that hold, and an estimate.

Theory of operation. A disk with burst credits is behind token buckets
(`disksla.promise.catalogue.Bucket`). A bucket fills at a constant rate up to its capacity,
requests drain it, and once it is empty the disk is limited to its baseline. The guest cannot
read the level. It knows the rate of filling and what was used, and sees when the disk is
throttled: at the baseline a bucket is empty, at the burst rate it is not. What it does not know
makes an interval of the level:

- where within a sample requests were admitted, and where the limiter's windows begin;
- requests in flight, which may have been charged already;
- the level at the start, after a gap, and after use by others: 0 to the capacity;
- with flushes, how many of the writes had data (`bounds.Use`). The lower bound charges all of
  them, the upper bound as many as their sectors need at least, and the estimate those less the
  flushes.

`bounds` updates one bucket by one interval. A narrow interval stays narrow, and each time that the
disk is throttled at its baseline the bounds meet. Observations that contradict the bounds mean
that the limits are not those of the terms, and reset them. `account` has the buckets of one disk,
and updates them only when there is something to add: one update over a long idle time is the same
as many over its parts.
"""

from disksla.verdict.credits.account import CreditAccount, CreditLevel, open_account, throttled_by
from disksla.verdict.credits.bounds import (
    WINDOW_S,
    Credits,
    advance_unobserved,
    estimated_drain,
    exhaustion_s,
    from_bounds,
    initial,
)
