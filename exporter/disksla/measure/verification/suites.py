"""The acceptance tests of the providers: what each test runs, what it requires, and why.

A suite is made from the limits of one disk. A test requires what the terms promise for requests
of its size: the share of the IOPS that is promised at that size, capped by the bandwidth limit.
"""

import math
from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

from disksla.base.units import GIB, KIB, MIB, format_bandwidth, format_count, format_size
from disksla.measure.fio import FioJob, Pattern
from disksla.promise.catalogue import (
    USUAL_IOPS_CONDITIONS,
    Conditions,
    Limits,
    PromisedShare,
    SharedLimits,
    effective_iops,
    load_ratio,
    promised_share,
)

SuiteName = Literal["vk", "yandex", "terms"]
SUITES: tuple[SuiteName, ...] = get_args(SuiteName)
RateUnit = Literal["iops", "bytes_per_second"]
Unit = Literal["iops", "bytes_per_second", "seconds"]

_VK_PAGE = "https://cloud.vk.com/docs/en/computing/iaas/concepts/volume-sla"
_YANDEX_PAGE = "https://yandex.cloud/en/docs/compute/concepts/storage-read-write"
_VK_SHARES = (
    PromisedShare(4 * KIB, 1.0),
    PromisedShare(8 * KIB, 0.75),
    PromisedShare(16 * KIB, 0.5),
)
USUAL_BANDWIDTH_CONDITIONS = Conditions(MIB, 16)
"""Where the provider states none."""
_ROUNDING_SHARE = 1e-9
_USUAL_LATENCY_S = 0.001
"""Of a disk whose terms state none: AWS advises a queue of 1 for each 1000 IOPS."""


class Requirement(msgspec.Struct, frozen=True):
    """What a test must measure: at least `required` of a rate, at most `required` of a latency."""

    unit: Unit
    promised: float
    """What the terms promise under the conditions of the test, for requests of any size."""
    required: float
    """The part of `promised` that applies to requests of this size."""
    why: str
    """Where `required` comes from, for the report."""
    is_binding: bool = True
    """Whether the provider guarantees it; an indicative latency is reported and never fails."""
    burst: float | None = None
    """What the disk may do while it has burst credits; None if it has none."""


class SuiteTest(FioJob, frozen=True, kw_only=True):
    """One test of a suite: a job whose target and runtime are those of the plan."""

    target: str = ""
    runtime_s: float = 0.0
    caption: str
    requirement: Requirement | None = None
    skip_reason: str = ""
    """Why the test has no requirement and is skipped; empty if it has one."""
    write_share: float = 0.5
    """Share of writes in the requests of a mixed pattern."""

    @property
    def inflight(self) -> int:
        """Requests in flight of all workers together."""
        return self.queue_depth * self.workers


class Suite(msgspec.Struct, frozen=True):
    """The tests of a disk in the order in which they run: reads first."""

    name: SuiteName
    tests: tuple[SuiteTest, ...]
    source: str
    """Page on which the provider publishes the procedure, or a description of it."""
    file_bytes: int
    """Size of the test file that the procedure uses."""
    file_systems: tuple[str, ...] = ()
    """File systems that the procedure allows; any, if empty."""


def default_suite(provider: str) -> SuiteName:
    """Return the suite of the provider; "terms" if it publishes none that is known."""
    return "vk" if provider == "vk" else "yandex" if provider == "yandex" else "terms"


def needed_inflight(limits: Limits, iops: float, write_share: float, stated: int) -> int:
    """Return the requests in flight that a rate needs: the stated ones, or more (Little's law)."""
    latencies_s = [limits.write_latency_s if write_share else None, limits.latency_s]
    latency_s = max((each for each in latencies_s if each is not None), default=_USUAL_LATENCY_S)
    return max(stated, math.ceil(iops * latency_s - _ROUNDING_SHARE))


def make_suite(name: SuiteName, limits: Limits, tolerance_ratio: float) -> Suite:
    """Return the tests for a disk with these limits.

    A latency test runs at the promised rate less the tolerance: at the promised rate itself a
    queue that has formed never drains, and the test would measure the time in that queue.
    """
    if name == "vk":
        return Suite(
            "vk",
            _condition_tests(suite_limits(name, limits), tolerance_ratio),
            _VK_PAGE,
            file_bytes=512 * MIB,
            file_systems=("ext2", "ext3", "ext4", "xfs"),
        )
    if name == "yandex":
        return Suite("yandex", _yandex_tests(limits), _YANDEX_PAGE, file_bytes=GIB)
    return Suite(
        "terms",
        _condition_tests(limits, tolerance_ratio),
        "test conditions from the terms",
        file_bytes=GIB,
    )


