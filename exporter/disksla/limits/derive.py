"""Derives limits from terms and a size, and effective IOPS from limits and a load."""

from typing import Literal, NamedTuple

import msgspec

from disksla.errors import DiskslaError
from disksla.limits.burst_rules import burst_for
from disksla.limits.cost_model import Charge, load_ratio
from disksla.limits.limits import (
    NO_LIMITS,
    Limits,
    PromisedShare,
    Rates,
    build_limits,
    promised_share,
)
from disksla.limits.size_rules import BandwidthRule, FromIops, IopsRule, Provisioned
from disksla.limits.terms import Provision, Terms
from disksla.units import format_bandwidth, format_count

_NOT_PROVISIONED = Provision()


class EffectiveIops(NamedTuple):
    """IOPS by the promise and by what is enforced; equal unless the two are known to differ."""

    promise: float
    enforced: float


def derive_limits(terms: Terms, size_bytes: int, provisioned: Provision | None = None) -> Limits:
    """Return the limits of a disk of this size under these terms.

    Raise DiskslaError if a provisioned value is missing, out of range or not part of these terms,
    or if the size is zero.
    """
    provision = provisioned or _NOT_PROVISIONED
    _check_provisioned(terms, provision)
    if terms.budget is None:
        return NO_LIMITS
    if size_bytes <= 0:
        raise DiskslaError(
            f"cannot derive limits of {terms.id}: found a size of {size_bytes} bytes"
        )
    rates = _rates(terms, size_bytes, provision)
    limits = build_limits(
        rates,
        terms.budget,
        latency_s=terms.latency.seconds if terms.latency else None,
        latency_kind=terms.latency.kind if terms.latency else None,
        burst=burst_for(terms.burst, size_bytes, rates) if terms.burst else None,
        cost=terms.cost,
    )
    return msgspec.structs.replace(
        limits,
        promised_shares=terms.promised_shares,
        iops_conditions=terms.iops_conditions,
        bandwidth_conditions=terms.bandwidth_conditions,
    )


def effective_iops(
    limits: Limits,
    request_bytes: int,
    write_share: float = 0.0,
    shares: tuple[PromisedShare, ...] = (),
) -> EffectiveIops | None:
    """Return the IOPS of a steady load of requests of one size at its limits.

    `write_share` (0..1) is the share of writes in the requests. The limit of which a request uses
    most determines the rate: the harmonic mean of reads and writes for a shared budget, and
    min(R / (1 - a), W / a) for separate budgets. `shares` is the promise by request size. None
    where nothing is promised for such a load.
    """
    promise_s = _highest_cost_s(limits.promise_charges, request_bytes, write_share)
    if not promise_s:
        return None
    share = promised_share(shares, request_bytes)
    requests = tuple(charge for charge in limits.promise_charges if charge.limit == "iops")
    requests_s = _highest_cost_s(requests, request_bytes, write_share) / share
    return EffectiveIops(
        promise=1 / max(promise_s, requests_s),
        enforced=1 / _highest_cost_s(limits.enforced_charges, request_bytes, write_share),
    )


def _highest_cost_s(charges: tuple[Charge, ...], request_bytes: int, write_share: float) -> float:
    """Return the cost of one request of the mix at the limit of which it uses most."""
    return (
        load_ratio(
            charges,
            seconds=1.0,
            reads=1 - write_share,
            writes=write_share,
            read_bytes=(1 - write_share) * request_bytes,
            written_bytes=write_share * request_bytes,
        )
        or 0.0
    )


def _rates(terms: Terms, size_bytes: int, provision: Provision) -> Rates:
    read_iops = _iops(terms, terms.read_iops, size_bytes, provision)
    write_iops = _iops(terms, terms.write_iops, size_bytes, provision)
    return Rates(
        read_iops,
        write_iops,
        _bandwidth(terms, terms.read_bandwidth, size_bytes, provision, read_iops),
        _bandwidth(terms, terms.write_bandwidth, size_bytes, provision, write_iops),
    )


def _iops(
    terms: Terms, rule: IopsRule | None, size_bytes: int, provision: Provision
) -> float | None:
    if rule is None:
        return None
    if isinstance(rule, Provisioned):
        bounds = rule.bounds(size_bytes)
        return _provisioned(terms.id, "IOPS", rule, bounds, provision.iops)
    return rule.rate(size_bytes)


def _bandwidth(
    terms: Terms,
    rule: BandwidthRule | None,
    size_bytes: int,
    provision: Provision,
    iops: float | None,
) -> float | None:
    if rule is None:
        return None
    if isinstance(rule, FromIops):
        return rule.rate(iops or 0.0)  # Terms are checked to have IOPS
    if isinstance(rule, Provisioned):
        bounds = rule.bounds(size_bytes, iops)
        return _provisioned(terms.id, "bandwidth", rule, bounds, provision.bytes_per_second)
    return rule.rate(size_bytes)


def _provisioned(
    terms: str,
    what: Literal["IOPS", "bandwidth"],
    rule: Provisioned[float],
    bounds: tuple[float, float],
    value: float | None,
) -> float:
    shown = format_count if what == "IOPS" else format_bandwidth
    least, most = bounds
    expected = f"expected {shown(least)} to {shown(most)} at this size"
    if value is None:
        if rule.default is None:
            raise DiskslaError(f"{terms} needs provisioned {what}; {expected}")
        return min(rule.default, most)
    if not least <= value <= most:
        raise DiskslaError(f"found {shown(value)} {what} for {terms}; {expected}")
    return value


def _check_provisioned(terms: Terms, provision: Provision) -> None:
    for what, value, rules in (
        ("IOPS", provision.iops, (terms.read_iops, terms.write_iops)),
        ("bandwidth", provision.bytes_per_second, (terms.read_bandwidth, terms.write_bandwidth)),
    ):
        if value is not None and not any(isinstance(rule, Provisioned) for rule in rules):
            raise DiskslaError(
                f"found provisioned {what}; expected none: the size determines the {what} of"
                f" {terms.id}"
            )
