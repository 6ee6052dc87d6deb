"""Results of probes (measured, failed or skipped), and their totals by kind."""

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from disksla.base import histogram
from disksla.base.histogram import Histogram, LatencyBin
from disksla.promise.configuration import ProbeKind
from disksla.state.pipeline.totals import LATENCY_BOUNDS_S

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
"""Reasons that do not pass by themselves: the configuration or the disk has to change."""


FioFailure = Literal[
    "timeout", "unplugged", "no_space", "read_only", "permission", "bad_output", "stopped", "error"
]
ProbeFailure = Literal[FioFailure, "no_scratch_file"]
"""`no_scratch_file` if no scratch file could be made; otherwise as for any run of fio."""


class Skip(msgspec.Struct, frozen=True):
    """A reason not to run a probe now."""

    reason: SkipReason
    message: str


class ProbeResult(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Result of one probe of one disk."""

    device: str
    kind: ProbeKind
    timestamp_s: float  # Unix time at which it ended
    skipped: SkipReason | None = None
    failure: ProbeFailure | None = None
    message: str = msgspec.field(default="", name="words")
    """Why it was skipped or failed, for logs and pages; encoded as `words` in recordings."""
    target_iops: float = 0.0
    duration_s: float = 0.0  # run time of fio, including its start and its end
    requests: int = 0
    transferred_bytes: int = 0
    """Bytes of the requests, and of writing the scratch file before them."""
    spent_bytes: int = 0
    """Bytes charged to the daily budget; for a failed run, the most that it may have used."""
    achieved_iops: float | None = None  # None for a failed run, whose requests were not counted
    bins: tuple[LatencyBin, ...] = ()  # latencies of the requests, in order

    @property
    def is_success(self) -> bool:
        """Whether latencies were measured."""
        return self.skipped is None and self.failure is None

    @property
    def is_attempt(self) -> bool:
        """Whether it ran, or was skipped for a temporary reason."""
        return self.skipped not in PERMANENT_REASONS


def quantile_s(bins: tuple[LatencyBin, ...], share: float) -> float | None:
    """Return the latency that this share of the requests did not exceed; None without requests."""
    counted = tuple(each for each in bins if each.requests)
    return histogram.quantile_s(counted, share) if counted else None


FAILURE_REASONS: tuple[ProbeFailure, ...] = tuple(
    reason for reason in get_args(ProbeFailure) if reason != "stopped"
)
"""Reasons that are counted. A run that was stopped because the daemon ends is not a failure."""

_DAY_S = 86400.0


class ProbeTotals(msgspec.Struct, frozen=True, gc=False):
    """Totals of the probes of one kind on one disk, and the result of the last run."""

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
    last: ProbeResult | None = None  # the last run, without its bins; None before the first
    day: int = 0  # the day of `day_bytes`, in days of UTC since 1970
    day_bytes: int = 0  # bytes used of the budget of that day
    last_attempt_s: float | None = None
    """Unix time of the last attempt: a run, or a skip for a temporary reason. Before the first
    attempt, the time at which the probe was configured; None if it is not configured."""

    @property
    def is_used(self) -> bool:
        """Whether it ever ran or was skipped."""
        return self.last is not None or any(self.skips.values())

    def spent_bytes(self, timestamp_s: float) -> int:
        """Return the bytes used of the budget of the day that contains a Unix time."""
        return self.day_bytes if _day(timestamp_s) == self.day else 0

    def plus(self, result: ProbeResult) -> "ProbeTotals":
        """Add one result."""
        last_attempt_s = self.last_attempt_s
        if last_attempt_s is not None and result.is_attempt:
            last_attempt_s = result.timestamp_s
        if result.skipped is not None:
            skips = _plus_one(self.skips, result.skipped)
            return msgspec.structs.replace(self, skips=skips, last_attempt_s=last_attempt_s)
        failures = self.failures
        if result.failure is not None:
            failures = _plus_one(failures, result.failure)
        latency_s = self.latency_s
        for each in result.bins:
            latency_s = latency_s.observe(each.seconds, each.requests)
        return ProbeTotals(
            runs=self.runs + 1,
            failures=failures,
            skips=self.skips,
            requests=self.requests + result.requests,
            transferred_bytes=self.transferred_bytes + result.transferred_bytes,
            latency_s=latency_s,
            last=msgspec.structs.replace(result, bins=()),
            day=_day(result.timestamp_s),
            day_bytes=self.spent_bytes(result.timestamp_s) + result.spent_bytes,
            last_attempt_s=last_attempt_s,
        )

    def with_configured(self, timestamp_s: float | None) -> "ProbeTotals":
        """Set since when (Unix time) the probe is configured; None if it is not.

        A time that is already set is kept.
        """
        if timestamp_s is not None and self.last_attempt_s is not None:
            return self
        return msgspec.structs.replace(self, last_attempt_s=timestamp_s)


def _day(timestamp_s: float) -> int:
    return int(timestamp_s // _DAY_S)


def _plus_one(counts: Mapping[str, int], reason: str) -> Mapping[str, int]:
    return {**counts, reason: counts.get(reason, 0) + 1}
