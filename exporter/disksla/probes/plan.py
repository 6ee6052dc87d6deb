"""A probe of one disk: what it asks of the disk, and which share of the promise that is."""

import hashlib
import math

import msgspec

from disksla.config import PROBE_REQUEST_BYTES, ProbeEntry
from disksla.fio import FioJob, FioResult
from disksla.limits import Limits, load_ratio
from disksla.pipeline import ProbeFailure, ProbeResult, Skip
from disksla.units import KIB, MIB, format_count, format_duration

MOST_SHARE = 0.01
"""Of the promise that a probe may use while it runs."""
GRACE_S = 10.0
"""How much longer than its own time a probe may take before it is ended."""

FILL_REQUEST_BYTES = 128 * KIB
"""As large as requests are that a file is written with, or larger."""
FILL_BYTES_PER_SECOND = float(MIB)
"""Where nothing is promised."""

_HASHES = 2**64


class ProbePlan(msgspec.Struct, frozen=True):
    """One run of a probe."""

    device: str
    entry: ProbeEntry
    rate_iops: int
    """As asked for, or what fits into the share of the promise; 0 if not even one fits."""
    limit_share: float | None
    """Of the promise that this rate uses; None where nothing is promised."""
    fill_bytes_per_second: float
    """How fast a file of our own may be written beforehand: at the same share of the promise."""

    @property
    def is_lowered(self) -> bool:
        """Whether the rate is not the one that was asked for."""
        return self.rate_iops < math.floor(self.entry.rate_iops)

    @property
    def most_bytes(self) -> int:
        """What one run transfers at most."""
        lowered = msgspec.structs.replace(self.entry, rate_iops=float(self.rate_iops))
        return lowered.most_bytes

    @property
    def limit_s(self) -> float:
        """When a run is ended that does not end."""
        return self.entry.runtime_s + GRACE_S

    @property
    def file_bytes(self) -> int:
        """What is written before the run, where a file of our own is probed."""
        return self.entry.file_size_bytes if self.entry.uses_file else 0

    def in_words(self) -> str:
        """Say what is asked of the disk, and what that is of the promise."""
        length = format_duration(self.entry.runtime_s)
        what = f"{self.entry.kind}: {self.rate_iops} x 4 KiB per second for {length}"
        if self.limit_share is None:
            return f"{what}; nothing is promised"
        asked = f", lowered from {format_count(self.entry.rate_iops)} per second"
        return f"{what}, {self.limit_share:.2%} of the promise{asked if self.is_lowered else ''}"

    def job(self, target: str) -> FioJob:
        """Give the job for fio; `target` is the path of the device or of a file of our own."""
        return FioJob(
            name=f"disksla-{self.entry.kind}",
            target=target,
            pattern="randwrite" if self.entry.kind == "write-latency" else "randread",
            request_bytes=PROBE_REQUEST_BYTES,
            runtime_s=self.entry.runtime_s,
            rate_iops=float(self.rate_iops),
        )


def plan_probe(entry: ProbeEntry, device: str, limits: Limits) -> ProbePlan:
    """Plan a probe at the rate that was asked for, or at a hundredth of what is promised."""
    size, rate_iops = PROBE_REQUEST_BYTES, math.floor(entry.rate_iops)
    is_write = entry.kind == "write-latency"
    one = (0, 1, 0, size) if is_write else (1, 0, size, 0)
    per_request = load_ratio(limits.promise_charges, 1.0, *one)
    if per_request:
        most_iops = MOST_SHARE / per_request - 1 / entry.runtime_s  # fio begins with one at once
        rate_iops = min(rate_iops, max(0, math.floor(most_iops)))
    share = per_request * rate_iops if per_request else None
    return ProbePlan(device, entry, rate_iops, share, _fill_bytes_per_second(limits))


def offset_s(machine: str, disk: str, entry: ProbeEntry) -> float:
    """Give how long after the beginning of each period this machine probes this disk.

    Always the same for one machine, disk and kind, and spread evenly over many of them, so that
    a fleet on one storage does not probe in step.
    """
    text = f"{machine}\n{disk}\n{entry.kind}".encode(errors="backslashreplace")
    number = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
    return number / _HASHES * entry.spread_s


def _fill_bytes_per_second(limits: Limits) -> float:
    share = load_ratio(limits.promise_charges, 1.0, 0, MIB / FILL_REQUEST_BYTES, 0, MIB)
    return MIB * MOST_SHARE / share if share else FILL_BYTES_PER_SECOND


def skipped_result(plan: ProbePlan, skip: Skip, timestamp_s: float) -> ProbeResult:
    """Give the outcome of a probe that was not run."""
    return ProbeResult(
        device=plan.device,
        kind=plan.entry.kind,
        timestamp_s=timestamp_s,
        skipped=skip.reason,
        message=skip.message,
    )


def failed_result(
    plan: ProbePlan, reason: ProbeFailure, words: str, timestamp_s: float, duration_s: float
) -> ProbeResult:
    """Give the outcome of a run that came to nothing."""
    return ProbeResult(
        device=plan.device,
        kind=plan.entry.kind,
        timestamp_s=timestamp_s,
        failure=reason,
        message=words,
        target_iops=plan.rate_iops,
        duration_s=duration_s,
        spent_bytes=plan.most_bytes,
    )


def measured_result(
    plan: ProbePlan, result: FioResult, timestamp_s: float, duration_s: float
) -> ProbeResult:
    """Give the outcome of a run that fio told of; one in which nothing completed has failed."""
    done = result.write if plan.entry.kind == "write-latency" else result.read
    if not done.requests:
        return failed_result(plan, "error", "fio completed no request", timestamp_s, duration_s)
    return ProbeResult(
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
