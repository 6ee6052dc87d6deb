"""What would have been enough for the load of a disk, and what to buy next."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from disksla.measure.advice.closed_loop import ClosedLoop
from disksla.measure.advice.search import (
    Answer,
    Candidate,
    Needs,
    Outcome,
    PriceList,
    counts_small_requests_as,
    halving,
    least_of,
    outcome_of,
    outcomes_of_type,
)
from disksla.measure.advice.simulation import ShareRange
from disksla.promise.catalogue import (
    TERMS_TITLES,
    Catalog,
    Limits,
    MachineChoice,
    SharedLimits,
    machine_family,
)


class GroupOnMachine(NamedTuple):
    """Disks that share a limit of their machine, and the other machines of its family."""

    devices: Sequence[str]
    shared: SharedLimits
    choices: Sequence[MachineChoice] = ()
    """The machine itself; empty if its limits are written out."""
    table: str = ""
    """Machines of the provider."""


class MachineOutcome(NamedTuple):
    """What the limits of a machine would have done to the load of a group of disks."""

    machine: str
    """Machine type, or the number of vCPUs; empty if not known."""
    share: ShareRange
    answer: Answer
    performance_iops: float


class MachineAdvice(NamedTuple):
    """What the machine would have done to the load of a group of disks."""

    devices: Sequence[str]
    shared: SharedLimits
    outcomes: Sequence[MachineOutcome]
    """The first is the present machine."""
    disk_iops: float
    """IOPS that it allows the disk alone, for its mix of requests."""


class Advice(NamedTuple):
    """What would have been enough for the load of a disk."""

    devices: Sequence[str]
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
    def is_type_known(self) -> bool:
        """Whether the terms of the disk are those of a type, so that a provider sells others."""
        return self.present.candidate.terms not in TERMS_TITLES

    @property
    def is_answered(self) -> bool:
        """Whether something is certain to be enough, or to halve the waiting of a closed loop."""
        if self.needs.demand.loop is not None:
            return self.next_step is not None or not self.is_type_known
        return self.least("enough") is not None

    def price(self, candidate: Candidate) -> float | None:
        """Return what a disk costs per month; None if it is not known."""
        return None if self.prices is None else self.prices.price_of(candidate)


def advice_of(
    catalog: Catalog,
    present: Candidate,
    devices: Sequence[str],
    needs_of: Callable[[Sequence[str]], Needs],
    groups: Iterable[GroupOnMachine],
) -> Advice:
    """Return what would have been enough for the load of a disk, or of all that share its limits.

    `needs_of` returns what some disks of the machine need together.
    """
    needs = needs_of(devices)
    outcomes, left_out = _of_provider(catalog, present, needs)
    machine = []
    for group in groups:
        of_group = needs if group.devices == devices else needs_of(group.devices)
        disk_iops = needs.performance_iops(group.shared.limits)
        outcomes_of_group = machine_outcomes(group, of_group)
        machine.append(MachineAdvice(group.devices, group.shared, outcomes_of_group, disk_iops))
    return Advice(devices, needs, outcome_of(present, needs), outcomes, machine, left_out=left_out)


def _of_provider(
    catalog: Catalog, present: Candidate, needs: Needs
) -> tuple[list[Outcome], dict[str, int]]:
    """Return the other disks of the provider that matter, and the types that are left out.

    Those that matter may be enough or, for a closed loop, make it wait at most half as long.
    """
    sold = catalog.find(present.terms)
    of_type = outcomes_of_type if needs.demand.loop is None else halving
    outcomes, left_out = list[Outcome](), dict[str, int]()
    for terms in catalog.rows:
        is_disk = terms.budget is not None and not terms.is_file_storage
        if sold is None or terms.provider != sold.provider or not is_disk:
            continue
        found = of_type(terms, present.size_bytes, needs)
        counted_as = [counts_small_requests_as(each.candidate.limits, needs) for each in found]
        if None in counted_as or not found:
            outcomes += [each for each in found if each.candidate != present]
        else:
            left_out[terms.id] = max(filter(None, counted_as))
    return outcomes, left_out


def machine_outcomes(group: GroupOnMachine, needs: Needs) -> list[MachineOutcome]:
    """Return this machine, and the next of its family that may be enough and that are enough.

    `needs` are those of the group. If no machine of the family may be enough, the second is that
    with the highest performance.
    """
    shared = group.shared
    present = _on_machine(shared.machine, shared.limits, needs)
    others = sorted(
        (
            _on_machine(name, limits, needs)
            for choice in group.choices
            for name, limits in machine_family(choice, group.table, shared)
        ),
        key=lambda each: each.performance_iops,
    )
    larger = [each for each in others if each.performance_iops > present.performance_iops]
    outcomes = [present]
    if present.answer == "not enough":
        outcomes += [each for each in larger if each.answer != "not enough"][:1] or larger[-1:]
    if "enough" not in {each.answer for each in outcomes}:
        outcomes += [each for each in larger if each.answer == "enough"][:1]
    return outcomes


def _on_machine(machine: str, limits: Limits, needs: Needs) -> MachineOutcome:
    share = needs.share(limits)
    return MachineOutcome(machine, share, needs.answer(share), needs.performance_iops(limits))


def advice_document(advice: Advice) -> dict[str, Any]:
    """Return the advice for JSON, in base units."""
    demand, needs = advice.needs.demand, advice.needs
    own, least = advice.least("enough", of_own_type=True), advice.least("enough")
    step = advice.next_step
    return {
        "devices": advice.devices,
        "seconds": demand.seconds,
        "requests": demand.work.requests,
        "throttled_share": demand.throttled_share,
        "limited_share": demand.limited_share,
        "tolerated_share": needs.tolerated_share,
        "present": _outcome_document(advice, advice.present),
        "closed_loop": needs.demand.loop and _loop_document(needs.demand.loop),
        "next_step": step and _outcome_document(advice, step),
        "enough": least and _outcome_document(advice, least),
        "enough_of_type": own and _outcome_document(advice, own),
        "disks": [_outcome_document(advice, each) for each in advice.outcomes],
        "left_out": advice.left_out,
        "currency": advice.prices and advice.prices.currency,
        "machine": [
            {
                "group": machine.shared.name,
                "devices": machine.devices,
                "disk_iops": _finite(machine.disk_iops),
                "machines": [
                    {
                        "machine": each.machine or None,
                        "iops": _finite(each.performance_iops),
                        "throttled_share": each.share._asdict(),
                        "answer": each.answer,
                    }
                    for each in machine.outcomes
                ],
            }
            for machine in advice.machine
        ],
    }


def _outcome_document(advice: Advice, outcome: Outcome) -> dict[str, Any]:
    candidate = outcome.candidate
    return {
        "terms": candidate.terms,
        "size_bytes": candidate.size_bytes,
        "provisioned": msgspec.structs.asdict(candidate.provision),
        "limits": msgspec.structs.asdict(candidate.limits.rates),
        "iops": _finite(outcome.performance_iops),
        "throttled_share": outcome.share._asdict(),
        "answer": outcome.answer,
        "price_per_month": advice.price(outcome.candidate),
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _loop_document(loop: ClosedLoop) -> dict[str, Any]:
    """Return what was seen of a closed loop, and its steps."""
    return {
        "inflight": loop.inflight,
        "served_iops": loop.served_iops,
        "request_s": loop.request_s,
        "service_s": loop.service_s or None,
        "steps": [
            {
                "iops": iops,
                "served_iops": loop.served(iops)._asdict(),
                "most_wait_s": loop.waits_s(iops),
            }
            for iops in loop.steps()
        ],
    }
