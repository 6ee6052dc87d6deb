"""Where a disk is throttled."""

from typing import Literal, get_args

import msgspec

LimitKind = Literal["iops", "bandwidth", "unknown"]
LIMIT_KINDS: tuple[LimitKind, ...] = get_args(LimitKind)
ThrottleLevel = Literal["base", "burst", "unknown"]


class Throttle(msgspec.Struct, frozen=True, gc=False):
    """Where a disk is throttled."""

    level: ThrottleLevel
    """At its baseline, at its burst rate, or at a rate that is not in the terms."""
    limit: LimitKind


UNKNOWN_LIMIT = Throttle("unknown", "unknown")
