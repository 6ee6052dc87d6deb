"""Machines whose limits over a group of disks would have been enough."""

from typing import NamedTuple

from disksla.advice.search import Answer, Needs
from disksla.advice.simulation import ShareRange
from disksla.limits import Limits, MachineChoice, SharedLimits, machine_family


class MachineOutcome(NamedTuple):
    """What the limits of a machine would have done to the load of a group of disks."""

    machine: str
    """Machine type, or the number of vCPUs; empty if not known."""
    group: str
    """Name of the group."""
    title: str
    limits: Limits
    share: ShareRange
    answer: Answer
    performance_iops: float


def machine_outcomes(
    shared: SharedLimits, choices: tuple[MachineChoice, ...], table: str, needs: Needs
) -> list[MachineOutcome]:
    """Return this machine, and the next of its family that may be enough and that are enough.

    `needs` are those of the group, and `table` has the machines of the provider. If no machine of
    the family may be enough, the second is that with the highest performance.
    """
    present = _outcome(shared.machine, shared.limits, shared, needs)
    others = sorted(
        (
            _outcome(name, limits, shared, needs)
            for choice in choices
            for name, limits in machine_family(choice, table, shared)
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


def _outcome(machine: str, limits: Limits, shared: SharedLimits, needs: Needs) -> MachineOutcome:
    share = needs.share(limits)
    performance_iops = needs.performance_iops(limits)
    answer = needs.answer(share)
    return MachineOutcome(
        machine=machine,
        group=shared.name,
        title=shared.title,
        limits=limits,
        share=share,
        answer=answer,
        performance_iops=performance_iops,
    )
