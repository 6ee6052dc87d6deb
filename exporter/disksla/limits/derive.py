"""From terms and a size to limits, and from limits to the IOPS that a load can have of them."""

from collections.abc import Callable
from typing import NamedTuple

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

_NOTHING_CHOSEN = Provision()


class EffectiveIops(NamedTuple):
    """Between what is promised and what is enforced; equal where only one law is known."""

    promise: float
    enforced: float


def derive_limits(terms: Terms, size_bytes: int, provisioned: Provision | None = None) -> Limits:
    """Give the limits of a disk of this size under these terms.

    Raises Refusal if something was provisioned that these terms do not offer, or too much or too
    little of it, or if it must be chosen and was not; and for a disk without any size.
    """
    chosen = provisioned or _NOTHING_CHOSEN
    _refuse_what_is_not_offered(terms, chosen)
    if terms.budget is None:
        return NO_LIMITS
    if size_bytes <= 0:
        raise DiskslaError(f"{terms.id} cannot be applied to a disk of {size_bytes} bytes")
    rates = _rates(terms, size_bytes, chosen)
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
    """Give the IOPS that a steady load of requests of one size can have.

    `write_share` (0..1) is the share of writes among the requests. The limits say what one such
    request costs, and the dearest limit what fits into a second: that is the harmonic mean of
    reads and writes for a shared budget, and min(R / (1 - a), W / a) for separate ones.
    `shares` is the promise by request size. None where nothing is promised for such a load.
    """
    promise_s = _dearest_s(limits.promise_charges, request_bytes, write_share)
    if not promise_s:
        return None
    share = promised_share(shares, request_bytes)
    requests = tuple(charge for charge in limits.promise_charges if charge.limit == "iops")
    requests_s = _dearest_s(requests, request_bytes, write_share) / share
    return EffectiveIops(
        promise=1 / max(promise_s, requests_s),
        enforced=1 / _dearest_s(limits.enforced_charges, request_bytes, write_share),
    )


def _dearest_s(charges: tuple[Charge, ...], request_bytes: int, write_share: float) -> float:
    """Give the time that one request of the mix takes of the limit it uses most."""
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


def _rates(terms: Terms, size_bytes: int, chosen: Provision) -> Rates:
    read_iops = _iops(terms, terms.read_iops, size_bytes, chosen)
    write_iops = _iops(terms, terms.write_iops, size_bytes, chosen)
    return Rates(
        read_iops,
        write_iops,
        _bandwidth(terms, terms.read_bandwidth, size_bytes, chosen, read_iops),
        _bandwidth(terms, terms.write_bandwidth, size_bytes, chosen, write_iops),
    )


def _iops(terms: Terms, law: IopsRule | None, size_bytes: int, chosen: Provision) -> float | None:
    if law is None:
        return None
    if isinstance(law, Provisioned):
        bounds = law.bounds(size_bytes)
        return _provisioned(f"IOPS for {terms.id}", law, bounds, chosen.iops, format_count)
    return law.rate(size_bytes)


def _bandwidth(
    terms: Terms,
    law: BandwidthRule | None,
    size_bytes: int,
    chosen: Provision,
    iops: float | None,
) -> float | None:
    if law is None:
        return None
    if isinstance(law, FromIops):
        return law.rate(iops or 0.0)  # Terms have seen to it that there are IOPS
    if isinstance(law, Provisioned):
        what = f"bandwidth for {terms.id}"
        bounds = law.bounds(size_bytes, iops)
        return _provisioned(what, law, bounds, chosen.bytes_per_second, format_bandwidth)
    return law.rate(size_bytes)


def _provisioned(
    what: str,
    law: Provisioned,
    bounds: tuple[float, float],
    wanted: float | None,
    shown: Callable[[float], str],
) -> float:
    least, most = bounds
    between = f"between {shown(least)} and {shown(most)}"
    if wanted is None:
        if law.default is None:
            raise DiskslaError(f"no {what} given: it is provisioned, {between} at this size")
        return min(law.default, most)
    if not least <= wanted <= most:
        raise DiskslaError(f"{shown(wanted)} {what} cannot be had: at this size, {between}")
    return wanted


def _refuse_what_is_not_offered(terms: Terms, chosen: Provision) -> None:
    for what, wanted, laws in (
        ("IOPS", chosen.iops, (terms.read_iops, terms.write_iops)),
        ("bandwidth", chosen.bytes_per_second, (terms.read_bandwidth, terms.write_bandwidth)),
    ):
        if wanted is not None and not any(isinstance(law, Provisioned) for law in laws):
            raise DiskslaError(
                f"the {what} of {terms.id} cannot be chosen: only provisioned types let one"
            )
