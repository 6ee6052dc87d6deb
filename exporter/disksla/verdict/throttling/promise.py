"""Whether a disk keeps its promise, where nothing throttles it."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from disksla.promise.catalogue import Limits, promised_share
from disksla.verdict.interval import Interval, load_of

DEFAULT_DEPTH = 32
"""Queue depth at which a promise applies if the terms have none: providers and fio users test a
disk with it."""
NEARLY = 0.9
"""Of the depth that a promise needs: a sample may be taken while requests are replaced. And of the
promise: a limiter that is seen and admits so much may be that of it, but for a few requests."""
WHOLE_S = 0.95
"""Of a second: in less, the window of a limiter in which the load began counts too much."""
PIECES = 8
"""Pieces that a large request may be split into: few devices accept less than 128 KiB of 1 MiB."""


def tested_promise(
    window: Interval, limits: Limits, tolerance: float
) -> Literal["met", "unproven"]:
    """Return "met" if the load reached the promise, else "unproven"."""
    load = load_of(window, limits.promise_charges)
    least = limits.promised_shares[-1].share if limits.promised_shares else 1.0
    if load is None or load < least * (1 - tolerance):
        return "unproven"
    return "met" if _share_of_promise(window, limits) >= 1 - tolerance else "unproven"


def is_below_promise(
    windows: Sequence[Interval], whole: Interval, limits: Limits, tolerance: float
) -> bool:
    """Return whether a load that the promise applies to was served below it in these windows.

    `windows` are those of a second or more, each with the most data writes that it may have;
    `whole` is their sum. Limits that others share are not promised to one of them.
    """
    if limits.shared_by is not None or not limits.promise_charges or whole.seconds < WHOLE_S:
        return False
    if not all(each.inflight_before and each.inflight for each in windows):
        return False
    depth = needed_depth(_request_bytes(whole), limits)
    in_flight = sum(each.inflight for each in windows) / len(windows)
    if depth is None or in_flight < NEARLY * depth:
        return False
    # Two in a row without completions: a limiter with long windows may be at work.
    if any(not any(each.requests for each in both) for both in pairwise(windows)):
        return False
    slack = tolerance + 1 / max(1, whole.requests)
    if _may_be_in_one_unit(whole, limits, slack):
        return False
    return _share_of_promise(whole, limits) < 1 - slack


def is_limited_below(admitted: Interval, limits: Limits) -> bool:
    """Return whether a limiter that is seen admits less than is promised, at any queue depth.

    `admitted` is what it let pass in a time, with all writes, as if all had data.
    """
    if limits.shared_by is not None or not limits.promise_charges:
        return False
    if needed_depth(_request_bytes(admitted), limits) is None:
        return False  # no promise covers requests of this size
    if _may_be_in_one_unit(admitted, limits, 1 - NEARLY):
        return False
    return _share_of_promise(admitted, limits) < NEARLY


def _may_be_in_one_unit(served: Interval, limits: Limits, slack: float) -> bool:
    """Return whether a load gets what one allocation unit is promised, as a load within it may."""
    unit = limits.one_unit
    if unit is None:
        return False
    least = load_of(served, unit.promise_charges) or 0.0
    most = load_of(served, unit.enforced_charges) or 0.0
    # One more window of a limiter may let its part pass.
    return least >= 1 - slack and most <= 1 + slack + 0.1 / served.seconds


def _share_of_promise(served: Interval, limits: Limits) -> float:
    """Return the rate as a share of the promise for requests of this size."""
    share = promised_share(limits.promised_shares, _request_bytes(served))
    return max(
        (load_of(served, (charge,)) or 0.0) / (share if charge.limit == "iops" else 1.0)
        for charge in limits.promise_charges
    )


def needed_depth(request_bytes: int, limits: Limits) -> int | None:
    """Return the queue depth at which a promise applies; None if none applies to this size."""
    request_bytes = max(1, request_bytes)
    iops, bandwidth = limits.iops_conditions, limits.bandwidth_conditions
    # The kernel splits large requests and merges sequential ones. So pieces of them count for the
    # promise of bandwidth, if as many bytes are in flight as its conditions require.
    if bandwidth is not None and request_bytes * PIECES >= bandwidth.request_bytes:
        pieces = max(1.0, bandwidth.request_bytes / request_bytes)
        return math.ceil((bandwidth.queue_depth or DEFAULT_DEPTH) * pieces)
    # A promise of IOPS by request size does not cover larger requests.
    if limits.promised_shares and request_bytes > limits.promised_shares[-1].request_bytes:
        return None
    return (iops.queue_depth if iops is not None else None) or DEFAULT_DEPTH


def _request_bytes(served: Interval) -> int:
    return served.bytes // max(1, served.requests)
