"""The limit of the machine over a disk, and the next larger machine, from the tables."""

from disksla.history.sentences import LargerMachine, MachineLimit
from disksla.limits import larger_machine
from disksla.limits.machine_tables import read_table
from disksla.pipeline import State
from disksla.verdict import MACHINE_LIMITS, LimitKind


def machine_limit(state: State, device: str) -> MachineLimit | None:
    """Return the limit of the machine over a disk, and the next larger machines of its family."""
    for group in state.groups.values():
        if device not in group.devices or group.shared.of_type:
            continue
        larger: dict[LimitKind, LargerMachine] = {}
        for choice in state.machines:
            if any(rule.name == group.shared.name for rule in choice.rules.groups):
                table = read_table(choice.rules)
                for kind in MACHINE_LIMITS:
                    next_one = larger_machine(
                        choice, table, group.shared, is_bandwidth=kind == "bandwidth"
                    )
                    if next_one is not None:
                        larger[kind] = LargerMachine(*next_one)
        return MachineLimit(group.shared, larger)
    return None