def suite_limits(name: SuiteName, limits: Limits) -> Limits:
    """Return the limits with the conditions of the suite, where the suite has its own."""
    if name != "vk":
        return limits
    return msgspec.structs.replace(
        limits,
        promised_shares=limits.promised_shares or _VK_SHARES,
        iops_conditions=USUAL_IOPS_CONDITIONS,
        bandwidth_conditions=USUAL_BANDWIDTH_CONDITIONS,
    )


def within_machine(suite: Suite, machine: Iterable[SharedLimits], tolerance_ratio: float) -> Suite:
    """Return the suite without tests that the limits of the machine do not allow to pass.

    These are skipped: they would measure the machine. Burst credits of the machine are taken to be
    full.
    """
    tests = []
    shared_limits = tuple(machine)
    for test in suite.tests:
        reasons = (within_limits(test, shared, tolerance_ratio) for shared in shared_limits)
        reason = next(filter(None, reasons), "")
        skipped = msgspec.structs.replace(test, requirement=None, skip_reason=reason)
        tests.append(skipped if reason else test)
    return msgspec.structs.replace(suite, tests=tuple(tests))


def within_limits(test: SuiteTest, shared: SharedLimits, tolerance_ratio: float) -> str:
    """Return why limits of the machine do not allow a test to pass; "" if they do."""
    requirement = test.requirement
    if requirement is None:
        return ""
    iops = test.rate_iops or requirement.required
    if requirement.unit == "bytes_per_second":
        iops = requirement.required / test.request_bytes
    charges = shared.limits.burst_throttled_charges or shared.limits.throttled_charges
    writes = float(_is_write(test.pattern))
    if test.pattern in {"rw", "randrw"}:
        writes = test.write_share
    rates = (iops * (1 - writes), iops * writes)
    load = load_ratio(charges, 1.0, *rates, *(rate * test.request_bytes for rate in rates))
    if load is None or load <= 1 + tolerance_ratio:
        return ""
    machine = shared.machine or "the machine"
    return f"{machine} allows {shared.title} only {format_count(iops / load)} such IOPS"


def _condition_tests(limits: Limits, tolerance_ratio: float) -> tuple[SuiteTest, ...]:
    """Return tests of each request size that the terms name, of bandwidth and of latency."""
    iops = limits.iops_conditions or USUAL_IOPS_CONDITIONS
    bandwidth = limits.bandwidth_conditions or USUAL_BANDWIDTH_CONDITIONS
    depth = iops.queue_depth or USUAL_IOPS_CONDITIONS.queue_depth or 1
    bandwidth_depth = bandwidth.queue_depth or USUAL_BANDWIDTH_CONDITIONS.queue_depth or 1
    sizes = sorted({iops.request_bytes, *(each.request_bytes for each in limits.promised_shares)})
    tests = []
    patterns: tuple[tuple[Pattern, Pattern], ...] = (("randread", "read"), ("randwrite", "write"))
    for random, sequential in patterns:
        tests += [_rate_test(limits, "iops", random, size, depth) for size in sizes]
        tests.append(
            _rate_test(
                limits, "bytes_per_second", sequential, bandwidth.request_bytes, bandwidth_depth
            )
        )
        tests.append(_latency_test(limits, random, iops.request_bytes, depth, tolerance_ratio))
    return tuple(tests)


def _yandex_tests(limits: Limits) -> tuple[SuiteTest, ...]:
    """Return the six examples of Yandex Cloud's page, with their queue depths and jobs."""
    return (
        _rate_test(limits, "iops", "read", 4 * KIB, 128, workers=8),
        _rate_test(limits, "iops", "randread", 4 * KIB, 16, workers=8),
        _rate_test(limits, "bytes_per_second", "read", 4 * MIB, 32),
        _rate_test(limits, "iops", "write", 4 * KIB, 96, workers=4),
        _rate_test(limits, "iops", "randwrite", 4 * KIB, 96),
        _rate_test(limits, "bytes_per_second", "write", 4 * MIB, 32),
    )


def _rate_test(
    limits: Limits,
    unit: RateUnit,
    pattern: Pattern,
    request_bytes: int,
    depth: int,
    workers: int = 1,
) -> SuiteTest:
    requirement = _rate_requirement(limits, unit, pattern, request_bytes)
    if requirement is not None:
        iops = requirement.required / (1 if unit == "iops" else request_bytes)
        needed = needed_inflight(limits, iops, float(_is_write(pattern)), depth * workers)
        depth = math.ceil(needed / workers)
    what = "IOPS" if unit == "iops" else "bandwidth"
    return SuiteTest(
        name=short_name(pattern, request_bytes),
        caption=_caption(pattern, request_bytes, depth * workers),
        pattern=pattern,
        request_bytes=request_bytes,
        queue_depth=depth,
        workers=workers,
        requirement=requirement,
        skip_reason=""
        if requirement
        else f"the terms promise no {what} for {_direction(pattern)}",
    )


