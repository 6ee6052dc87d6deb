"""Derives limits from terms and a size, and effective IOPS from limits and a load."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.units import format_count, format_listed_bandwidth, format_size
from disksla.promise.catalogue.burst_rules import NOTHING_CHOSEN, Provision, burst_for
from disksla.promise.catalogue.cost_model import Charge, Metered, Rates, Work
from disksla.promise.catalogue.limits import (
    NO_LIMITS,
    BudgetKind,
    Budgets,
    Limits,
    OneUnit,
    PromisedShare,
    build_limits,
    promised_share,
)
from disksla.promise.catalogue.options import client_of, with_options
from disksla.promise.catalogue.rules import (
    AllocationUnits,
    BandwidthRule,
    FromBandwidth,
    IopsRule,
    RuleInput,
    provisioned_parts,
)
from disksla.promise.catalogue.terms import Terms

_Rule = IopsRule | BandwidthRule | None
_What = Literal["IOPS", "bandwidth"]
Shown = Callable[[float], str]  # how a number of a limit is written


class ProvisionBounds(NamedTuple):
    """Lowest and highest values that may be chosen; None where the size determines the limit."""

    iops: tuple[float, float] | None
    bytes_per_second: tuple[float, float] | None


class EffectiveIops(NamedTuple):
    """IOPS by the promise and by what is enforced; equal unless the two are known to differ."""

    promise: float
    enforced: float


def derive_limits(terms: Terms, size_bytes: int, provisioned: Provision | None = None) -> Limits:
    """Return the limits of a disk of this size under these terms.

    Raise DiskslaError if a value that must be chosen is missing, if a value or an option is not
    part of these terms, or if the size is zero. A value beyond the bounds of the catalogue counts:
    providers raise them (`beyond_bounds`).
    """
    provision = provisioned or NOTHING_CHOSEN
    _check_provisioned(terms, size_bytes, provision)
    budget = terms.budget
    if budget is None:
        return NO_LIMITS
    if size_bytes <= 0:
        raise DiskslaError(
            f"cannot derive limits of {terms.id}: found a size of {size_bytes} bytes"
        )
    terms, size_bytes = with_options(terms, size_bytes, provision.options)
    limits = _limits(terms, terms.budget or budget, size_bytes, provision)
    unit_bytes = _unit_bytes(terms)
    if unit_bytes is None or size_bytes <= unit_bytes:
        return limits
    unit = _limits(terms, terms.budget or budget, unit_bytes, provision)
    return msgspec.structs.replace(
        limits,
        one_unit=OneUnit(unit_bytes, unit.rates, unit.promise_charges, unit.enforced_charges),
    )


def _client_limits(terms: Terms, size_bytes: int) -> Limits | None:
    """Return what one client may get, of a row whose options are applied.

    Where its bytes are metered, reads may have more of them than writes.
    """
    client = client_of(terms, size_bytes)
    if client is None:
        return None
    read, write = client.read_bytes_per_second, client.write_bytes_per_second
    if not client.metered or not isinstance(terms.cost, Metered):
        return build_limits(Rates(None, None, read, write), client.budget)
    read = read and read * terms.cost.read_divisor
    return build_limits(Rates(None, None, read, write), "time_shared", cost=terms.cost)


def _unit_bytes(terms: Terms) -> int | None:
    """Return the size of an allocation unit; None if the limits do not grow with units."""
    rules = (terms.read_iops, terms.write_iops, terms.read_bandwidth, terms.write_bandwidth)
    return next((rule.unit_bytes for rule in rules if isinstance(rule, AllocationUnits)), None)


def _limits(
    terms: Terms, budget: BudgetKind | Budgets, size_bytes: int, provision: Provision
) -> Limits:
    """Return the limits of a row whose options are applied."""
    rates = _rates(terms, size_bytes, provision)
    latency = terms.latency
    limits = build_limits(
        rates,
        budget,
        latency_s=latency.seconds if latency else None,
        latency_kind=latency.kind if latency else None,
        burst=burst_for(terms.burst, size_bytes, rates, terms.cost, provision)
        if terms.burst
        else None,
        cost=terms.cost,
    )
    return msgspec.structs.replace(
        limits,
        shared_by=terms.shared_by,
        relief=terms.relief,
        client=_client_limits(terms, size_bytes),
        write_latency_s=latency.write_seconds if latency else None,
        latency_time_share=latency.time_share if latency else None,
        promised_time_share=terms.promised_time_share,
        limiter=terms.limiter.limiter if terms.limiter else limits.limiter,
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
    reads, writes = 1 - write_share, write_share
    request = Work(reads, writes, reads * request_bytes, writes * request_bytes)
    return request.load(charges, 1.0) or 0.0


class LimitBasis(NamedTuple):
    """One limit of a row: its rule, and what it follows from."""

    direction: Literal["read", "write"]
    what: _What
    rule: _Rule
    basis: RuleInput

    @property
    def shown(self) -> Shown:
        """How its numbers are written."""
        return format_count if self.what == "IOPS" else format_listed_bandwidth


def bases(terms: Terms, size_bytes: int, provision: Provision) -> list[LimitBasis]:
    """Return the limits of read and write IOPS, and of read and write bandwidth.

    Of the limits of a direction, one may follow from the other.
    """
    iops, bandwidth = provision.iops, provision.bytes_per_second
    of_iops, of_bandwidth = [], []
    directions: tuple[tuple[Literal["read", "write"], _Rule, _Rule], ...] = (
        ("read", terms.read_iops, terms.read_bandwidth),
        ("write", terms.write_iops, terms.write_bandwidth),
    )
    for direction, iops_rule, bandwidth_rule in directions:
        alone = RuleInput(size_bytes, bandwidth, None, iops)
        other = _rate(bandwidth_rule, alone) if isinstance(iops_rule, FromBandwidth) else None
        basis = RuleInput(size_bytes, iops, other, bandwidth)
        of_iops.append(LimitBasis(direction, "IOPS", iops_rule, basis))
        basis = RuleInput(size_bytes, bandwidth, _rate(iops_rule, basis), iops)
        of_bandwidth.append(LimitBasis(direction, "bandwidth", bandwidth_rule, basis))
    return [*of_iops, *of_bandwidth]


def provision_bounds(
    terms: Terms, size_bytes: int, provisioned: Provision | None = None
) -> ProvisionBounds:
    """Return what may be chosen at this size; the bounds of one value may follow from the other.

    A highest value is infinite where the provider states none.
    """
    provision = provisioned or NOTHING_CHOSEN
    terms, size_bytes = with_options(terms, size_bytes, provision.options)
    read_iops, _, read_bandwidth, _ = bases(terms, size_bytes, provision)
    return ProvisionBounds(
        *(
            next((part.bounds(each.basis) for part in provisioned_parts(each.rule)), None)
            for each in (read_iops, read_bandwidth)
        )
    )


def beyond_bounds(
    terms: Terms, size_bytes: int, provisioned: Provision | None = None
) -> list[str]:
    """Return a sentence for each provisioned value that is beyond the bounds of the catalogue.

    The value counts nevertheless: a provider may have raised its bounds since.
    """
    provision = provisioned or NOTHING_CHOSEN
    bounds = provision_bounds(terms, size_bytes, provision)
    return [
        f"{shown(value)} {what} of {terms.id}:"
        f" {'below' if value < expected[0] else 'above'} what {terms.provider_name} sells"
        f" (catalogue: {bounds_text(shown, expected)})"
        for what, shown, value, expected in (
            ("IOPS", format_count, provision.iops, bounds.iops),
            (
                "bandwidth",
                format_listed_bandwidth,
                provision.bytes_per_second,
                bounds.bytes_per_second,
            ),
        )
        if value is not None and expected is not None
        if not expected[0] <= value <= expected[1]
    ]


def beyond_sizes(terms: Terms, size_bytes: int) -> list[str]:
    """Return a sentence if no disk of this size is sold under these terms."""
    least, most = terms.sizes.least_bytes, terms.sizes.most_bytes
    if terms.scope == "machine":
        most = None  # of one disk, and the size is that of all together
    if (least or 0) <= size_bytes <= (most or math.inf):
        return []
    expected = range_text(least, most, format_size)
    return [f"found {format_size(size_bytes)} for {terms.id}; expected {expected}"]


def bounds_text(shown: Shown, bounds: tuple[float, float]) -> str:
    """Return the values that may be chosen, in words."""
    least, most = bounds
    return f"{range_text(least, None if math.isinf(most) else most, shown)} at this size"


def range_text(least: float | None, most: float | None, shown: Shown) -> str:
    """Return a range in words; None is no bound, and one of both is a number."""
    if least is None:
        return f"at most {shown(most or 0)}"
    if most is None:
        return f"at least {shown(least)}"
    return shown(least) if least == most else f"{shown(least)} to {shown(most)}"


def _rates(terms: Terms, size_bytes: int, provision: Provision) -> Rates:
    rates = []
    for each in bases(terms, size_bytes, provision):
        rate = _rate(each.rule, each.basis)
        if each.rule is not None and rate is None:
            bounds = provisioned_parts(each.rule)[0].bounds(each.basis)
            expected = bounds_text(each.shown, bounds)
            raise DiskslaError(f"{terms.id} needs provisioned {each.what}; expected {expected}")
        rates.append(rate)
    return Rates(*rates)


def _rate(rule: _Rule, basis: RuleInput) -> float | None:
    return None if rule is None else rule.rate(basis)


def _check_provisioned(row: Terms, size_bytes: int, provision: Provision) -> None:
    terms, _ = with_options(row, size_bytes, provision.options)
    for what, value, rules in (
        ("IOPS", provision.iops, (terms.read_iops, terms.write_iops)),
        ("bandwidth", provision.bytes_per_second, (terms.read_bandwidth, terms.write_bandwidth)),
    ):
        if value is not None and not any(provisioned_parts(rule) for rule in rules):
            raise DiskslaError(
                f"found provisioned {what}; expected none: the size determines the {what} of"
                f" {terms.id}"
            )
