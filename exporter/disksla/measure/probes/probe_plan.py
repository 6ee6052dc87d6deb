"""The plan of one probe: its rate, its share of the limit, its cost, and when it is due."""

import hashlib
import math

import msgspec

from disksla.base.units import KIB, MIB, format_count, format_duration
from disksla.measure.fio import FioJob, FioResult
from disksla.promise.catalogue import Limits, Work
from disksla.promise.configuration import PROBE_REQUEST_BYTES, ProbeEntry
from disksla.state.pipeline import ProbeFailure, ProbeResult, Skip

MOST_SHARE = 0.01
"""Share of the limit that a probe uses at most while it runs."""
GRACE_S = 10.0
"""A probe that runs this much longer than its runtime is stopped."""

FILL_REQUEST_BYTES = 128 * KIB
"""Minimum request size assumed for the rate at which a scratch file is written."""
FILL_BYTES_PER_SECOND = float(MIB)
"""Rate at which a scratch file is written on a disk without limits."""

_HASHES = 2**64


class ProbePlan(msgspec.Struct, frozen=True):
    """One run of a probe."""

    device: str
    entry: ProbeEntry
    rate_iops: int
    """As configured, or what fits into MOST_SHARE of the limit; 0 if 1 IOPS does not fit."""
    limit_share: float | None
    """Share of the limit that this rate uses; None for a disk without limits."""
    fill_bytes_per_second: float
    """Rate at which a scratch file is written before the run: the same share of the limit."""

    @property
    def is_lowered(self) -> bool:
        """Whether the rate is lower than configured."""
        return self.rate_iops < math.floor(self.entry.rate_iops)

    @property
    def most_bytes(self) -> int:
        """Bytes that one run transfers at most."""
        lowered = msgspec.structs.replace(self.entry, rate_iops=float(self.rate_iops))
        return lowered.most_bytes

    @property
    def limit_s(self) -> float:
        """Seconds after which a run is stopped."""
        return self.entry.runtime_s + GRACE_S

    @property
    def file_bytes(self) -> int:
        """Size of the scratch file that is written before the run; 0 if a device is probed."""
        return self.entry.file_size_bytes if self.entry.uses_file else 0

    def describe(self) -> str:
        """Return the rate, the runtime and the share of the limit, for a person."""
        rate = f"{self.entry.kind}: {self.rate_iops} IOPS of 4 KiB"
        rate += f" for {format_duration(self.entry.runtime_s)}"
        if self.limit_share is None:
            return f"{rate}; no limit applies"
        lowered = f", lowered from {format_count(self.entry.rate_iops)} IOPS"
        return f"{rate}, {self.limit_share:.2%} of the limit{lowered if self.is_lowered else ''}"

    def job(self, target: str) -> FioJob:
        """Return the fio job; `target` is the path of the device or of the scratch file."""
        return FioJob(
            name=f"disksla-{self.entry.kind}",
            target=target,
            pattern="randwrite" if self.entry.kind == "write-latency" else "randread",
            request_bytes=PROBE_REQUEST_BYTES,
            runtime_s=self.entry.runtime_s,
            rate_iops=float(self.rate_iops),
        )


def plan_probe(entry: ProbeEntry, device: str, limits: Limits) -> ProbePlan:
    """Plan a probe at the configured rate, or at MOST_SHARE of the limit if that is less."""
    size, rate_iops = PROBE_REQUEST_BYTES, math.floor(entry.rate_iops)
    is_write = entry.kind == "write-latency"
    one = Work(writes=1, written_bytes=size) if is_write else Work(reads=1, read_bytes=size)
    request_load = one.load(limits.promise_charges, 1.0)
    if request_load:
        # fio sends one request at the start, before its rate applies.
        max_iops = MOST_SHARE / request_load - 1 / entry.runtime_s
        rate_iops = min(rate_iops, max(0, math.floor(max_iops)))
    share = request_load * rate_iops if request_load else None
    mebibyte = Work(writes=MIB / FILL_REQUEST_BYTES, written_bytes=MIB)
    fill_load = mebibyte.load(limits.promise_charges, 1.0)
    fill = MIB * MOST_SHARE / fill_load if fill_load else FILL_BYTES_PER_SECOND
    return ProbePlan(device, entry, rate_iops, share, fill)


def offset_s(machine: str, disk: str, entry: ProbeEntry) -> float:
    """Return how long after the start of each period this machine probes this disk.

    The offset is always the same for one machine, disk and kind, and evenly distributed over many
    of them, so that the machines of a fleet do not probe a shared storage at the same time.
    """
    text = f"{machine}\n{disk}\n{entry.kind}".encode(errors="backslashreplace")
    number = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
    return number / _HASHES * entry.spread_s


def skipped_result(plan: ProbePlan, skip: Skip, timestamp_s: float) -> ProbeResult:
    """Return the result of a probe that did not run."""
    return ProbeResult(
        device=plan.device,
        kind=plan.entry.kind,
        timestamp_s=timestamp_s,
        skipped=skip.reason,
        message=skip.message,
    )


def failed_result(
    plan: ProbePlan, reason: ProbeFailure, message: str, timestamp_s: float, duration_s: float
) -> ProbeResult:
    """Return the result of a run that failed; it counts as if it had transferred all its bytes."""
    return ProbeResult(
        device=plan.device,
        kind=plan.entry.kind,
        timestamp_s=timestamp_s,
        failure=reason,
        message=message,
        target_iops=plan.rate_iops,
        duration_s=duration_s,
        spent_bytes=plan.most_bytes,
    )


def measured_result(
    plan: ProbePlan, result: FioResult, timestamp_s: float, duration_s: float
) -> ProbeResult:
    """Return the result of a run that fio measured; it failed if no request completed."""
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
