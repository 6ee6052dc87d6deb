"""The next larger machine of a family, by the tables of the providers."""

import pytest

from disksla.base.units import MIB
from disksla.promise.catalogue.larger_machine import larger_machine
from disksla.promise.catalogue.machine import (
    MachineChoice,
    find_machine,
    machine_groups,
    shared_limits,
)
from disksla.promise.catalogue.machine_tables import load_machine_rules, read_machine, read_table


def found(provider: str, name: str, group: str, *, is_bandwidth: bool) -> tuple[str, float] | None:
    rules = load_machine_rules(provider)
    assert rules is not None
    choice = MachineChoice(rules, read_machine(rules, name, None))
    (shared,) = [each for each in shared_limits(choice, None) if each.name == group]
    return larger_machine(choice, read_table(rules), shared, is_bandwidth=is_bandwidth)


@pytest.mark.parametrize(
    ("provider", "name", "group", "iops", "bandwidth"),
    [
        ("aws", "m6i.large", "ebs", ("m6i.xlarge", 6000), ("m6i.xlarge", 156.25e6)),
        ("aws", "m5.24xlarge", "ebs", None, None),
        (
            "azure",
            "Standard_D4s_v5",
            "uncached",
            ("Standard_D8s_v5", 12_800),
            ("Standard_D8s_v5", 290e6),
        ),
        ("gcp", "n2-standard-8", "pd-standard", None, ("n2-standard-16", 1200 * MIB)),
        (
            "gcp",
            "c3-standard-8-lssd",
            "pd-ssd",
            ("c3-standard-22-lssd", 25_000),
            ("c3-standard-22-lssd", 800 * MIB),
        ),
        (
            "gcp",
            "a2-highgpu-1g",
            "pd-balanced",
            ("a2-highgpu-2g", 20_000),
            ("a2-highgpu-2g", 1200 * MIB),
        ),
        ("gcp", "e2-medium", "pd-balanced", None, None),
        (
            "gcp",
            "n1-custom-8-8192",
            "pd-balanced",
            ("n1-custom-16-8192", 20_000),
            ("n1-custom-16-8192", 1200 * MIB),
        ),
    ],
)
def test_next_machine_of_the_family(
    provider: str,
    name: str,
    group: str,
    iops: tuple[str, float] | None,
    bandwidth: tuple[str, float] | None,
) -> None:
    """Figures of the providers' tables, as in tests/promise/catalogue/test_machine.py."""
    assert found(provider, name, group, is_bandwidth=False) == iops
    assert found(provider, name, group, is_bandwidth=True) == bandwidth


@pytest.mark.parametrize(
    ("vcpus", "group", "expected"),
    [
        (2, "replicated", ("4 vCPUs", 14_000)),
        (16, "unreplicated", None),
        (1, "replicated", ("2 vCPUs", 7000)),
    ],
)
def test_more_vcpus(vcpus: int, group: str, expected: tuple[str, float] | None) -> None:
    rules = load_machine_rules("yandex")
    assert rules is not None
    choice = MachineChoice(rules, None)
    (shared,) = [each for each in shared_limits(choice, vcpus) if each.name == group]
    assert larger_machine(choice, "", shared, is_bandwidth=False) == expected


@pytest.mark.parametrize(
    ("provider", "every"), [("aws", 40), ("azure", 7), ("gcp", 12), ("alibaba", 12)]
)
def test_larger_machine_has_more_and_is_in_the_table(provider: str, every: int) -> None:
    rules = load_machine_rules(provider)
    assert rules is not None
    table = read_table(rules)
    lines = [line.split(",") for line in table.splitlines()[1::every]]
    names = [
        line[0] if "-" in line[0] or provider != "gcp" else f"{line[0]}-standard-{line[1]}"
        for line in lines
    ]
    for name in names:
        choice = MachineChoice(rules, find_machine(rules, table, name))
        for shared in shared_limits(choice, None):
            larger = larger_machine(choice, table, shared, is_bandwidth=False)
            if larger is not None:
                groups = machine_groups(rules, find_machine(rules, table, larger[0]))
                (group,) = [each for each in groups if each.name == shared.name]
                assert larger[1] in (group.limits.rates.read_iops, group.limits.rates.write_iops)
                assert larger[1] > (shared.limits.rates.read_iops or 0)
