"""What was chosen when a disk was bought, by the limits that its daemon published."""

import math
from collections.abc import Iterator

import msgspec

from disksla.base.errors import DiskslaError
from disksla.promise.catalogue import Provision, Rates, Terms, derive_limits, provision_bounds

_ROUNDING = 1e-6
"""Servers differ in how many digits they store."""


def provision_by_limits(terms: Terms, size_bytes: int, published: Rates) -> Provision | None:
    """Return what makes the limits of a disk those that were published; None if nothing does."""
    return next(
        (
            provision
            for provision in _provisions(terms, size_bytes, published)
            if _are_equal(_rates(terms, size_bytes, provision), published)
        ),
        None,
    )


def _provisions(terms: Terms, size_bytes: int, published: Rates) -> Iterator[Provision]:
    """Yield what may have been chosen: nothing, one option, or provisioned values.

    What is provisioned is the limit, or what the limit has beyond that of a disk without it.
    """
    yield Provision()
    for name, option in terms.options.items():
        for value in option.values:
            yield Provision(options={name: value})
    bounds = provision_bounds(terms, size_bytes)
    iops = published.read_iops if bounds.iops else None
    bytes_per_second = published.read_bytes_per_second if bounds.bytes_per_second else None
    yield Provision(iops, bytes_per_second)
    yield Provision(iops)
    plain = _rates(terms, size_bytes, Provision()).read_iops
    if iops is not None and plain is not None:
        yield Provision(iops - plain)


def _rates(terms: Terms, size_bytes: int, provision: Provision) -> Rates:
    """Return the limits of a disk; none if it is not sold like this."""
    try:
        return derive_limits(terms, size_bytes, provision).rates
    except DiskslaError:  # a value must be chosen, or the disk is too small for an option
        return Rates()


def _are_equal(rates: Rates, others: Rates) -> bool:
    """Return whether there are limits, and all are the same."""
    pairs = zip(msgspec.structs.astuple(rates), msgspec.structs.astuple(others), strict=True)
    return rates != Rates() and all(
        math.isclose(rate, other, rel_tol=_ROUNDING)
        if rate is not None and other is not None
        else rate is other
        for rate, other in pairs
    )
