"""The provider's own test of a disk, as tests: what is run, what must come out, and why.

A suite is made from the limits of one disk. What a test requires is the promise for requests of
its size: the share of the IOPS that is promised at that size, and no more than the bandwidth lets
through.
"""

from typing import Literal, get_args

import msgspec

from disksla.fio import FioJob, Pattern
from disksla.limits import Conditions, Limits, PromisedShare, effective_iops, promised_share
from disksla.units import (
    GIB,
    KIB,
    MIB,
    format_bandwidth,
    format_count,
    format_duration,
    format_size,
)

SuiteName = Literal["vk", "yandex", "terms"]
SUITES: tuple[SuiteName, ...] = get_args(SuiteName)
Unit = Literal["iops", "bytes_per_second", "seconds"]

_VK_PAGE = "https://cloud.vk.com/docs/en/computing/iaas/concepts/volume-sla"
_YANDEX_PAGE = "https://yandex.cloud/en/docs/compute/concepts/storage-read-write"
_VK_SHARES = (
    PromisedShare(4 * KIB, 1.0),
    PromisedShare(8 * KIB, 0.75),
    PromisedShare(16 * KIB, 0.5),
)
_USUAL_IOPS_CONDITIONS = Conditions(4 * KIB, 32)
_USUAL_BANDWIDTH_CONDITIONS = Conditions(MIB, 16)
_ROUNDING_SHARE = 1e-9


class Requirement(msgspec.Struct, frozen=True):
    """What must come out of a test: of rates so much at least, of seconds so much at most."""

    unit: Unit
    promised: float
    """What the terms promise under the conditions of the test, were its requests of any size."""
    required: float
    """The part of it that must be had for requests of this size."""
    why: str
    """How `required` comes about, for people."""
    is_binding: bool = True
    """Whether the provider stands by it; an indicative latency is shown and never fails."""
    burst: float | None = None
    """What the disk may do while credits last; None where it has none."""


class SuiteTest(msgspec.Struct, frozen=True, kw_only=True):
    """One test of a suite."""

    name: str
    """Short name, as metrics and reports have it."""
    caption: str
    pattern: Pattern
    request_bytes: int
    queue_depth: int
    workers: int = 1
    rate_iops: float | None = None
    requirement: Requirement | None = None
    unpromised: str = ""
    """Why nothing is required, where nothing is."""

    @property
    def writes(self) -> bool:
        """Whether this writes to the disk."""
        return self.pattern not in {"read", "randread"}

    @property
    def inflight(self) -> int:
        """Requests in flight, of all workers together."""
        return self.queue_depth * self.workers

    def job(
        self,
        target: str,
        runtime_s: float,
        span_bytes: int | None = None,
        offset_bytes: int = 0,
    ) -> FioJob:
        """Give what fio is asked to do, and to which part of which target."""
        return FioJob(
            name=self.name,
            target=target,
            pattern=self.pattern,
            request_bytes=self.request_bytes,
            runtime_s=runtime_s,
            queue_depth=self.queue_depth,
            workers=self.workers,
            rate_iops=self.rate_iops,
            offset_bytes=offset_bytes,
            span_bytes=span_bytes,
        )


class Suite(msgspec.Struct, frozen=True):
    """All tests of a disk, in the order in which they are run: reads first."""

    name: SuiteName
    tests: tuple[SuiteTest, ...]
    source: str
    """Where the procedure is published; or a sentence that says where it is from."""
    file_bytes: int
    """Length of the test file that the procedure uses, where it uses one."""
    file_systems: tuple[str, ...] = ()
    """Those that the procedure is meant for; any, if none is named."""


def default_suite(provider: str) -> SuiteName:
    """Give the procedure of the provider, or that of the terms where it has none that we know."""
    return "vk" if provider == "vk" else "yandex" if provider == "yandex" else "terms"


