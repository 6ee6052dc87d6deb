"""Texts on the limits of machines that no other test prints."""

from disksla.promise.catalogue import NO_LIMITS, Limits
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.machine import MachineRules, machine_groups, machine_of_vcpus
from disksla.promise.catalogue.machine_tables import load_machine_rules
from disksla.tell.machine_text import DiskOnMachine, compare, machine_note

CATALOG = load_catalog()


def rules_of(provider: str) -> MachineRules:
    rules = load_machine_rules(provider)
    assert rules is not None
    return rules


def test_type_without_a_machine_limit_has_no_text() -> None:
    assert machine_note(rules_of("gcp"), CATALOG["gcp.hyperdisk-balanced"]) is None
    assert machine_note(rules_of("azure"), CATALOG["azure.ultra"]) is not None


def test_comparison_with_a_disk_without_limits() -> None:
    rules = rules_of("yandex")
    machine = machine_of_vcpus(1)
    groups = machine_groups(rules, machine)
    assert machine.shown == "A machine with 1 vCPU"

    def sentence(limits: Limits) -> str:
        disk = DiskOnMachine(CATALOG["yandex.network-ssd"], limits, machine, rules, groups)
        return compare(disk, disk.covering[0])

    assert "3500 IOPS, for which this disk has no limit, and 45 MiB/s" in sentence(NO_LIMITS)
