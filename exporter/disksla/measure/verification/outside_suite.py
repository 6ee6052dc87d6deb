"""Requirement of a load that is not part of a suite: any mix, request size and queue depth.

The cost law of the terms says at which rate such a load is at the limits; the conditions of the
terms say how many requests must be in flight for the promise to hold.
"""

from typing import NamedTuple

from disksla.base.units import format_count, format_size
from disksla.measure.verification.measurement import Measurement
from disksla.measure.verification.suites import (
    USUAL_BANDWIDTH_CONDITIONS,
    Requirement,
    SuiteTest,
    needed_inflight,
    short_name,
)
from disksla.promise.catalogue import USUAL_IOPS_CONDITIONS, Charge, Limits, Work, promised_share


class OutsideTest(NamedTuple):
    """A test that is made for a load, and what it takes to fail it."""

    test: SuiteTest
    least_inflight: int
    """Requests in flight for which the promise holds."""


def outside_test(limits: Limits, measurement: Measurement) -> OutsideTest | None:
    """Return a test of exactly this load; None where nothing is promised for it."""
    requests = max(1, measurement.measured.requests)
    request = Work(  # the mean of the load
        1 - measurement.write_share,
        measurement.write_share,
        measurement.read.bytes / requests,
        measurement.write.bytes / requests,
    )
    share = promised_share(limits.promised_shares, measurement.request_bytes)
    costs_s = {
        charge: request.cost_s(charge) / (share if charge.limit == "iops" else 1.0)
        for charge in limits.promise_charges
    }
    required_s = max(costs_s.values(), default=0.0)
    promised_s = request.load(limits.promise_charges, 1.0)
    if not required_s or not promised_s or not measurement.measured.requests:
        return None
    binding = max(costs_s, key=lambda charge: costs_s[charge])
    required_iops, promised_iops = 1 / required_s, 1 / promised_s
    burst_s = request.load(limits.burst_charges, 1.0)
    is_bandwidth = binding.limit == "bandwidth"
    factor = request.read_bytes + request.written_bytes if is_bandwidth else 1.0
    test = SuiteTest(
        name=_name(measurement),
        caption=_caption(measurement),
        pattern=measurement.pattern,
        request_bytes=measurement.request_bytes,
        queue_depth=measurement.inflight,
        write_share=measurement.write_share,
        requirement=Requirement(
            "bytes_per_second" if is_bandwidth else "iops",
            promised_iops * factor,
            required_iops * factor,
            _why(measurement, binding, share),
            burst=factor / burst_s if burst_s else None,
        ),
    )
    depth = _stated_depth(limits, measurement.request_bytes, binding)
    least = needed_inflight(limits, required_iops, measurement.write_share, depth)
    return OutsideTest(test, least)


def within_unit(limits: Limits, measurement: Measurement, tolerance_ratio: float) -> str:
    """Return why a load that one allocation unit may serve proves nothing; "" if it is less."""
    unit, read, write = limits.one_unit, measurement.read, measurement.write
    work = Work(read.iops, write.iops, read.bytes_per_second, write.bytes_per_second)
    load = None if unit is None else work.load(unit.promise_charges, 1.0)
    if unit is None or load is None or load < 1 - tolerance_ratio:
        return ""
    size = format_size(unit.size_bytes)
    return f"each allocation unit of {size} has its own limit, and it may not have used all units"


def _stated_depth(limits: Limits, request_bytes: int, binding: Charge) -> int:
    """Return the queue depth of the limit that applies; the usual one where none is stated.

    Smaller requests need as many in flight for the bandwidth as for the IOPS.
    """
    conditions, usual = limits.iops_conditions, USUAL_IOPS_CONDITIONS
    bandwidth = limits.bandwidth_conditions or USUAL_BANDWIDTH_CONDITIONS
    if binding.limit == "bandwidth" and request_bytes >= bandwidth.request_bytes:
        conditions, usual = bandwidth, USUAL_BANDWIDTH_CONDITIONS
    return (conditions and conditions.queue_depth) or usual.queue_depth or 1


def _why(measurement: Measurement, binding: Charge, share: float) -> str:
    """Return where the requirement comes from."""
    size = format_size(measurement.request_bytes)
    of_mix = f", {_writes(measurement)} writes" if 0 < measurement.write_share < 1 else ""
    if binding.limit == "service":
        return f"published formula for requests of {size}{of_mix}"
    limit = "bandwidth" if binding.limit == "bandwidth" else "IOPS"
    of_share = f"{share:.0%} of the " if share < 1 and limit == "IOPS" else ""
    return f"{of_share}{limit} limit for requests of {size}{of_mix}"


def _name(measurement: Measurement) -> str:
    name = short_name(measurement.pattern, measurement.request_bytes)
    if measurement.pattern in {"rw", "randrw"}:
        name += f"-w{round(100 * measurement.write_share)}"
    return f"{name}-q{measurement.inflight}"


def _caption(measurement: Measurement) -> str:
    order = "Random" if measurement.pattern.startswith("rand") else "Sequential"
    share = measurement.write_share
    load = "reads" if share == 0 else "writes" if share == 1 else "requests"
    of_mix = f", {_writes(measurement)} of them writes" if 0 < share < 1 else ""
    rate = measurement.rate_iops
    at_rate = "" if rate is None else f", at {format_count(rate)} IOPS"
    size = format_size(measurement.request_bytes)
    job = f" (job {measurement.name})"
    return f"{order} {load} of {size}{of_mix}, {measurement.inflight} in flight{at_rate}{job}"


def _writes(measurement: Measurement) -> str:
    return f"{100 * measurement.write_share:.3g}%"
