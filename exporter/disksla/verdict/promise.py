"""Whether a disk keeps its promise, where nothing throttles it."""

import math
from typing import Literal

from disksla.limits import Limits, promised_share
from disksla.verdict.interval import Interval, load_of
from disksla.verdict.parameters import P
from disksla.verdict.span import Span, span_of


def tested_promise(
    release: Interval, limits: Limits, tolerance: float
) -> Literal["met", "unproven"]:
    """Return "met" if the load reached the promise, else "unproven"."""
    load = load_of(release, limits.promise_charges)
    least = limits.promised_shares[-1].share if limits.promised_shares else 1.0
    if load is None or load < least * (1 - tolerance):
        return "unproven"
    share = _share_of_promise(span_of((release,)), limits)
    return "met" if share >= 1 - tolerance else "unproven"


def is_below_promise(
    waiting: tuple[Interval, ...], limits: Limits, tolerance: float, tick_s: float
) -> bool:
    """Return whether a load that the promise applies to was served below it for a second."""
    last = waiting[-P.below_releases :]
    if len(last) < P.below_releases or not limits.promise_charges:
        return False
    in_flight = sum(release.inflight for release in last)
    if in_flight < P.deep_share * least_depth(limits) * len(last):
        return False
    span = span_of(last)
    depth = _needed_depth(span, limits)
    if depth is None or in_flight < P.deep_share * depth * len(last):
        return False
    return _share_of_promise(span, limits) < 1 - tolerance - span.uncertainty(tick_s)


def least_depth(limits: Limits) -> int:
    """Return a queue depth below which no promise applies, whatever the size of requests."""
    conditions = (limits.iops_conditions, limits.bandwidth_conditions)
    return min(
        each.queue_depth or P.default_depth if each else P.default_depth for each in conditions
    )


def _share_of_promise(span: Span, limits: Limits) -> float:
    """Return the rate as a share of the promise for requests of this size."""
    share = promised_share(limits.promised_shares, span.bytes // max(1, span.requests))
    return max(
        (span.load((charge,)) or 0.0) / (share if charge.limit == "iops" else 1.0)
        for charge in limits.promise_charges
    )


def _needed_depth(span: Span, limits: Limits) -> int | None:
    """Return the queue depth at which a promise applies; None if none applies to this size.

    A promise by request size does not cover larger requests, until they are so large that the
    promise of bandwidth applies. The kernel splits large requests and merges sequential ones, so
    pieces of them count, if as many bytes are in flight as the conditions require.
    """
    request_bytes = span.bytes / max(1, span.requests)
    iops, bandwidth = limits.iops_conditions, limits.bandwidth_conditions
    if bandwidth is not None and request_bytes * P.pieces >= bandwidth.request_bytes:
        pieces = max(1.0, bandwidth.request_bytes / request_bytes)
        return math.ceil((bandwidth.queue_depth or P.default_depth) * pieces)
    if limits.promised_shares and request_bytes > limits.promised_shares[-1].request_bytes:
        return None
    return (iops.queue_depth if iops is not None else None) or P.default_depth
