"""How one turn of a probe went: skipped, failed, or measured."""

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from disksla.config import ProbeKind
from disksla.fio import FailureReason, LatencyBin
from disksla.fio import result as fio
from disksla.histogram import Histogram
from disksla.pipeline.latency import LATENCY_BOUNDS_S

SkipReason = Literal[
    "device_missing",
    "suspended",
    "not_sampled",
    "stalled",
    "throttled",
    "below",
    "busy",
    "credits",
    "limit_too_low",
    "no_file_system",
    "daily",
    "measurement_running",
]
SKIP_REASONS: tuple[SkipReason, ...] = get_args(SkipReason)
PERMANENT_REASONS: frozenset[SkipReason] = frozenset(
    {"device_missing", "not_sampled", "limit_too_low", "no_file_system"}
)
"""Those that do not pass by themselves: whoever asked for the probe has to do something."""


ProbeFailure = Literal[FailureReason, "no_scratch_file"]
"""`place` where no file of ours may be made; otherwise as for any run of fio."""


class Skip(msgspec.Struct, frozen=True):
    """One thing that speaks against a probe."""

    reason: SkipReason
    message: str


class ProbeResult(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One turn of one probe of one disk."""

    device: str
    kind: ProbeKind
    timestamp_s: float
    """Unix time of its end."""
    skipped: SkipReason | None = None
    failure: ProbeFailure | None = None
    message: str = ""
    """Why it was skipped or failed, for people."""
    target_iops: float = 0.0
    duration_s: float = 0.0
    """Of the run, with the time that fio took to begin and to end."""
    requests: int = 0
    transferred_bytes: int = 0
    """By requests, and by writing the file before them, if there was one."""
    spent_bytes: int = 0
    """What is taken off the day's allowance: of a run that failed, all that it may have used."""
    achieved_iops: float | None = None
    """None of a run that failed: nobody counted."""
    bins: tuple[LatencyBin, ...] = ()
    """Latencies of the requests, in order."""

    @property
    def is_success(self) -> bool:
        """Whether latencies were measured."""
        return self.skipped is None and self.failure is None

    @property
    def is_attempt(self) -> bool:
        """Whether it was run, or put off for a reason that passes."""
        return self.skipped not in PERMANENT_REASONS


def quantile_s(bins: tuple[LatencyBin, ...], share: float) -> float | None:
    """Give the latency that this share of the requests did not exceed; None if there are none."""
    counted = tuple(each for each in bins if each.requests)
    return fio.quantile_s(counted, share) if counted else None


FAILURE_REASONS: tuple[ProbeFailure, ...] = tuple(
    reason for reason in get_args(ProbeFailure) if reason != "stopped"
)
"""A run that the daemon's own end stopped did not fail, and is not told of."""

_DAY_S = 86400.0


class ProbeTotals(msgspec.Struct, frozen=True, gc=False):
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
    last: ProbeResult | None = None
    """The last run, without its bins; None before the first."""
    day: int = 0
    """The day of `day_bytes`, in days of UTC since 1970."""
    day_bytes: int = 0
    """What was taken off that day's allowance."""
    last_attempt_s: float | None = None
    """Unix time at which it was last run, or put off for a reason that passes; until then, at
    which it was asked for. None of one that is not asked for."""

    @property
    def is_used(self) -> bool:
        """Whether there is anything to tell."""
        return self.last is not None or any(self.skips.values())

    def spent_bytes(self, timestamp_s: float) -> int:
        """Give what was taken off the allowance of the day of a Unix time."""
        return self.day_bytes if _day(timestamp_s) == self.day else 0

    def plus(self, outcome: ProbeResult) -> "ProbeTotals":
        """Add one turn."""
        last_attempt_s = self.last_attempt_s
        if last_attempt_s is not None and outcome.is_attempt:
            last_attempt_s = outcome.timestamp_s
        if outcome.skipped is not None:
            skips = _with(self.skips, outcome.skipped)
            return msgspec.structs.replace(self, skips=skips, last_attempt_s=last_attempt_s)
        failures = self.failures
        if outcome.failure is not None:
            failures = _with(failures, outcome.failure)
        latency_s = self.latency_s
        for each in outcome.bins:
            latency_s = latency_s.observe(each.seconds, each.requests)
        return ProbeTotals(
            self.runs + 1,
            failures,
            self.skips,
            self.requests + outcome.requests,
            self.transferred_bytes + outcome.transferred_bytes,
            latency_s,
            msgspec.structs.replace(outcome, bins=()),
            _day(outcome.timestamp_s),
            self.spent_bytes(outcome.timestamp_s) + outcome.spent_bytes,
            last_attempt_s,
        )

    def with_configured(self, timestamp_s: float | None) -> "ProbeTotals":
        """Take note that it is asked for from a Unix time on, or, with None, no longer."""
        if timestamp_s is not None and self.last_attempt_s is not None:
            return self
        return msgspec.structs.replace(self, last_attempt_s=timestamp_s)


def _day(timestamp_s: float) -> int:
    return int(timestamp_s // _DAY_S)


def _with(counts: Mapping[str, int], reason: str) -> Mapping[str, int]:
    return {**counts, reason: counts.get(reason, 0) + 1}