def make_suite(name: SuiteName, limits: Limits, tolerance_ratio: float) -> Suite:
    """Give the tests for a disk with these limits.

    The tolerance is what the rate of a latency test stays below the promise: at the promised rate
    itself a queue that has once formed never drains, and its waiting would be measured.
    """
    if name == "vk":
        shares = limits.promised_shares or _VK_SHARES
        sized = msgspec.structs.replace(
            limits,
            promised_shares=shares,
            iops_conditions=_USUAL_IOPS_CONDITIONS,
            bandwidth_conditions=_USUAL_BANDWIDTH_CONDITIONS,
        )
        return Suite(
            "vk",
            _condition_tests(sized, tolerance_ratio),
            _VK_PAGE,
            file_bytes=512 * MIB,
            file_systems=("ext2", "ext3", "ext4", "xfs"),
        )
    if name == "yandex":
        return Suite("yandex", _yandex_tests(limits), _YANDEX_PAGE, file_bytes=GIB)
    return Suite(
        "terms",
        _condition_tests(limits, tolerance_ratio),
        "made of the terms' own conditions",
        file_bytes=GIB,
    )


def _condition_tests(limits: Limits, tolerance_ratio: float) -> tuple[SuiteTest, ...]:
    """Test each request size that is named, the bandwidth, and the latency."""
    iops = limits.iops_conditions or _USUAL_IOPS_CONDITIONS
    bandwidth = limits.bandwidth_conditions or _USUAL_BANDWIDTH_CONDITIONS
    depth = iops.queue_depth or _USUAL_IOPS_CONDITIONS.queue_depth or 1
    bandwidth_depth = bandwidth.queue_depth or _USUAL_BANDWIDTH_CONDITIONS.queue_depth or 1
    sizes = sorted({iops.request_bytes, *(each.request_bytes for each in limits.promised_shares)})
    tests = []
    for way in ("read", "write"):
        random: Pattern = "randwrite" if way == "write" else "randread"
        straight: Pattern = "write" if way == "write" else "read"
        tests += [_iops_test(limits, random, size, depth) for size in sizes]
        tests.append(_bandwidth_test(limits, straight, bandwidth.request_bytes, bandwidth_depth))
        tests.append(_latency_test(limits, random, iops.request_bytes, depth, tolerance_ratio))
    return _reads_first(tests)


def _yandex_tests(limits: Limits) -> tuple[SuiteTest, ...]:
    """Test as the page's six examples do, with their depths and numbers of jobs."""
    return _reads_first(
        [
            _iops_test(limits, "read", 4 * KIB, 128, workers=8),
            _iops_test(limits, "randread", 4 * KIB, 16, workers=8),
            _bandwidth_test(limits, "read", 4 * MIB, 32),
            _iops_test(limits, "write", 4 * KIB, 96, workers=4),
            _iops_test(limits, "randwrite", 4 * KIB, 96),
            _bandwidth_test(limits, "write", 4 * MIB, 32),
        ]
    )


def _reads_first(tests: list[SuiteTest]) -> tuple[SuiteTest, ...]:
    return tuple(sorted(tests, key=lambda test: test.writes))


def _iops_test(
    limits: Limits, pattern: Pattern, request_bytes: int, depth: int, workers: int = 1
) -> SuiteTest:
    requirement = _iops_requirement(limits, pattern, request_bytes)
    return SuiteTest(
        name=_name(pattern, request_bytes),
        caption=_caption(pattern, request_bytes, depth * workers),
        pattern=pattern,
        request_bytes=request_bytes,
        queue_depth=depth,
        workers=workers,
        requirement=requirement,
        unpromised="" if requirement else f"the terms promise no IOPS for {_ways(pattern)}",
    )


def _bandwidth_test(limits: Limits, pattern: Pattern, request_bytes: int, depth: int) -> SuiteTest:
    requirement = _bandwidth_requirement(limits, pattern, request_bytes)
    return SuiteTest(
        name=_name(pattern, request_bytes),
        caption=_caption(pattern, request_bytes, depth),
        pattern=pattern,
        request_bytes=request_bytes,
        queue_depth=depth,
        requirement=requirement,
        unpromised="" if requirement else f"the terms promise no bandwidth for {_ways(pattern)}",
    )