def _latency_test(
    limits: Limits, pattern: Pattern, request_bytes: int, depth: int, tolerance_ratio: float
) -> SuiteTest:
    at = _rate_requirement(limits, "iops", pattern, request_bytes)
    rate_iops = None if at is None else at.required * (1 - tolerance_ratio)
    if at is not None:
        depth = needed_inflight(limits, at.required, float(_is_write(pattern)), depth)
    requirement = None
    skip_reason = "the terms name no latency"
    own_latency_s = limits.write_latency_s if _is_write(pattern) else None
    latency_s = own_latency_s or limits.latency_s
    if latency_s is not None and rate_iops is None:
        skip_reason = f"no rate to test at: the terms promise no IOPS for {_direction(pattern)}"
    elif latency_s is not None:
        kind = limits.latency_kind or "guaranteed"
        requirement = Requirement(
            "seconds",
            latency_s,
            latency_s,
            f"mean latency; the limit is {kind}",
            is_binding=kind == "guaranteed",
        )
        skip_reason = ""
    caption = _caption(pattern, request_bytes, depth)
    at_rate = "" if rate_iops is None else f", at {format_count(rate_iops)} IOPS"
    return SuiteTest(
        name=f"latency-{short_name(pattern, request_bytes)}",
        caption=f"Latency of {caption[0].lower()}{caption[1:]}{at_rate}",
        pattern=pattern,
        request_bytes=request_bytes,
        queue_depth=depth,
        rate_iops=rate_iops,
        requirement=requirement,
        skip_reason=skip_reason,
    )


def _rate_requirement(
    limits: Limits, unit: RateUnit, pattern: Pattern, request_bytes: int
) -> Requirement | None:
    rates, is_write, is_iops = limits.rates, _is_write(pattern), unit == "iops"
    limit = rates.write_bytes_per_second if is_write else rates.read_bytes_per_second
    if is_iops:
        limit = rates.write_iops if is_write else rates.read_iops
    promised_iops = _promised_iops(limits, pattern, request_bytes)
    required_iops = _promised_iops(limits, pattern, request_bytes, limits.promised_shares)
    if limit is None or promised_iops is None or required_iops is None:
        return None
    factor = 1 if is_iops else request_bytes
    required = required_iops * factor
    share = promised_share(limits.promised_shares, request_bytes) if is_iops else 1.0
    # Requests and bytes may share one budget, so that the size always matters.
    if any(charge.limit == "service" for charge in limits.promise_charges):
        why = f"published formula for requests of {format_size(request_bytes)}"
    elif required < share * limit * (1 - _ROUNDING_SHARE):
        other = "bandwidth" if is_iops else "IOPS"
        why = f"capped by the {other} limit for requests of {format_size(request_bytes)}"
    elif is_iops:
        why = f"{share:.0%} of {format_count(limit)} IOPS"
    else:
        why = f"bandwidth limit of {format_bandwidth(limit)}"
    bursting = msgspec.structs.replace(
        limits, promise_charges=limits.burst_charges, enforced_charges=limits.burst_charges
    )
    burst_iops = _promised_iops(bursting, pattern, request_bytes)
    burst = None if burst_iops is None else burst_iops * factor
    return Requirement(unit, promised_iops * factor, required, why, burst=burst)


def _promised_iops(
    limits: Limits, pattern: Pattern, request_bytes: int, shares: tuple[PromisedShare, ...] = ()
) -> float | None:
    band = effective_iops(limits, request_bytes, float(_is_write(pattern)), shares)
    return None if band is None else band.promise


def _is_write(pattern: Pattern) -> bool:
    return pattern in {"write", "randwrite"}


def _direction(pattern: Pattern) -> str:
    return "writes" if _is_write(pattern) else "reads"


def short_name(pattern: Pattern, request_bytes: int) -> str:
    """Return the short name of a test, such as randread-4k."""
    return f"{pattern}-{format_size(request_bytes).replace(' ', '').removesuffix('iB').lower()}"


def _caption(pattern: Pattern, request_bytes: int, inflight: int) -> str:
    order = "Random" if pattern.startswith("rand") else "Sequential"
    return f"{order} {_direction(pattern)} of {format_size(request_bytes)}, {inflight} in flight"
