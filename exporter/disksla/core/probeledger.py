"""What the probes of one kind have come to, over the life of one disk under our eyes."""

from collections.abc import Mapping
from typing import get_args

import msgspec

from disksla.core.histogram import Histogram
from disksla.core.latency import LATENCY_BOUNDS_S
from disksla.core.probeoutcome import SKIP_REASONS, ProbeFailure, ProbeOutcome

FAILURE_REASONS: tuple[ProbeFailure, ...] = tuple(
    reason for reason in get_args(ProbeFailure) if reason != "stopped"
)
"""A run that the daemon's own end stopped did not fail, and is not told of."""

_DAY_S = 86400.0


class ProbeLedger(msgspec.Struct, frozen=True, gc=False):
    """Sums over runs and skips, and how the last run went."""

    runs: int = 0
    failures: Mapping[str, int] = msgspec.field(
        default_factory=lambda: dict.fromkeys(FAILURE_REASONS, 0)
    )
    """By reason; every reason is present from the start."""
    skips: Mapping[str, int] = msgspec.field(
        default_factory=lambda: dict.fromkeys(SKIP_REASONS, 0)
    )
    """By reason; every reason is present from the start."""
    requests: int = 0
    transferred_bytes: int = 0
    latency_s: Histogram = Histogram.empty(LATENCY_BOUNDS_S)
    last: ProbeOutcome | None = None
    """The last run, without its bins; None before the first."""
    day: int = 0
    """The day of `day_bytes`, in days of UTC since 1970."""
    day_bytes: int = 0
    """What was taken off that day's allowance."""
    turn_s: float | None = None
    """Unix time at which it was last run, or put off for a reason that passes; until then, at
    which it was asked for. None of one that is not asked for."""

    @property
    def is_used(self) -> bool:
        """Whether there is anything to tell."""
        return self.last is not None or any(self.skips.values())

    def spent_bytes(self, timestamp_s: float) -> int:
        """Give what was taken off the allowance of the day of a Unix time."""
        return self.day_bytes if _day(timestamp_s) == self.day else 0

    def plus(self, outcome: ProbeOutcome) -> "ProbeLedger":
        """Add one turn."""
        turn_s = self.turn_s
        if turn_s is not None and outcome.takes_turn:
            turn_s = outcome.timestamp_s
        if outcome.skipped is not None:
            skips = _with(self.skips, outcome.skipped)
            return msgspec.structs.replace(self, skips=skips, turn_s=turn_s)
        failures = self.failures
        if outcome.failure is not None:
            failures = _with(failures, outcome.failure)
        latency_s = self.latency_s
        for each in outcome.bins:
            latency_s = latency_s.observe(each.seconds, each.requests)
        return ProbeLedger(
            self.runs + 1,
            failures,
            self.skips,
            self.requests + outcome.requests,
            self.transferred_bytes + outcome.transferred_bytes,
            latency_s,
            msgspec.structs.replace(outcome, bins=()),
            _day(outcome.timestamp_s),
            self.spent_bytes(outcome.timestamp_s) + outcome.spent_bytes,
            turn_s,
        )

    def asked_for(self, timestamp_s: float | None) -> "ProbeLedger":
        """Take note that it is asked for from a Unix time on, or, with None, no longer."""
        if timestamp_s is not None and self.turn_s is not None:
            return self
        return msgspec.structs.replace(self, turn_s=timestamp_s)


def _day(timestamp_s: float) -> int:
    return int(timestamp_s // _DAY_S)


def _with(counts: Mapping[str, int], reason: str) -> Mapping[str, int]:
    return {**counts, reason: counts.get(reason, 0) + 1}
