"""The limit of the machine over a disk, and the next larger machine, from the tables."""

from collections.abc import Mapping
from functools import lru_cache

from disksla.promise.catalogue import MachineChoice, SharedLimits, larger_machine
from disksla.promise.catalogue.machine_tables import load_machine_rules, read_table
from disksla.state.pipeline import State
from disksla.tell.explanation.sentences import LargerMachine, MachineLimit
from disksla.verdict.throttling import MACHINE_LIMITS, LimitKind

_KEPT = 16
"""More groups than a machine has."""


def machine_limit(state: State, device: str, name: str | None = None) -> MachineLimit | None:
    """Return the limit of the machine over a disk, and the next larger machines of its family.

    `name` is that of the group whose limit throttled its disks; the first of the disk without one.
    """
    shared = limits_over(state, device)
    if not shared:
        return None
    found = next((each for each in shared if each.name == name), shared[0])
    larger: Mapping[LimitKind, LargerMachine] = {}
    for choice in state.configuration.machines:
        if any(rule.name == found.name for rule in choice.rules.groups):
            larger = _next_larger(choice.rules.provider, found)
    uncached = next((each for each in shared if each.excludes_hits), None)
    return MachineLimit(found, larger, uncached if found.is_cache else None)


def limits_over(state: State, device: str) -> tuple[SharedLimits, ...]:
    """Return all limits of the machine over a disk."""
    return tuple(
        group.shared
        for group in state.groups.values()
        if device in group.devices and not group.shared.of_type
    )


@lru_cache(_KEPT)
def _next_larger(provider: str, shared: SharedLimits) -> Mapping[LimitKind, LargerMachine]:
    """Return the next larger machines by the limit that they have more of.

    The tables are read for a machine and group once, because a page asks for each disk.
    """
    rules = load_machine_rules(provider)
    if rules is None:
        return {}
    choice, table = MachineChoice(rules, None), read_table(rules)
    found = {
        kind: larger_machine(choice, table, shared, is_bandwidth=kind == "bandwidth")
        for kind in MACHINE_LIMITS
    }
    return {kind: LargerMachine(*each) for kind, each in found.items() if each is not None}
