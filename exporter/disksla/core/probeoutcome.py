"""How one turn of a probe went: skipped, failed, or measured."""

from typing import Literal, get_args

import msgspec

from disksla.core import fio
from disksla.core.fio import Bin, FailureReason, FioResult
from disksla.core.probeplan import ProbePlan
from disksla.core.settings import ProbeKind

SkipReason = Literal[
    "gone",
    "asleep",
    "unseen",
    "stalled",
    "throttled",
    "below",
    "busy",
    "credits",
    "small_promise",
    "no_file_system",
    "daily",
    "another",
]
SKIP_REASONS: tuple[SkipReason, ...] = get_args(SkipReason)
STANDING_REASONS: frozenset[SkipReason] = frozenset(
    {"gone", "unseen", "small_promise", "no_file_system"}
)
"""Those that do not pass by themselves: whoever asked for the probe has to do something."""


ProbeFailure = Literal[FailureReason, "place"]
"""`place` where no file of ours may be made; otherwise as for any run of fio."""


class Skip(msgspec.Struct, frozen=True):
    """One thing that speaks against a probe."""

    reason: SkipReason
    words: str


class ProbeOutcome(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One turn of one probe of one disk."""

    device: str
    kind: ProbeKind
    timestamp_s: float
    """Unix time of its end."""
    skipped: SkipReason | None = None
    failure: ProbeFailure | None = None
    words: str = ""
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
    bins: tuple[Bin, ...] = ()
    """Latencies of the requests, in order."""

    @property
    def is_success(self) -> bool:
        """Whether latencies were measured."""
        return self.skipped is None and self.failure is None

    @property
    def takes_turn(self) -> bool:
        """Whether it was run, or put off for a reason that passes."""
        return self.skipped not in STANDING_REASONS


def skipped(plan: ProbePlan, skip: Skip, timestamp_s: float) -> ProbeOutcome:
    """Give the outcome of a probe that was not run."""
    return ProbeOutcome(
        device=plan.device,
        kind=plan.entry.kind,
        timestamp_s=timestamp_s,
        skipped=skip.reason,
        words=skip.words,
    )


def failed(
    plan: ProbePlan, reason: ProbeFailure, words: str, timestamp_s: float, duration_s: float
) -> ProbeOutcome:
    """Give the outcome of a run that came to nothing."""
    return ProbeOutcome(
        device=plan.device,
        kind=plan.entry.kind,
        timestamp_s=timestamp_s,
        failure=reason,
        words=words,
        target_iops=plan.rate_iops,
        duration_s=duration_s,
        spent_bytes=plan.most_bytes,
    )


def measured(
    plan: ProbePlan, result: FioResult, timestamp_s: float, duration_s: float
) -> ProbeOutcome:
    """Give the outcome of a run that fio told of; one in which nothing completed has failed."""
    done = result.write if plan.entry.kind == "write-latency" else result.read
    if not done.requests:
        return failed(plan, "error", "fio completed no request", timestamp_s, duration_s)
    return ProbeOutcome(
        device=plan.device,
        kind=plan.entry.kind,
        timestamp_s=timestamp_s,
        target_iops=plan.rate_iops,
        duration_s=duration_s,
        requests=done.requests,
        transferred_bytes=done.bytes + plan.file_bytes,
        spent_bytes=done.bytes + plan.file_bytes,
        achieved_iops=done.iops,
        bins=done.bins,
    )


def quantile_s(bins: tuple[Bin, ...], share: float) -> float | None:
    """Give the latency that this share of the requests did not exceed; None if there are none."""
    counted = tuple(each for each in bins if each.requests)
    return fio.quantile_s(counted, share) if counted else None
