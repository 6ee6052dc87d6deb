"""Which machine of the same family has a higher limit over its disks."""

import re
from collections.abc import Iterator

from disksla.promise.catalogue.limits import Limits, Rates
from disksla.promise.catalogue.machine import (
    Machine,
    MachineChoice,
    SharedLimits,
    find_machine,
    machine_groups,
    machine_of_vcpus,
)

_MOST_VCPUS = 1024


def larger_machine(
    choice: MachineChoice, table: str, shared: SharedLimits, *, is_bandwidth: bool
) -> tuple[str, float] | None:
    """Return the machine with the next higher limit over the same group, and this limit.

    It is in IOPS, or in bytes per second if `is_bandwidth`. None if no machine of the family has
    more. `table` is that of the provider.
    """
    present = _rate(shared.limits.rates, is_bandwidth=is_bandwidth)
    larger = [
        (rate, _size(shown), shown)
        for shown, limits in machine_family(choice, table, shared)
        if (rate := _rate(limits.rates, is_bandwidth=is_bandwidth)) > present
    ]
    return (min(larger)[2], min(larger)[0]) if larger else None


def machine_family(
    choice: MachineChoice, table: str, shared: SharedLimits
) -> Iterator[tuple[str, Limits]]:
    """Yield the machines of the family of the present one, with their limits over a group."""
    for shown, machine in _family(choice, table, shared.machine):
        for group in machine_groups(choice.rules, machine):
            if group.name == shared.name:
                yield shown, group.limits


def _size(name: str) -> tuple[bool, list[int]]:
    """Return a key for the size of a machine of a family: a whole server is the largest."""
    return "metal" in name, [int(number) for number in re.findall(r"\d+", name)]


def _rate(rates: Rates, *, is_bandwidth: bool) -> float:
    if is_bandwidth:
        return max(rates.read_bytes_per_second or 0.0, rates.write_bytes_per_second or 0.0)
    return max(rates.read_iops or 0.0, rates.write_iops or 0.0)


def _family(choice: MachineChoice, table: str, name: str) -> Iterator[tuple[str, Machine]]:
    """Yield the machines of the family of one, with how they are named."""
    if choice.rules.key == "vcpus":
        vcpus = 2 * int(name.partition(" ")[0])
        while vcpus <= _MOST_VCPUS:
            yield f"{vcpus} vCPUs", machine_of_vcpus(vcpus)
            vcpus *= 2
        return
    for relative in _names(choice, table, name):
        yield relative, find_machine(choice.rules, table, relative)


def _names(choice: MachineChoice, table: str, name: str) -> list[str]:
    """Return the names of the family: other sizes of a series, which have other numbers.

    Sizes of AWS and Alibaba Cloud follow the last dot; others are the first number in a name that
    follows its beginning (`Standard_D4s_v5`, `n2-standard-8`).
    """
    series, dot, _ = name.rpartition(".")
    if dot:
        return re.findall(rf"^{re.escape(series)}\.[^,]+", table, re.MULTILINE)
    is_series = choice.rules.key == "series"
    pattern = r"(.*?-[a-z]+-)(\d+)(.*)" if is_series else r"(.*?[a-z_-])(\d+)(.*)"
    parts = re.fullmatch(pattern, name, re.IGNORECASE)
    if parts is None:
        return []
    before, _, after = map(re.escape, parts.groups())
    names = re.findall(rf"^{before}\d+{after}(?=,)", table, re.MULTILINE)
    if is_series:
        series = name.partition("-")[0]
        vcpus = re.findall(rf"^{re.escape(series)},(\d+),", table, re.MULTILINE)
        names += [f"{parts[1]}{number}{parts[3]}" for number in dict.fromkeys(vcpus)]
    return names
