"""What would have been enough for the load of a disk, and what to buy next."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from disksla.advice.machines import MachineOutcome
from disksla.advice.prices import PriceList
from disksla.advice.search import Answer, Candidate, Needs, Outcome, least_of


class MachineAdvice(NamedTuple):
    """What the machine would have done to the load of a group of disks."""

    devices: tuple[str, ...]
    outcomes: Sequence[MachineOutcome]
    """The first is the present machine."""
    disk_iops: float
    """IOPS that it allows the disk alone, for its mix of requests."""


class Advice(NamedTuple):
    """What would have been enough for the load of a disk."""

    devices: tuple[str, ...]
    """One, or all of a type that share its limits."""
    needs: Needs
    present: Outcome
    outcomes: Sequence[Outcome]
    machine: Sequence[MachineAdvice]
    left_out: Mapping[str, int] = {}
    """Types that are not sold for such a load: they count its requests as so many bytes."""
    prices: PriceList | None = None

    def least(self, wanted: Answer, *, of_own_type: bool = False) -> Outcome | None:
        """Return the least performance that is as good as wanted; None if none is.

        The present disk, and then its type, come first among those with the same performance.
        """
        own = self.present.candidate.terms
        others = sorted(self.outcomes, key=lambda each: each.candidate.terms != own)
        return least_of(
            (
                each
                for each in (self.present, *others)
                if not of_own_type or each.candidate.terms == own
            ),
            wanted,
        )

    @property
    def next_step(self) -> Outcome | None:
        """What halves the waiting of a closed loop; None if it is none, or nothing does.

        The cheapest where prices are known; else of the own type, else the least performance.
        """
        loop, own = self.needs.demand.loop, self.present.candidate.terms
        if loop is None:
            return None
        good = [
            each
            for each in (self.present, *self.outcomes)
            if loop.is_halved(each.performance_iops)
        ]
        priced = [(price, each) for each in good if (price := self.price(each.candidate))]
        if priced:
            return min(priced, key=lambda each: (each[0], each[1].performance_iops))[1]
        return min(
            good,
            key=lambda each: (each.candidate.terms != own, each.performance_iops),
            default=None,
        )

    @property
    def is_answered(self) -> bool:
        """Whether something is certain to be enough, or to halve the waiting of a closed loop."""
        if self.needs.demand.loop is not None:
            return self.next_step is not None or not self.outcomes
        return self.least("enough") is not None

    def price(self, candidate: Candidate) -> float | None:
        """Return what a disk costs per month; None if it is not known."""
        return None if self.prices is None else self.prices.price_of(candidate)