def _latency_test(
    limits: Limits, pattern: Pattern, request_bytes: int, depth: int, tolerance_ratio: float
) -> SuiteTest:
    at = _iops_requirement(limits, pattern, request_bytes)
    rate_iops = None if at is None else at.required * (1 - tolerance_ratio)
    requirement = None
    unpromised = "the terms name no latency"
    if limits.latency_s is not None and rate_iops is None:
        unpromised = f"the terms promise no IOPS for {_ways(pattern)} at which to measure latency"
    elif limits.latency_s is not None:
        kind = limits.latency_kind or "guaranteed"
        requirement = Requirement(
            "seconds",
            limits.latency_s,
            limits.latency_s,
            f"{format_duration(limits.latency_s)} is {kind}; the mean counts",
            is_binding=kind == "guaranteed",
        )
        unpromised = ""
    caption = _caption(pattern, request_bytes, depth)
    at_rate = "" if rate_iops is None else f" at {format_count(rate_iops)} IOPS"
    return SuiteTest(
        name=f"latency-{_name(pattern, request_bytes)}",
        caption=f"Latency of {caption[0].lower()}{caption[1:]}{at_rate}",
        pattern=pattern,
        request_bytes=request_bytes,
        queue_depth=depth,
        rate_iops=rate_iops,
        requirement=requirement,
        unpromised=unpromised,
    )


def _iops_requirement(limits: Limits, pattern: Pattern, request_bytes: int) -> Requirement | None:
    rates = limits.rates
    limit_iops = rates.write_iops if _is_write(pattern) else rates.read_iops
    promised = _promised_iops(limits, pattern, request_bytes)
    required = _promised_iops(limits, pattern, request_bytes, limits.promised_shares)
    if limit_iops is None or promised is None or required is None:
        return None
    share = promised_share(limits.promised_shares, request_bytes)
    if _is_priced_together(limits):
        why = f"the published formula for requests of {format_size(request_bytes)}"
    elif required < share * limit_iops * (1 - _ROUNDING_SHARE):
        why = f"the bandwidth lets no more through in requests of {format_size(request_bytes)}"
    else:
        why = f"{share:.0%} of {format_count(limit_iops)} IOPS"
    return Requirement(
        "iops", promised, required, why, burst=_burst_iops(limits, pattern, request_bytes)
    )


def _bandwidth_requirement(
    limits: Limits, pattern: Pattern, request_bytes: int
) -> Requirement | None:
    rates = limits.rates
    limit = rates.write_bytes_per_second if _is_write(pattern) else rates.read_bytes_per_second
    promised_iops = _promised_iops(limits, pattern, request_bytes)
    required_iops = _promised_iops(limits, pattern, request_bytes, limits.promised_shares)
    if limit is None or promised_iops is None or required_iops is None:
        return None
    required = required_iops * request_bytes
    if _is_priced_together(limits):
        why = f"the published formula for requests of {format_size(request_bytes)}"
    elif required < limit * (1 - _ROUNDING_SHARE):
        why = f"the IOPS let no more through in requests of {format_size(request_bytes)}"
    else:
        why = f"the bandwidth of {format_bandwidth(limit)}"
    burst_iops = _burst_iops(limits, pattern, request_bytes)
    return Requirement(
        "bytes_per_second",
        promised_iops * request_bytes,
        required,
        why,
        burst=None if burst_iops is None else burst_iops * request_bytes,
    )


def _promised_iops(
    limits: Limits,
    pattern: Pattern,
    request_bytes: int,
    shares: tuple[PromisedShare, ...] = (),
) -> float | None:
    band = effective_iops(limits, request_bytes, float(_is_write(pattern)), shares)
    return None if band is None else band.promise


def _burst_iops(limits: Limits, pattern: Pattern, request_bytes: int) -> float | None:
    bursting = msgspec.structs.replace(
        limits, promise_charges=limits.burst_charges, enforced_charges=limits.burst_charges
    )
    return _promised_iops(bursting, pattern, request_bytes)


def _is_priced_together(limits: Limits) -> bool:
    """Tell whether requests and bytes draw on one budget, so that size always matters."""
    return any(charge.limit == "service" for charge in limits.promise_charges)


def _is_write(pattern: Pattern) -> bool:
    return pattern in {"write", "randwrite"}


def _ways(pattern: Pattern) -> str:
    return "writes" if _is_write(pattern) else "reads"


def _name(pattern: Pattern, request_bytes: int) -> str:
    return f"{pattern}-{format_size(request_bytes).replace(' ', '').removesuffix('iB').lower()}"


def _caption(pattern: Pattern, request_bytes: int, inflight: int) -> str:
    order = "Random" if pattern.startswith("rand") else "Sequential"
    return f"{order} {_ways(pattern)} of {format_size(request_bytes)}, {inflight} in flight"
