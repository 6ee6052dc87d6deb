"""Reads the limits of machines: the files of one provider, at the time of a question.

Nothing is read before. A table is read whole and searched for the lines of one machine type.
"""

from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.schema.yaml_file import parse_record
from disksla.promise.catalogue.machine import Machine, MachineRules, find_machine, machine_of_vcpus

_DIRECTORY = Path(__file__).with_name("machines")


def providers_with_machines() -> list[str]:
    """Return the providers whose machines have known limits."""
    return sorted(path.stem for path in _DIRECTORY.glob("*.yaml"))


def load_machine_rules(provider: str) -> MachineRules | None:
    """Return how the limits of the machines of a provider are found; None if they are unknown."""
    path = _DIRECTORY / f"{provider}.yaml"
    if not path.exists():
        return None
    return parse_record(path.read_bytes(), str(path), MachineRules, {})


def read_table(rules: MachineRules) -> str:
    """Return the table of a provider; empty where the limits follow from the vCPUs."""
    if rules.key == "vcpus":
        return ""
    return (_DIRECTORY / f"{rules.provider}.csv").read_text(encoding="ascii")


def read_machine(rules: MachineRules, name: str | None, vcpus: int | None) -> Machine:
    """Return a machine by its type, or by its vCPUs where the limits follow from them.

    Raise DiskslaError if the type is unknown, or the limits follow from the other of the two.
    """
    if rules.key == "vcpus":
        if vcpus is None:
            raise DiskslaError(
                f"found machine type '{name}' of {rules.provider}; expected a number of vCPUs,"
                " from which its limits follow"
            )
        return machine_of_vcpus(vcpus)
    if name is None:
        raise DiskslaError(
            f"found {vcpus} vCPUs of {rules.provider}; expected a machine type, from which its"
            " limits follow"
        )
    return find_machine(rules, read_table(rules), name)
