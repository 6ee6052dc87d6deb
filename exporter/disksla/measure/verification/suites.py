"""The acceptance tests of the providers: what each test runs, what it requires, and why.

A suite is made from the limits of one disk. A test requires what the terms promise for requests
of its size: the share of the IOPS that is promised at that size, capped by the bandwidth limit.
"""

import math
from collections.abc import Iterable
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from disksla.base.units import GIB, KIB, MIB, format_bandwidth, format_count, format_size
from disksla.measure.fio import FioJob, Pattern
from disksla.promise.catalogue import (
    USUAL_IOPS_CONDITIONS,
    Conditions,
    Limits,
    PromisedShare,
    SharedLimits,
    Work,
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
    least_inflight: int = 1
    """Requests in flight for which the promise of any load holds."""


class SuiteTest(FioJob, frozen=True, kw_only=True):
    """One test of a suite: a job whose target and runtime are those of the plan."""

    target: str = ""
    runtime_s: float = 0.0
    caption: str
    write_share: float
    """Share of writes in the requests."""
    requirement: Requirement | None = None
    skip_reason: str = ""
    """Why the test has no requirement and is skipped; empty if it has one."""

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


def make_suite(name: SuiteName, limits: Limits, tolerance_ratio: float) -> Suite:
    """Return the tests for a disk with these limits.

    A latency test runs at the promised rate less the tolerance: at the promised rate itself a
    queue that has formed never drains, and the test would measure the time in that queue.
    """
    if name == "yandex":
        return Suite("yandex", _yandex_tests(limits), _YANDEX_PAGE, file_bytes=GIB)
    tests = _condition_tests(suite_limits(name, limits), tolerance_ratio)
    if name == "terms":
        return Suite("terms", tests, "test conditions from the terms", file_bytes=GIB)
    return Suite("vk", tests, _VK_PAGE, 512 * MIB, ("ext2", "ext3", "ext4", "xfs"))


def suite_limits(name: SuiteName, limits: Limits) -> Limits:
    """Return the limits with the conditions of the suite, where the suite has its own."""
    if name != "vk":
        return limits
    return replace(
        limits,
        promised_shares=limits.promised_shares or _VK_SHARES,
        iops_conditions=USUAL_IOPS_CONDITIONS,
        bandwidth_conditions=USUAL_BANDWIDTH_CONDITIONS,
    )


def requirement_of(
    limits: Limits, request: Work, request_bytes: int, unit: RateUnit | None = None
) -> Requirement | None:
    """Return what is promised for requests such as this one; None if nothing is.

    `request` may be the mean of a mix. Without a unit, it is that of the limit which applies.
    """
    share = promised_share(limits.promised_shares, request_bytes)
    costs_s = {
        charge: request.cost_s(charge) / (share if charge.limit == "iops" else 1.0)
        for charge in limits.promise_charges
    }
    required_s = max(costs_s.values(), default=0.0)
    promised_s = request.load(limits.promise_charges, 1.0)
    if not required_s or not promised_s:
        return None
    limit = max(costs_s, key=lambda charge: costs_s[charge]).limit
    unit = unit or ("bytes_per_second" if limit == "bandwidth" else "iops")
    factor = 1.0 if unit == "iops" else request.bytes
    burst_s = request.load(limits.burst_charges, 1.0)
    of_share = f"{share:.0%} of the " if share < 1 and limit == "iops" else ""
    what = f"{of_share}{'bandwidth' if limit == 'bandwidth' else 'IOPS'} limit"
    mix = f", {100 * request.writes:.3g}% writes" if 0 < request.writes < 1 else ""
    return Requirement(
        unit,
        1 / promised_s * factor,
        1 / required_s * factor,
        f"{'published formula' if limit == 'service' else what} for requests of"
        f" {format_size(request_bytes)}{mix}",
        burst=1 / burst_s * factor if burst_s else None,
        least_inflight=needed_inflight(
            limits, 1 / required_s, request.writes, _stated_depth(limits, unit, request_bytes)
        ),
    )


def _stated_depth(limits: Limits, unit: RateUnit, request_bytes: int) -> int:
    """Return the queue depth of the limit that applies; the usual one where none is stated.

    Smaller requests need as many in flight for the bandwidth as for the IOPS.
    """
    conditions, usual = limits.iops_conditions, USUAL_IOPS_CONDITIONS
    bandwidth = limits.bandwidth_conditions or USUAL_BANDWIDTH_CONDITIONS
    if unit == "bytes_per_second" and request_bytes >= bandwidth.request_bytes:
        conditions, usual = bandwidth, USUAL_BANDWIDTH_CONDITIONS
    return (conditions and conditions.queue_depth) or usual.queue_depth or 1


def needed_inflight(limits: Limits, iops: float, write_share: float, stated: int) -> int:
    """Return the requests in flight that a rate needs: the stated ones, or more (Little's law)."""
    latencies_s = [limits.write_latency_s if write_share else None, limits.latency_s]
    latency_s = max((each for each in latencies_s if each is not None), default=_USUAL_LATENCY_S)
    return max(stated, math.ceil(iops * latency_s - _ROUNDING_SHARE))


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
        tests.append(replace(test, requirement=None, skip_reason=reason) if reason else test)
    return replace(suite, tests=tuple(tests))


def within_limits(test: SuiteTest, shared: SharedLimits, tolerance_ratio: float) -> str:
    """Return why limits of the machine do not allow a test to pass; "" if they do."""
    requirement = test.requirement
    if requirement is None:
        return ""
    iops = test.rate_iops or requirement.required
    if requirement.unit == "bytes_per_second":
        iops = requirement.required / test.request_bytes
    charges = shared.limits.burst_throttled_charges or shared.limits.throttled_charges
    load = (_request(test.write_share, test.request_bytes) * iops).load(charges, 1.0)
    if load is None or load <= 1 + tolerance_ratio:
        return ""
    machine = shared.machine or "the machine"
    return f"{machine} allows {shared.title} only {format_count(iops / load)} such IOPS"


def _request(write_share: float, request_bytes: int) -> Work:
    """Return one request, of which a share is a write."""
    read_share = 1 - write_share
    return Work(read_share, write_share, read_share * request_bytes, write_share * request_bytes)


def _condition_tests(limits: Limits, tolerance_ratio: float) -> tuple[SuiteTest, ...]:
    """Return tests of each request size that the terms name, of bandwidth and of latency."""
    iops = limits.iops_conditions or USUAL_IOPS_CONDITIONS
    large = (limits.bandwidth_conditions or USUAL_BANDWIDTH_CONDITIONS).request_bytes
    depth = _stated_depth(limits, "iops", iops.request_bytes)
    of_large = _stated_depth(limits, "bytes_per_second", large)
    sizes = sorted({iops.request_bytes, *(each.request_bytes for each in limits.promised_shares)})
    tests = []
    patterns: tuple[tuple[Pattern, Pattern], ...] = (("randread", "read"), ("randwrite", "write"))
    for random, sequential in patterns:
        of_size = {size: _rate_test(limits, "iops", random, size, depth) for size in sizes}
        tests += [
            *of_size.values(),
            _rate_test(limits, "bytes_per_second", sequential, large, of_large),
            _latency_test(limits, of_size[iops.request_bytes], tolerance_ratio),
        ]
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
    write_share = float(pattern in {"write", "randwrite"})
    direction = "write" if write_share else "read"
    requirement = requirement_of(limits, _request(write_share, request_bytes), request_bytes, unit)
    limit: float | None = getattr(limits.rates, f"{direction}_{unit}")
    if requirement is None or limit is None:
        requirement = None
    else:
        iops = requirement.required / (1 if unit == "iops" else request_bytes)
        depth = math.ceil(needed_inflight(limits, iops, write_share, depth * workers) / workers)
        requirement = replace(requirement, why=_why(limits, requirement, limit, request_bytes))
    what = "IOPS" if unit == "iops" else "bandwidth"
    return SuiteTest(
        name=short_name(pattern, request_bytes),
        caption=caption(pattern, write_share, request_bytes, depth * workers),
        pattern=pattern,
        request_bytes=request_bytes,
        write_share=write_share,
        queue_depth=depth,
        workers=workers,
        requirement=requirement,
        skip_reason="" if requirement else f"the terms promise no {what} for {direction}s",
    )


def _why(limits: Limits, found: Requirement, limit: float, request_bytes: int) -> str:
    """Return where a rate comes from, of which the limit for requests of any size is known."""
    is_iops = found.unit == "iops"
    share = promised_share(limits.promised_shares, request_bytes) if is_iops else 1.0
    # Requests and bytes may share one budget, so that the size always matters.
    if any(charge.limit == "service" for charge in limits.promise_charges):
        return found.why
    if found.required < share * limit * (1 - _ROUNDING_SHARE):
        other = "bandwidth" if is_iops else "IOPS"
        return f"capped by the {other} limit for requests of {format_size(request_bytes)}"
    if is_iops:
        return f"{share:.0%} of {format_count(limit)} IOPS"
    return f"bandwidth limit of {format_bandwidth(limit)}"


def _latency_test(limits: Limits, of_iops: SuiteTest, tolerance_ratio: float) -> SuiteTest:
    """Return the test of the latency at the rate that another test requires."""
    rate, direction = of_iops.requirement, "writes" if of_iops.writes else "reads"
    rate_iops = None if rate is None else rate.required * (1 - tolerance_ratio)
    latency_s = (limits.write_latency_s if of_iops.writes else None) or limits.latency_s
    requirement, skip_reason = None, ""
    if latency_s is None:
        skip_reason = "the terms name no latency"
    elif rate is None:
        skip_reason = f"no rate to test at: the terms promise no IOPS for {direction}"
    else:
        kind = limits.latency_kind or "guaranteed"
        why = f"mean latency; the limit is {kind}"
        requirement = Requirement(
            "seconds", latency_s, latency_s, why, is_binding=kind == "guaranteed"
        )
    at_rate = "" if rate_iops is None else f", at {format_count(rate_iops)} IOPS"
    return replace(
        of_iops,
        name=f"latency-{of_iops.name}",
        caption=f"Latency of {of_iops.caption[0].lower()}{of_iops.caption[1:]}{at_rate}",
        rate_iops=rate_iops,
        requirement=requirement,
        skip_reason=skip_reason,
    )


def short_name(pattern: Pattern, request_bytes: int) -> str:
    """Return the short name of a test, such as randread-4k."""
    return f"{pattern}-{format_size(request_bytes).replace(' ', '').removesuffix('iB').lower()}"


def caption(pattern: Pattern, write_share: float, request_bytes: int, inflight: int) -> str:
    """Return what a load is, in words."""
    order = "Random" if pattern.startswith("rand") else "Sequential"
    load = {0.0: "reads", 1.0: "writes"}.get(write_share, "requests")
    mix = f", {100 * write_share:.3g}% of them writes" if 0 < write_share < 1 else ""
    return f"{order} {load} of {format_size(request_bytes)}{mix}, {inflight} in flight"
