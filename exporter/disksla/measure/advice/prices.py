"""What disks cost by a list of prices of the operator; disksla has no prices of its own."""

from collections.abc import Mapping

import msgspec

from disksla.base.schema import Number, Text
from disksla.base.units import GIB, MIB
from disksla.measure.advice.search import Candidate
from disksla.promise.catalogue import Provision


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a disk of a type costs per month."""

    gib: Number
    """Of one GiB of its size."""
    iops: Number | None = None
    """Of one provisioned IOPS above those that are included."""
    iops_included: Number | None = None
    mib_per_s: Number | None = None
    """Of 1 MiB/s of provisioned bandwidth above what is included."""
    mib_per_s_included: Number | None = None

    def of(self, size_bytes: int, provision: Provision) -> float | None:
        """Return what a disk costs per month; None if the list does not say it."""
        bandwidth = provision.bytes_per_second
        parts = (
            self.gib * size_bytes / GIB,
            _beyond(provision.iops, self.iops_included, self.iops),
            _beyond(bandwidth and bandwidth / MIB, self.mib_per_s_included, self.mib_per_s),
        )
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) and not provision.options else None


class PriceList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prices of disk types, by the id in the catalogue."""

    currency: Text
    prices: Mapping[str, Price]

    def price_of(self, candidate: Candidate) -> float | None:
        """Return what a disk costs per month; None if the list does not say it."""
        price = self.prices.get(candidate.terms)
        return None if price is None else price.of(candidate.size_bytes, candidate.provision)


def _beyond(bought: float | None, included: float | None, each: float | None) -> float | None:
    """Return what is paid for values above those that are included; None if it is not known."""
    paid = max(0.0, (bought or 0.0) - (included or 0.0))
    if not paid:
        return 0.0
    return None if each is None else paid * each
